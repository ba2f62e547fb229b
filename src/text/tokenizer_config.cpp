// See tokenizer_config.h.
#include "text/tokenizer_config.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace tessera {
namespace {

// The classes of transformers that put BOS and EOS where add_bos_token and add_eos_token say, whatever template
// the tokenizer.json has. For every other class the template stands.
constexpr std::array<std::string_view, 8> kRebuildsTemplate = {
    "LlamaTokenizer", "LlamaTokenizerFast", "CodeLlamaTokenizer", "CodeLlamaTokenizerFast",
    "GemmaTokenizer", "GemmaTokenizerFast", "CohereTokenizer",    "CohereTokenizerFast"};

// A token is written as a string or as {"content": string, ...}; null and absence mean that there is none.
std::optional<std::string> token_text(const Json& config, std::string_view key) {
  const Json* value = json_find(config, key);
  if (value != nullptr && value->is_object()) value = json_find(*value, "content");
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return value->get<std::string>();
}

std::optional<int32_t> find_id(const TokenizerParts& parts, std::string_view piece) {
  for (const AddedToken& token : parts.added_tokens)
    if (token.content == piece) return token.id;
  const int32_t id = parts.model->vocabulary().find(piece);
  return id == Vocabulary::kNone ? std::nullopt : std::optional(id);
}

std::optional<bool> flag(const Json& config, std::string_view key) {
  const Json* value = json_find(config, key);
  if (value == nullptr || !value->is_boolean()) return std::nullopt;
  return value->get<bool>();
}

}  // namespace

Status apply_tokenizer_config(const TokenizerFiles& files, const std::string& name, TokenizerParts& parts) {
  Json config = Json::object();
  Json map = Json::object();
  if (!files.tokenizer_config_json.empty()) {
    TESSERA_TRY(config, parse_python_json(files.tokenizer_config_json, name + " (tokenizer_config.json)"));
  }
  if (!files.special_tokens_map_json.empty()) {
    TESSERA_TRY(map, parse_python_json(files.special_tokens_map_json, name + " (special_tokens_map.json)"));
  }

  const auto token = [&](std::string_view key) -> std::optional<int32_t> {
    std::optional<std::string> text = token_text(config, key);
    if (!text.has_value() && json_find(config, key) == nullptr) text = token_text(map, key);
    if (!text.has_value()) return std::nullopt;
    const std::optional<int32_t> id = find_id(parts, *text);
    if (!id.has_value())
      parts.notes.push_back(fmt::format("{}: {} \"{}\" is not in the vocabulary", name, key, *text));
    return id;
  };
  const auto set = [&](std::optional<int32_t>& id, std::string_view key) {
    if (const std::optional<int32_t> found = token(key)) id = found;
  };
  set(parts.bos_id, "bos_token");
  set(parts.eos_id, "eos_token");
  set(parts.unknown_id, "unk_token");
  set(parts.pad_id, "pad_token");

  const std::string kind = token_text(config, "tokenizer_class").value_or("");
  if (std::find(kRebuildsTemplate.begin(), kRebuildsTemplate.end(), kind) == kRebuildsTemplate.end())
    return {};
  const std::optional<bool> add_bos = flag(config, "add_bos_token");
  const std::optional<bool> add_eos = flag(config, "add_eos_token");
  if (!add_bos.has_value() && !add_eos.has_value()) return {};
  const std::vector<int32_t> now =
      parts.postprocessor == nullptr ? std::vector<int32_t>() : parts.postprocessor->special_ids();
  const auto edge = [&](std::optional<bool> wanted, std::optional<int32_t> id,
                        std::string_view key) -> EdgeToken {
    if (!id.has_value()) return {};
    const bool has = std::find(now.begin(), now.end(), *id) != now.end();
    if (!wanted.value_or(has)) return {};
    return {*id, token_text(config, key).value_or("")};
  };
  const EdgeToken first = edge(add_bos, parts.bos_id, "bos_token");
  const EdgeToken last = edge(add_eos, parts.eos_id, "eos_token");
  std::vector<int32_t> wanted;
  if (first.id >= 0) wanted.push_back(first.id);
  if (last.id >= 0) wanted.push_back(last.id);
  if (wanted != now) parts.postprocessor = make_edge_tokens(first, last);
  return {};
}

}  // namespace tessera
