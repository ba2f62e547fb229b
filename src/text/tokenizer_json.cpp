// tokenizer.json to a Tokenizer. The vocabulary and the merges, nearly all of the file, are read by simdjson
// straight into their tables; everything else is small and goes through the checked helpers of base/json.h.
#include <simdjson.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "text/bpe.h"
#include "text/component.h"
#include "text/tokenizer.h"
#include "text/tokenizer_config.h"
#include "text/tokenizer_parts.h"
#include "text/unigram.h"
#include "text/wordlevel.h"

namespace tessera {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr size_t kBytesPerPiece = 100;
constexpr size_t kBytesPerMerge = 64;

Failure bad_json(std::string_view where, simdjson::error_code error) {
  return fail(ErrorCode::kBadData, "{}: {}", where, simdjson::error_message(error));
}

// What the "model" object holds. Views point into the parser's buffers.
struct ModelFile {
  bool has_vocabulary = false;
  bool has_merges = false;
  bool has_scores = false;  // the vocabulary is a list of [piece, score]
  Vocabulary vocabulary;
  std::vector<double> scores;
  std::vector<Bpe::Merge> merges;
  Json options = Json::object();
};

// A value as its own JSON document.
Result<Json> small_value(ondemand::value value, const std::string& where) {
  ondemand::json_type type{};
  std::string_view text;
  auto error = value.type().get(type);
  if (!error) {
    if (type == ondemand::json_type::object) {
      ondemand::object object;
      error = value.get_object().get(object);
      if (!error) error = object.raw_json().get(text);
    } else if (type == ondemand::json_type::array) {
      ondemand::array array;
      error = value.get_array().get(array);
      if (!error) error = array.raw_json().get(text);
    } else {
      text = value.raw_json_token();
    }
  }
  if (error) return bad_json(where, error);
  return parse_json(text, where);
}

Status read_piece_map(ondemand::value value, ModelFile& model, const std::string& where) {
  ondemand::object object;
  if (auto error = value.get_object().get(object)) return bad_json(where, error);
  for (auto field : object) {
    std::string_view piece;
    int64_t id = 0;
    auto error = field.unescaped_key().get(piece);
    if (!error) error = field.value().get_int64().get(id);
    if (error) return bad_json(where, error);
    if (auto status = model.vocabulary.add(piece, id); !status) return with_context(status.error(), where);
  }
  return {};
}

Status read_piece_list(ondemand::value value, ModelFile& model, const std::string& where) {
  ondemand::array array;
  if (auto error = value.get_array().get(array)) return bad_json(where, error);
  model.has_scores = true;
  for (auto item : array) {
    ondemand::array pair;
    if (auto error = item.get_array().get(pair)) return bad_json(where, error);
    std::string_view piece;
    double score = 0;
    int members = 0;
    for (auto member : pair) {
      simdjson::error_code error = simdjson::SUCCESS;
      if (members == 0) error = member.get_string().get(piece);
      if (members == 1) error = member.get_double().get(score);
      if (error) return bad_json(where, error);
      ++members;
    }
    if (members != 2) return fail(ErrorCode::kBadData, "{}: expected pairs of a piece and a score", where);
    const auto id = static_cast<int64_t>(model.scores.size());
    if (auto status = model.vocabulary.add(piece, id); !status) return with_context(status.error(), where);
    model.scores.push_back(score);
  }
  return {};
}

Status read_merges(ondemand::value value, ModelFile& model, const std::string& where) {
  ondemand::array array;
  if (auto error = value.get_array().get(array)) return bad_json(where, error);
  const auto bad = [&] {
    return fail(ErrorCode::kBadData, "{}: merge {}: expected two pieces", where, model.merges.size());
  };
  for (auto item : array) {
    ondemand::json_type type{};
    if (auto error = item.type().get(type)) return bad_json(where, error);
    if (type == ondemand::json_type::string) {
      std::string_view line;
      if (auto error = item.get_string().get(line)) return bad_json(where, error);
      if (line.starts_with("#version")) continue;
      const size_t space = line.find(' ');
      if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos)
        return bad();
      model.merges.emplace_back(line.substr(0, space), line.substr(space + 1));
      continue;
    }
    ondemand::array pair;
    if (auto error = item.get_array().get(pair)) return bad_json(where, error);
    std::string_view parts[2];
    size_t members = 0;
    for (auto member : pair) {
      if (members == 2) return bad();
      if (auto error = member.get_string().get(parts[members++])) return bad_json(where, error);
    }
    if (members != 2) return bad();
    model.merges.emplace_back(parts[0], parts[1]);
  }
  return {};
}

