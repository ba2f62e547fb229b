// `tessera template`: a conversation as the model's own chat template writes it.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/mapped_file.h"
#include "cli/command.h"
#include "cli/model_options.h"
#include "engine/session.h"
#include "text/chat_template.h"

namespace tessera::cli {
namespace {

struct TemplateOptions {
  std::string model;
  std::string messages;
  std::string tools;
  std::string variables;
  std::string file;
  bool no_generation_prompt = false;
  bool json = false;
};

Result<int> show(const TemplateOptions& options) {
  TESSERA_TRY(const std::shared_ptr<const Checkpoint> checkpoint, Checkpoint::open(options.model));
  TESSERA_TRY(const std::unique_ptr<Tokenizer> tokenizer, load_tokenizer(*checkpoint));
  ChatTemplateSource source;
  if (options.file.empty()) {
    TESSERA_TRY(source, find_chat_template(*checkpoint));
  } else {
    source.origin = options.file;
    TESSERA_TRY(source.text, read_file(options.file));
  }
  TESSERA_TRY(const Json messages, read_json_file(options.messages));
  Json tools;
  Json variables;
  ChatRequest request{messages};
  if (!options.tools.empty()) {
    TESSERA_TRY(tools, read_json_file(options.tools));
    request.tools = &tools;
  }
  if (!options.variables.empty()) {
    TESSERA_TRY(variables, parse_json(options.variables, "--set"));
    if (!variables.is_object())
      return fail(ErrorCode::kInvalidArgument, "--set: expected an object, found {}",
                  json_type_name(variables));
    request.variables = &variables;
  }
  request.add_generation_prompt = !options.no_generation_prompt;
  jinja::RenderOptions render;
  render.clock = jinja::Clock::now();
  TESSERA_TRY(const jinja::MarkedText text, render_chat(source, *tokenizer, request, render));
  if (options.json) {
    Json ranges = Json::array();
    for (const jinja::ByteRange& range : text.data_ranges()) ranges.push_back({range.begin, range.end});
    fmt::print("{}\n", dump_json({{"text", text.bytes()}, {"data", std::move(ranges)}}));
    return 0;
  }
  std::fwrite(text.bytes().data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace

void add_template_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<TemplateOptions>();
  CLI::App* command =
      app.add_subcommand("template", "Show a conversation as the model's chat template writes it");
  command->add_option("model", options->model, kModelHelp)->required()->type_name("MODEL");
  command->add_option("--messages", options->messages, "a JSON array of messages")
      ->required()
      ->type_name("FILE");
  command->add_option("--tools", options->tools, "a JSON array of tools")->type_name("FILE");
  command
      ->add_option("--set", options->variables,
                   "more variables: a JSON object, as {\"enable_thinking\": false}")
      ->type_name("JSON");
  command->add_option("--template", options->file, "this template instead of the model's")->type_name("FILE");
  command->add_flag("--no-generation-prompt", options->no_generation_prompt, "do not begin an answer");
  command->add_flag(
      "--json", options->json,
      "print one JSON object: the text, and the byte ranges of it that come from the conversation");
  command->footer("");
  command->final_callback([options, &action] { action = [options] { return show(*options); }; });
}

}  // namespace tessera::cli
