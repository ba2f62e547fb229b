// `tessera tokenize`: the ids and pieces of a text.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "cli/command.h"
#include "cli/model_options.h"
#include "engine/session.h"

namespace tessera::cli {
namespace {

struct TokenizeOptions {
  std::string model;
  std::string text;
  bool no_specials = false;
  bool plain_text = false;
  bool json = false;
};

Result<int> tokenize(const TokenizeOptions& options) {
  TESSERA_TRY(const std::shared_ptr<const Checkpoint> checkpoint, Checkpoint::open(options.model));
  TESSERA_TRY(const std::unique_ptr<Tokenizer> tokenizer, load_tokenizer(*checkpoint));
  EncodeOptions encode;
  if (options.no_specials) encode.specials = SpecialTokens::kOmit;
  if (options.plain_text) encode.added_tokens = AddedTokenText::kPlain;
  TESSERA_TRY(const std::vector<int32_t> ids, tokenizer->encode(options.text, encode));
  if (options.json) {
    Json pieces = Json::array();
    for (const int32_t id : ids) pieces.push_back(tokenizer->id_to_token(id));
    const Json line = {{"ids", ids}, {"pieces", std::move(pieces)}, {"text", tokenizer->decode(ids)}};
    fmt::print("{}\n", dump_json(line));
    return 0;
  }
  for (const int32_t id : ids) fmt::print("{:>8}  {}\n", id, tokenizer->id_to_token(id));
  return 0;
}

}  // namespace

void add_tokenize_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<TokenizeOptions>();
  CLI::App* command = app.add_subcommand("tokenize", "Show the token ids and pieces of a text");
  command->add_option("model", options->model, kModelHelp)->required()->type_name("MODEL");
  command->add_option("text", options->text, "the text")->required()->type_name("TEXT");
  command->add_flag("--no-specials", options->no_specials,
                    "without the tokens that the tokenizer puts around a text");
  command->add_flag("--plain", options->plain_text, "the spelling of a control token is text like any other");
  command->add_flag("--json", options->json, "print one JSON object");
  command->footer("");
  command->final_callback([options, &action] { action = [options] { return tokenize(*options); }; });
}

}  // namespace tessera::cli
