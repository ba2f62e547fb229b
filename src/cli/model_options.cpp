#include "cli/model_options.h"

#include "backend/backend.h"
#include "cli/terminal.h"

namespace tessera::cli {

CLI::Validator between(int64_t low, int64_t high) {
  CLI::Validator validator = CLI::Range(low, high);
  validator.description("");
  return validator;
}

void ModelOptions::add_to(CLI::App& command) {
  std::vector<std::string> backends = backend_names();
  backends.insert(backends.begin(), "auto");
  const char* group = "Computing";
  command.add_option("--backend", backend, "what computes (default: auto, the first of this build)")
      ->check(CLI::IsMember(backends))
      ->type_name("")
      ->group(group);
  command.add_option("--threads", threads, "processor threads (default: as many as the process may use)")
      ->check(between(1, 1024))
      ->type_name("N")
      ->group(group);
  command
      .add_flag("--exact", exact,
                "float32 activations throughout and a float32 cache: slower, as the reference")
      ->group(group);
  command.add_option("--kv-type", kv_type, "how keys and values are kept (default: f16; f32 with --exact)")
      ->check(CLI::IsMember({"f16", "f32"}))
      ->type_name("")
      ->group(group);
  command
      .add_option("--context", context, "positions of prompt and answer (default: as the model was trained)")
      ->check(between(1, kMaxCount))
      ->type_name("N")
      ->group(group);
  command
      .add_option("--kv-memory", kv_memory,
                  "MB for keys and values (default: at most half of the free memory)")
      ->check(between(1, kMaxCount))
      ->type_name("MB")
      ->group(group);
  command
      .add_option("--precision", precision,
                  "pack unquantised weights while loading: BASE[,GROUP=FORMAT][,blk:A-B=FORMAT]..., such as "
                  "q8 or q4,head=f16,blk:0-1=q8")
      ->type_name("POLICY")
      ->group(group);
  command.footer("");  // the examples stand in the program's help
}

Result<SessionOptions> ModelOptions::session() const {
  SessionOptions options;
  if (!precision.empty()) {
    TESSERA_TRY(options.precision, PrecisionPolicy::parse(precision));
  }
  options.backend = backend;
  options.compile.threads = static_cast<int>(threads);
  options.compile.activations = exact ? ActivationType::kExact : ActivationType::kDefault;
  const bool wide = kv_type.empty() ? exact : kv_type == "f32";
  options.compile.state = wide ? StateType::kF32 : StateType::kF16;
  options.engine.max_running = 1;
  options.engine.context = context;
  options.engine.state_bytes = static_cast<uint64_t>(kv_memory) << 20;
  return options;
}

Result<std::unique_ptr<Session>> ModelOptions::load(const std::string& path) const {
  TESSERA_TRY(SessionOptions options, session());
  ProgressBar bar(precision.empty() ? "reading the weights" : "packing the weights");
  options.page_in = [&bar](uint64_t done, uint64_t total) { bar.update(done, total); };
  options.pack = options.page_in;
  return Session::load(path, options);
}

}  // namespace tessera::cli