Status read_model(ondemand::object object, ModelFile& model, const std::string& where) {
  for (auto field : object) {
    std::string_view key_view;
    if (auto error = field.unescaped_key().get(key_view)) return bad_json(where, error);
    const std::string key(key_view);
    const std::string here = where + "." + key;
    ondemand::value value;
    ondemand::json_type type{};
    auto error = field.value().get(value);
    if (!error) error = value.type().get(type);
    if (error) return bad_json(here, error);
    if (key == "vocab") {
      model.has_vocabulary = true;
      if (type == ondemand::json_type::array) {
        TESSERA_TRY_STATUS(read_piece_list(value, model, here));
      } else if (type == ondemand::json_type::object) {
        TESSERA_TRY_STATUS(read_piece_map(value, model, here));
      } else {
        return fail(ErrorCode::kBadData, "{}: expected object or array", here);
      }
    } else if (key == "merges") {
      if (type != ondemand::json_type::array) return fail(ErrorCode::kBadData, "{}: expected array", here);
      model.has_merges = true;
      TESSERA_TRY_STATUS(read_merges(value, model, here));
    } else {
      TESSERA_TRY(model.options[key], small_value(value, here));
    }
  }
  return {};
}

Result<std::unique_ptr<TokenModel>> make_bpe(ModelFile model, const ComponentReader& reader,
                                             bool byte_level) {
  TESSERA_TRY_STATUS(reader.only({"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                                  "fuse_unk", "byte_fallback", "ignore_merges"}));
  if (!model.has_merges) return reader.error("merges is missing");
  const Json* dropout = json_find(model.options, "dropout");
  if (dropout != nullptr && !dropout->is_null() && (!dropout->is_number() || dropout->get<double>() != 0))
    return fail(ErrorCode::kUnsupported, "{}: dropout other than 0 makes ids random", reader.where());
  Bpe::Options options;
  TESSERA_TRY(options.unknown, reader.optional_text("unk_token"));
  TESSERA_TRY(const auto prefix, reader.optional_text("continuing_subword_prefix"));
  TESSERA_TRY(const auto suffix, reader.optional_text("end_of_word_suffix"));
  options.prefix = prefix.value_or("");
  options.suffix = suffix.value_or("");
  TESSERA_TRY(options.fuse_unknown, reader.flag_or("fuse_unk", false));
  TESSERA_TRY(options.byte_fallback, reader.flag_or("byte_fallback", false));
  TESSERA_TRY(options.ignore_merges, reader.flag_or("ignore_merges", false));
  if (byte_level) options.alphabet = Bpe::Alphabet::kBytes;
  return Bpe::create(std::move(model.vocabulary), model.merges, std::move(options), reader.where());
}

// Legacy files have no "type": the members tell.
std::string model_type(const ModelFile& model) {
  const Json* type = json_find(model.options, "type");
  if (type != nullptr && type->is_string()) return type->get<std::string>();
  if (model.has_merges) return "BPE";
  if (model.has_scores) return "Unigram";
  return model.options.contains("max_input_chars_per_word") ? "WordPiece" : "WordLevel";
}

// True when the model may work on bytes: the pre-tokenizer then need not spell them.
bool spells_plain_pieces(const Json& options) {
  const auto empty = [&](std::string_view key) {
    const Json* found = json_find(options, key);
    return found == nullptr || found->is_null() || *found == "";
  };
  return empty("continuing_subword_prefix") && empty("end_of_word_suffix");
}

Result<std::unique_ptr<TokenModel>> make_model(ModelFile model, PreTokenizer* pretokenizer,
                                               const std::string& where) {
  const std::string type = model_type(model);
  const Json options = model.options;
  const ComponentReader reader(options, where);
  if (type != "BPE" && type != "Unigram" && type != "WordPiece" && type != "WordLevel")
    return fail(ErrorCode::kUnsupported, "{}: unknown model \"{}\"", where, type);
  if (!model.has_vocabulary) return reader.error("vocab is missing");
  if (model.has_scores != (type == "Unigram"))
    return reader.error(fmt::format("vocab does not fit type {}", type));
  if (type == "BPE") {
    const bool byte_level =
        pretokenizer != nullptr && spells_plain_pieces(options) && pretokenizer->drop_byte_level();
    return make_bpe(std::move(model), reader, byte_level);
  }
  if (model.has_merges) return reader.error(fmt::format("merges do not fit type {}", type));
  if (type == "Unigram") {
    TESSERA_TRY_STATUS(reader.only({"unk_id", "byte_fallback"}));
    Unigram::Options unigram;
    int64_t& unknown = unigram.unknown_id;
    const Json* unk_id = json_find(options, "unk_id");
    if (unk_id != nullptr && !unk_id->is_null()) {
      TESSERA_TRY(unknown, reader.integer("unk_id"));
      if (unknown < 0 || unknown > Vocabulary::kMaxId)
        return reader.error(fmt::format("unk_id {} is not in the vocabulary", unknown));
    }
    TESSERA_TRY(unigram.byte_fallback, reader.flag_or("byte_fallback", false));
    return Unigram::create(std::move(model.vocabulary), std::move(model.scores), std::move(unigram), where);
  }
  if (type == "WordLevel") {
    TESSERA_TRY_STATUS(reader.only({"unk_token"}));
    TESSERA_TRY(const std::string unknown, reader.text("unk_token"));
    return std::make_unique<WordLevel>(std::move(model.vocabulary), unknown);
  }
  TESSERA_TRY_STATUS(reader.only({"unk_token", "continuing_subword_prefix", "max_input_chars_per_word"}));
  WordPiece::Options piece;
  TESSERA_TRY(piece.unknown, reader.text("unk_token"));
  TESSERA_TRY(piece.prefix, reader.text("continuing_subword_prefix"));
  TESSERA_TRY(piece.max_characters, reader.integer("max_input_chars_per_word"));
  if (piece.max_characters < 0) return reader.error("max_input_chars_per_word must not be negative");
  return std::make_unique<WordPiece>(std::move(model.vocabulary), std::move(piece));
}

Result<AddedToken> read_added_token(const Json& value, const std::string& where) {
  if (!value.is_object())
    return fail(ErrorCode::kBadData, "{}: expected object, found {}", where, json_type_name(value));
  const ComponentReader reader(value, where);
  TESSERA_TRY_STATUS(
      reader.only({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}));
  AddedToken token;
  TESSERA_TRY(const int64_t id, reader.integer("id"));
  if (id < 0 || id > Vocabulary::kMaxId)
    return reader.error(fmt::format("id: expected at most {}, found {}", Vocabulary::kMaxId, id));
  token.id = static_cast<int32_t>(id);
  TESSERA_TRY(token.content, reader.text("content"));
  TESSERA_TRY(token.single_word, reader.flag("single_word"));
  TESSERA_TRY(token.lstrip, reader.flag("lstrip"));
  TESSERA_TRY(token.rstrip, reader.flag("rstrip"));
  TESSERA_TRY(token.normalized, reader.flag("normalized"));
  TESSERA_TRY(token.special, reader.flag("special"));
  return token;
}

// Ids are given as the reference gives them, not as the file declares them: an added token that the vocabulary has
// keeps its id there, the others are numbered from the size of the vocabulary on.
Status read_added_tokens(const Json& value, size_t model_size, TokenizerParts& parts) {
  const std::string where = parts.name + ": added_tokens";
  if (value.is_null()) return {};
  if (!value.is_array()) return fail(ErrorCode::kBadData, "{}: expected array", where);
  auto next = static_cast<int32_t>(model_size);
  std::unordered_map<std::string, size_t> known;
  for (size_t i = 0; i < value.size(); ++i) {
    TESSERA_TRY(AddedToken token, read_added_token(value[i], fmt::format("{}.{}", where, i)));
    if (token.content.empty()) continue;
    const int32_t declared = token.id;
    const auto before = known.find(token.content);
    token.id = before != known.end() ? parts.added_tokens[before->second].id
                                     : parts.model->vocabulary().find(token.content);
    if (token.id == Vocabulary::kNone) token.id = next++;
    if (token.id != declared)
      parts.notes.push_back(fmt::format("{}: \"{}\" is declared as id {}, but has id {}", where,
                                        token.content, declared, token.id));
    if (before != known.end()) {
      parts.added_tokens[before->second] = std::move(token);
    } else {
      known.emplace(token.content, parts.added_tokens.size());
      parts.added_tokens.push_back(std::move(token));
    }
  }
  return {};
}

Result<std::optional<TruncationRule>> read_truncation(const Json& value, const std::string& where) {
  if (value.is_null()) return std::optional<TruncationRule>();
  if (!value.is_object()) return fail(ErrorCode::kBadData, "{}: expected object", where);
  const ComponentReader reader(value, where);
  TESSERA_TRY_STATUS(reader.only({"direction", "max_length", "strategy", "stride"}));
  TruncationRule rule;
  TESSERA_TRY(const int64_t max_length, reader.integer("max_length"));
  if (max_length < 0) return reader.error("max_length must not be negative");
  rule.max_length = static_cast<size_t>(max_length);
  TESSERA_TRY(const std::string strategy, reader.text("strategy"));
  if (strategy == "OnlyFirst")
    rule.strategy = TruncationStrategy::kOnlyFirst;
  else if (strategy == "OnlySecond")
    rule.strategy = TruncationStrategy::kOnlySecond;
  else if (strategy != "LongestFirst")
    return fail(ErrorCode::kUnsupported, "{}: unknown strategy \"{}\"", where, strategy);
  TESSERA_TRY(const auto direction, reader.optional_text("direction"));
  if (direction == "Left")
    rule.side = TruncationSide::kLeft;
  else if (direction.has_value() && direction != "Right")
    return fail(ErrorCode::kUnsupported, "{}: unknown direction \"{}\"", where, *direction);
  return std::optional(rule);
}

// The parser reads some bytes past the end. Behind a mapped file the rest of the last page is readable.
bool readable_behind(size_t size) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t used = size % page;
  return used != 0 && page - used >= simdjson::SIMDJSON_PADDING;
}

// Everything of the file but the model, and the model.
struct File {
  Json members = Json::object();
  ModelFile model;
};

Status read_file_members(ondemand::document& document, File& file, const std::string& name) {
  ondemand::object root;
  if (auto error = document.get_object().get(root)) return bad_json(name, error);
  bool has_model = false;
  for (auto field : root) {
    std::string_view key_view;
    if (auto error = field.unescaped_key().get(key_view)) return bad_json(name, error);
    const std::string key(key_view);
    ondemand::value value;
    if (auto error = field.value().get(value)) return bad_json(name, error);
    const std::string where = name + ": " + key;
    if (key == "model") {
      if (has_model) return fail(ErrorCode::kBadData, "{}: given twice", where);
      has_model = true;
      ondemand::object object;
      if (auto error = value.get_object().get(object)) return bad_json(where, error);
      TESSERA_TRY_STATUS(read_model(object, file.model, where));
    } else {
      TESSERA_TRY(file.members[key], small_value(value, where));
    }
  }
  const char* behind = nullptr;
  if (!document.current_location().get(behind))
    return fail(ErrorCode::kBadData, "{}: text behind the JSON document", name);
  if (!has_model) return fail(ErrorCode::kBadData, "{}: model is missing", name);
  return ComponentReader(file.members, name)
      .only({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
             "post_processor", "decoder"});
}

const Json& member(const Json& object, std::string_view key) {
  static const Json kNull;
  const Json* found = json_find(object, key);
  return found == nullptr ? kNull : *found;
}

}  // namespace

Result<Tokenizer> Tokenizer::from_json(const TokenizerFiles& files, const std::string& name) {
  return from_json_text(files.tokenizer_json, TextMemory::kOrdinary, files, name);
}

Result<Tokenizer> Tokenizer::from_json_text(std::string_view text, TextMemory memory,
                                            const TokenizerFiles& files, const std::string& name) {
  ondemand::parser parser;
  simdjson::padded_string copy;
  simdjson::padded_string_view padded;
  if (memory == TextMemory::kMapped && readable_behind(text.size())) {
    padded = simdjson::padded_string_view(text.data(), text.size(), text.size() + simdjson::SIMDJSON_PADDING);
  } else {
    copy = simdjson::padded_string(text);
    padded = copy;
  }
  ondemand::document document;
  if (auto error = parser.iterate(padded).get(document)) return bad_json(name, error);
  File file;
  // Growing these tables step by step would move megabytes; published files take about 100 bytes a piece.
  file.model.vocabulary.reserve(text.size() / kBytesPerPiece, text.size() / kBytesPerPiece * 8);
  file.model.merges.reserve(text.size() / kBytesPerMerge);
  TESSERA_TRY_STATUS(read_file_members(document, file, name));
  const Json& members = file.members;
  const Json& version = member(members, "version");
  if (!version.is_null() && version != "1.0")
    return fail(ErrorCode::kUnsupported, "{}: version: expected \"1.0\", found {}", name, dump_json(version));

  TokenizerParts parts;
  parts.name = name;
  TESSERA_TRY(parts.normalizer, create_normalizer(member(members, "normalizer"), name + ": normalizer"));
  TESSERA_TRY(parts.pretokenizer,
              create_pretokenizer(member(members, "pre_tokenizer"), name + ": pre_tokenizer"));
  TESSERA_TRY(parts.postprocessor,
              create_postprocessor(member(members, "post_processor"), name + ": post_processor"));
  TESSERA_TRY(parts.decoder, create_decoder(member(members, "decoder"), name + ": decoder"));
  TESSERA_TRY(parts.truncation, read_truncation(member(members, "truncation"), name + ": truncation"));
  const size_t model_size = std::max(file.model.vocabulary.size(), file.model.scores.size());
  TESSERA_TRY(parts.model, make_model(std::move(file.model), parts.pretokenizer.get(), name + ": model"));
  TESSERA_TRY_STATUS(read_added_tokens(member(members, "added_tokens"), model_size, parts));
  TESSERA_TRY_STATUS(apply_tokenizer_config(files, name, parts));
  return assemble(std::move(parts));
}

}  // namespace tessera
