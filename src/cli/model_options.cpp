#include "cli/model_options.h"

#include "backend/backend.h"

namespace tessera::cli {

void ModelOptions::add_to(CLI::App& command) {
  std::vector<std::string> backends = backend_names();
  backends.insert(backends.begin(), "auto");
  const char* group = "Computing";
  command.add_option("--backend", backend, "what computes")
      ->check(CLI::IsMember(backends))
      ->default_str("auto")
      ->group(group);
  command.add_option("--threads", threads, "processor threads (default: as many as the process may use)")
      ->check(CLI::Range(1, 1024))
      ->group(group);
  command
      .add_flag("--exact", exact,
                "float32 activations throughout and a float32 cache: slower, as the reference")
      ->group(group);
  command.add_option("--kv-type", kv_type, "how keys and values are kept (default: f16; f32 with --exact)")
      ->check(CLI::IsMember({"f16", "f32"}))
      ->group(group);
  command
      .add_option("--context", context,
                  "positions of prompt and answer together (default: as the model was trained)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30))
      ->group(group);
  command
      .add_option("--kv-memory", kv_memory,
                  "MB for keys and values (default: at most half of the free memory)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30))
      ->group(group);
}

SessionOptions ModelOptions::session() const {
  SessionOptions options;
  options.backend = backend;
  options.compile.threads = threads;
  options.compile.activations = exact ? ActivationType::kExact : ActivationType::kDefault;
  const bool wide = kv_type.empty() ? exact : kv_type == "f32";
  options.compile.state = wide ? StateType::kF32 : StateType::kF16;
  options.engine.max_running = 1;
  options.engine.context = context;
  options.engine.state_bytes = static_cast<uint64_t>(kv_memory) << 20;
  return options;
}

}  // namespace tessera::cli
