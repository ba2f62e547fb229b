// `tessera bench`: prompt and decode speed, and how near decoding comes to the speed of the memory.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/terminal.h"
#include "tools/benchmark.h"
#include "tools/copy_bandwidth.h"
#include "tools/presets.h"
#include "tools/random_model.h"

namespace tessera::cli {
namespace {

struct BenchOptions {
  std::string model;
  std::string random;
  std::string format = "q8_0";
  ModelOptions computing;
  BenchmarkOptions benchmark;
  bool json = false;
};

Json result_json(const BenchOptions& options, Session& session, const BenchmarkResult& result, double copy,
                 uint64_t peak) {
  const uint64_t weights = session.model().weights.bytes();
  Json json = Json::object();
  json["model"] = options.random.empty() ? options.model : options.random;
  if (!options.random.empty()) json["format"] = options.format;
  json["backend"] = session.backend().description();
  json["threads"] = options.computing.threads;
  json["weight_bytes"] = weights;
  json["state_bytes"] = session.engine().state_bytes();
  json["peak_memory_bytes"] = peak;
  json["copy_bytes_per_second"] = copy;
  Json prompts = Json::array();
  for (const PromptSpeed& prompt : result.prompts)
    prompts.push_back({{"tokens", prompt.tokens}, {"tokens_per_second", prompt.tokens_per_second}});
  json["prompt"] = std::move(prompts);
  Json decodes = Json::array();
  for (const DecodeSpeed& decode : result.decodes)
    decodes.push_back({{"tokens", decode.tokens},
                       {"depth", decode.depth},
                       {"tokens_per_second", decode.tokens_per_second},
                       {"bytes_per_second", decode.bytes_per_second},
                       {"share_of_copy", decode.bytes_per_second / copy}});
  json["decode"] = std::move(decodes);
  return json;
}

void print_result(const Json& json) {
  fmt::print("{}{}, {}, weights {}\n", json["model"].get<std::string>(),
             json.contains("format") ? " (random " + json["format"].get<std::string>() + ")" : "",
             json["backend"].get<std::string>(), size_text(json["weight_bytes"].get<uint64_t>()));
  for (const Json& prompt : json["prompt"])
    fmt::print("prompt {:>6} tokens  {:>9.1f} tokens/s\n", prompt["tokens"].get<int64_t>(),
               prompt["tokens_per_second"].get<double>());
  for (const Json& decode : json["decode"])
    fmt::print(
        "decode {:>6} tokens  {:>9.1f} tokens/s  {:.2f} GB/s, {:.0f}% of the copy bandwidth (after {} "
        "positions)\n",
        decode["tokens"].get<int64_t>(), decode["tokens_per_second"].get<double>(),
        decode["bytes_per_second"].get<double>() / 1e9, 100 * decode["share_of_copy"].get<double>(),
        decode["depth"].get<int64_t>());
  fmt::print("copy bandwidth {:.2f} GB/s with {} threads (read + written); peak memory {}, of it state {}\n",
             json["copy_bytes_per_second"].get<double>() / 1e9, json["threads"].get<int>(),
             size_text(json["peak_memory_bytes"].get<uint64_t>()),
             size_text(json["state_bytes"].get<uint64_t>()));
}

Result<std::unique_ptr<Session>> load(const BenchOptions& options, ThreadPool& threads) {
  if (!options.random.empty()) {
    if (!options.computing.precision.empty())
      return fail(ErrorCode::kInvalidArgument,
                  "bench: --precision packs a file; random weights take --format");
    TESSERA_TRY(const SessionOptions session, options.computing.session());
    TESSERA_TRY(const Format format, parse_packed_format(options.format));
    TESSERA_TRY(const Config config, preset_config(options.random));
    TESSERA_TRY(LoadedModel model, random_model(config, format, threads));
    return Session::create(std::move(model), session);
  }
  return options.computing.load(options.model);
}

Result<int> bench(BenchOptions options) {
  if (options.model.empty() == options.random.empty())
    return fail(ErrorCode::kInvalidArgument, "bench: expected a model or --random NAME, found {}",
                options.model.empty() ? "neither" : "both");
  if (options.computing.threads == 0) options.computing.threads = available_processors();
  const auto thread_count = static_cast<int>(options.computing.threads);
  uint64_t peak = 0;
  std::unique_ptr<Session> session;
  BenchmarkResult result;
  {
    ThreadPool threads(thread_count);
    TESSERA_TRY(session, load(options, threads));
  }
  for (const std::string& warning : session->warnings()) print_warning(warning);
  TESSERA_TRY(result, run_benchmark(*session, options.benchmark));
  peak = peak_memory();  // before the buffers of the copy
  ThreadPool threads(thread_count);
  const Json json = result_json(options, *session, result, copy_bandwidth(threads), peak);
  if (options.json) {
    fmt::print("{}\n", dump_json(json));
  } else {
    print_result(json);
  }
  return 0;
}

}  // namespace

void add_bench_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "Measure prompt and decode speed");
  const auto add = [command](const char* name, auto& value, const char* type, const char* help) {
    return command->add_option(name, value, help)->type_name(type);
  };
  BenchmarkOptions& benchmark = options->benchmark;
  add("model", options->model, "MODEL", kModelHelp);
  add("--random", options->random, "NAME",
      "random weights of the dimensions of a preset (listed below) or of a config.json");
  add("--format", options->format, "NAME", "format of the random weights (default: q8_0)");
  add("--prompt", benchmark.prompts, "N,N,...", "lengths of prompts, tokens (default: 128,512)")
      ->delimiter(',')
      ->check(between(1, kMaxCount));
  add("--decode", benchmark.decode, "N", "tokens to decode; 0: none (default: 64)")
      ->check(between(0, kMaxCount));
  add("--depth", benchmark.depth, "N", "positions before decoding begins (default: 0)")
      ->check(between(0, kMaxCount));
  add("--repeat", benchmark.repeat, "N", "medians of so many runs (default: 3)")->check(between(1, 1000));
  command->add_flag("--json", options->json, "print one JSON object");
  options->computing.add_to(*command);
  std::string footer = "Presets:";
  size_t line = footer.size();
  for (const std::string& name : preset_names()) {
    if (line + name.size() > 100) {
      footer += "\n ";
      line = 1;
    }
    footer += " " + name;
    line += name.size() + 1;
  }
  command->footer(footer);
  command->final_callback([options, &action] { action = [options] { return bench(*options); }; });
}

}  // namespace tessera::cli
