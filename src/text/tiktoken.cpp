// tiktoken's rank files and Mistral's tekken.json: pieces of bytes with ranks, no merges. A word that is a piece is
// that piece; else neighbours that make up a piece are joined, the lowest rank first.
#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "text/base64.h"
#include "text/bpe.h"
#include "text/byte_level.h"
#include "text/tokenizer_files.h"
#include "text/tokenizer_parts.h"

namespace tessera {
namespace {

struct RankedPiece {
  std::string bytes;
  int64_t id = 0;
};

// Ranks order as ids do: the id is the rank plus a constant.
Result<Tokenizer> assemble_ranked(const std::vector<RankedPiece>& pieces, std::string_view pattern,
                                  TokenizerParts parts) {
  Vocabulary vocabulary;
  vocabulary.reserve(pieces.size() + parts.added_tokens.size(), pieces.size() * 8);
  std::vector<bool> mergeable;
  for (const RankedPiece& piece : pieces) {
    if (auto status = vocabulary.add(byte_level_encode(piece.bytes), piece.id); !status)
      return with_context(status.error(), parts.name);
    const auto index = static_cast<size_t>(piece.id);
    if (index >= mergeable.size()) mergeable.resize(index + 1);
    mergeable[index] = true;
  }
  auto split = make_regex_split(pattern);
  if (!split) return with_context(split.error(), parts.name);
  parts.pretokenizer = std::move(*split);
  Bpe::Options options;
  options.alphabet = Bpe::Alphabet::kBytes;
  options.ignore_merges = true;
  TESSERA_TRY(parts.model,
              Bpe::create_from_ranks(std::move(vocabulary), mergeable, std::move(options), parts.name));
  parts.decoder = make_byte_level_decoder();
  return Tokenizer::assemble(std::move(parts));
}

AddedToken special_token(std::string content, int32_t id, bool control) {
  AddedToken token;
  token.content = std::move(content);
  token.id = id;
  token.normalized = false;
  token.special = control;
  return token;
}

}  // namespace

Result<Tokenizer> tokenizer_from_tiktoken(std::string_view file, const TiktokenOptions& options,
                                          const std::string& name) {
  std::vector<RankedPiece> pieces;
  size_t line_number = 0;
  while (!file.empty()) {
    ++line_number;
    const size_t end = std::min(file.find('\n'), file.size());
    std::string_view line = file.substr(0, end);
    file.remove_prefix(std::min(end + 1, file.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const size_t space = line.find(' ');
    RankedPiece piece;
    const auto bytes = space == std::string_view::npos ? std::nullopt : decode_base64(line.substr(0, space));
    const char* last = line.data() + line.size();
    if (!bytes.has_value() || bytes->empty() ||
        std::from_chars(line.data() + space + 1, last, piece.id).ptr != last)
      return fail(ErrorCode::kBadData, "{}: line {}: expected a piece in base64 and its rank", name,
                  line_number);
    piece.bytes = *bytes;
    pieces.push_back(std::move(piece));
  }
  if (pieces.empty()) return fail(ErrorCode::kBadData, "{}: no pieces", name);
  TokenizerParts parts;
  parts.name = name;
  for (const auto& [content, id] : options.special_tokens)
    parts.added_tokens.push_back(special_token(content, id, true));
  return assemble_ranked(pieces, options.pattern, std::move(parts));
}

Result<Tokenizer> tokenizer_from_tekken(std::string_view file, const std::string& name) {
  TESSERA_TRY(const Json root, parse_json(file, name));
  const Json* config = json_find(root, "config");
  const Json* vocab = json_find(root, "vocab");
  if (config == nullptr || vocab == nullptr || !vocab->is_array())
    return fail(ErrorCode::kBadData, "{}: expected config and vocab", name);
  TESSERA_TRY(const std::string pattern, json_string(*config, "pattern", name));
  TESSERA_TRY(const int64_t size, json_integer(*config, "default_vocab_size", name));
  TESSERA_TRY(const int64_t specials, json_integer(*config, "default_num_special_tokens", name));
  if (specials < 0 || size < specials || size > Vocabulary::kMaxId)
    return fail(ErrorCode::kBadData, "{}: {} tokens, {} of them special", name, size, specials);

  TokenizerParts parts;
  parts.name = name;
  const Json* special_list = json_find(root, "special_tokens");
  if (special_list == nullptr || !special_list->is_array())
    return fail(ErrorCode::kUnsupported,
                "{}: special_tokens is missing: files before version 7 do not list them", name);
  for (const Json& item : *special_list) {
    TESSERA_TRY(std::string content, json_string(item, "token_str", name));
    TESSERA_TRY(const int64_t id, json_integer(item, "rank", name));
    TESSERA_TRY(const bool control, json_bool(item, "is_control", name));
    if (id < 0 || id >= specials)
      return fail(ErrorCode::kBadData, "{}: special token \"{}\": expected a rank below {}, found {}", name,
                  content, specials, id);
    if (content == "<s>") parts.bos_id = static_cast<int32_t>(id);
    if (content == "</s>") parts.eos_id = static_cast<int32_t>(id);
    if (content == "<unk>") parts.unknown_id = static_cast<int32_t>(id);
    if (content == "<pad>") parts.pad_id = static_cast<int32_t>(id);
    parts.added_tokens.push_back(special_token(std::move(content), static_cast<int32_t>(id), control));
  }
  std::vector<RankedPiece> pieces;
  for (const Json& item : *vocab) {
    TESSERA_TRY(const int64_t rank, json_integer(item, "rank", name));
    TESSERA_TRY(const std::string encoded, json_string(item, "token_bytes", name));
    const auto bytes = decode_base64(encoded);
    if (!bytes.has_value() || bytes->empty() || rank < 0)
      return fail(ErrorCode::kBadData, "{}: vocab entry {}: bad token_bytes or rank", name, pieces.size());
    if (rank >= size - specials) continue;  // the file may hold more than the model uses
    pieces.push_back({*bytes, rank + specials});
  }
  if (parts.bos_id.has_value()) parts.postprocessor = make_edge_tokens({*parts.bos_id, "<s>"}, {});
  return assemble_ranked(pieces, pattern, std::move(parts));
}

}  // namespace tessera
