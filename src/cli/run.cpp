// `tessera run`: streams one answer.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/mapped_file.h"
#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/terminal.h"

namespace tessera::cli {
namespace {

struct RunOptions {
  std::string model;
  ModelOptions computing;
  std::string prompt;
  std::string prompt_file;
  std::optional<int64_t> max_tokens;
  int64_t min_tokens = 0;
  std::optional<double> temperature;
  std::optional<int64_t> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<uint64_t> seed;
  std::optional<double> repetition_penalty;
  double presence_penalty = 0;
  double frequency_penalty = 0;
  std::vector<std::string> stops;
  bool ignore_eos = false;
  bool json = false;
  bool stats = false;
};

using SteadyTime = std::chrono::steady_clock::time_point;

double seconds_since(SteadyTime start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double per_second(int64_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

Result<std::string> read_prompt(const RunOptions& options) {
  if (options.prompt_file.empty()) return options.prompt;
  if (options.prompt_file != "-") return read_file(options.prompt_file);
  return std::string(std::istreambuf_iterator<char>(std::cin), {});
}

Request make_request(const RunOptions& options, const Session& session, std::vector<int32_t> prompt) {
  Request request;
  request.prompt = std::move(prompt);
  request.max_tokens = options.max_tokens;
  request.min_tokens = options.min_tokens;
  request.stop_strings = options.stops;
  request.end_of_sequence = options.ignore_eos ? EndOfSequence::kIgnored : EndOfSequence::kStops;
  SamplingOptions& sampling = request.sampling;
  sampling = session.generation().sampling;
  sampling.temperature = options.temperature.value_or(sampling.temperature);
  sampling.top_k = options.top_k.value_or(sampling.top_k);
  sampling.top_p = options.top_p.value_or(sampling.top_p);
  sampling.min_p = options.min_p.value_or(sampling.min_p);
  sampling.repetition_penalty = options.repetition_penalty.value_or(sampling.repetition_penalty);
  sampling.presence_penalty = options.presence_penalty;
  sampling.frequency_penalty = options.frequency_penalty;
  sampling.seed = options.seed;
  return request;
}

void print_event(const RunOptions& options, const Event& event) {
  if (options.json) {
    Json line = Json::object();
    if (event.id >= 0) line["id"] = event.id;
    line["text"] = event.text;
    if (event.id >= 0 || !event.text.empty()) fmt::print("{}\n", dump_json(line));
  } else {
    std::fwrite(event.text.data(), 1, event.text.size(), stdout);
  }
  std::fflush(stdout);
}

void print_report(const RunOptions& options, const Report& report, double load_seconds) {
  const int64_t decoded = std::max<int64_t>(0, report.output_tokens - 1);
  const double prompt_speed = per_second(report.prompt_tokens, report.prompt_seconds);
  const double decode_speed = per_second(decoded, report.decode_seconds);
  if (options.json) {
    const Json line = {{"finish_reason", finish_reason_name(report.reason)},
                       {"prompt_tokens", report.prompt_tokens},
                       {"output_tokens", report.output_tokens},
                       {"seed", report.seed},
                       {"load_seconds", load_seconds},
                       {"prompt_seconds", report.prompt_seconds},
                       {"decode_seconds", report.decode_seconds},
                       {"prompt_tokens_per_second", prompt_speed},
                       {"decode_tokens_per_second", decode_speed}};
    fmt::print("{}\n", dump_json(line));
  }
  if (!options.stats) return;
  fmt::print(stderr,
             "load {:.3f} s; prompt {} tokens, {:.1f} tokens/s; decode {} tokens, {:.1f} tokens/s; ended: "
             "{}; seed {}\n",
             load_seconds, report.prompt_tokens, prompt_speed, decoded, decode_speed,
             finish_reason_name(report.reason), report.seed);
}

Result<int> run(const RunOptions& options) {
  const SteadyTime start = std::chrono::steady_clock::now();
  TESSERA_TRY(const std::string text, read_prompt(options));
  TESSERA_TRY(const std::unique_ptr<Session> session, options.computing.load(options.model));
  for (const std::string& warning : session->warnings()) print_warning(warning);
  Engine& engine = session->engine();
  if (engine.context() < session->spec().context && options.computing.context == 0)
    print_warning(
        fmt::format("the context is {} of the {} positions the model was trained for: more does not fit the "
                    "memory for keys and values",
                    engine.context(), session->spec().context));
  TESSERA_TRY(std::vector<int32_t> prompt, session->encode_prompt(text));
  TESSERA_TRY(const RequestId id, engine.submit(make_request(options, *session, std::move(prompt))));
  const double load_seconds = seconds_since(start);

  catch_interrupts();
  while (true) {
    TESSERA_TRY(const std::span<const Event> events, engine.step());
    if (interrupted()) engine.cancel(id);
    for (const Event& event : events) {
      if (!event.finished || event.finished->reason != FinishReason::kError) print_event(options, event);
      if (!event.finished) continue;
      if (!options.json) fmt::print("\n");
      std::fflush(stdout);
      if (event.finished->reason == FinishReason::kError)
        return fail(ErrorCode::kDevice, "{}", event.finished->error);
      print_report(options, *event.finished, load_seconds);
      return event.finished->reason == FinishReason::kCancelled ? 130 : 0;
    }
  }
}

}  // namespace

void add_run_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Continue a text, streaming the answer");
  const auto add = [command](const char* name, auto& value, const char* type, const char* help) {
    return command->add_option(name, value, help)->type_name(type);
  };
  add("model", options->model, "MODEL", kModelHelp)->required();
  CLI::Option* prompt =
      add("--prompt", options->prompt, "TEXT", "the text to continue (default: none, the model begins)");
  add("--prompt-file", options->prompt_file, "FILE", "a file with that text; - is standard input")
      ->excludes(prompt);
  add("--max-tokens", options->max_tokens, "N",
      "at most so many (default: until the model ends or the context is full)");
  add("--min-tokens", options->min_tokens, "N", "no end before so many tokens");
  add("--stop", options->stops, "TEXT", "end before this text; may be given several times")
      ->allow_extra_args(false);
  command->add_flag("--ignore-eos", options->ignore_eos, "go on when the model ends its text");
  command->add_flag("--json", options->json, "print one JSON object a line: every token, then a report");
  command->add_flag("--stats", options->stats, "say load time and speed on stderr");

  const char* group = "Sampling (defaults: the model's generation_config.json, else greedy)";
  const auto add_sampling = [&](const char* name, auto& value, const char* type, const char* help) {
    add(name, value, type, help)->group(group);
  };
  add_sampling("--temperature", options->temperature, "X", "0: always the most likely token");
  add_sampling("--top-k", options->top_k, "N", "only the most likely tokens; 0: off");
  add_sampling("--top-p", options->top_p, "P", "only the most likely tokens that together reach P; 1: off");
  add_sampling("--min-p", options->min_p, "P", "only tokens at least P times as likely as the first; 0: off");
  add_sampling("--seed", options->seed, "N", "the same seed gives the same text (default: a random one)");
  add_sampling("--repetition-penalty", options->repetition_penalty, "X",
               "divides the logits of what prompt and answer hold; 1: off");
  add_sampling("--presence-penalty", options->presence_penalty, "X",
               "subtracted from the logits of what the answer holds");
  add_sampling("--frequency-penalty", options->frequency_penalty, "X", "the same, for every occurrence");
  options->computing.add_to(*command);
  command->final_callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace tessera::cli
