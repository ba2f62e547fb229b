// See gguf_vocabulary.h; the table of pre-tokenizers is in gguf_pretokenizers.cpp.
#include "text/gguf_vocabulary.h"

#include <limits>

namespace tessera {
namespace {

constexpr std::string_view kPrefix = "tokenizer.ggml.";

class Reader {
 public:
  explicit Reader(const GgufMetadata& metadata) : metadata_(metadata) {}

  [[nodiscard]] const GgufValue* find(std::string_view key) const {
    const auto found = metadata_.find(fmt::format("{}{}", kPrefix, key));
    return found == metadata_.end() ? nullptr : &found->second;
  }

  Result<std::optional<std::string>> text(std::string_view key) const {
    const GgufValue* value = find(key);
    if (value == nullptr) return std::optional<std::string>();
    if (const auto* found = std::get_if<std::string>(&value->value)) return std::optional(*found);
    return wrong(key, "a string");
  }

  Result<std::optional<bool>> flag(std::string_view key) const {
    const GgufValue* value = find(key);
    if (value == nullptr) return std::optional<bool>();
    if (const auto* found = std::get_if<bool>(&value->value)) return std::optional(*found);
    return wrong(key, "a bool");
  }

  // An id of the vocabulary. One outside it is dropped, as published files have -1 and the like for "none".
  Result<std::optional<int32_t>> id(std::string_view key, size_t tokens) const {
    const GgufValue* value = find(key);
    if (value == nullptr) return std::optional<int32_t>();
    const std::optional<int64_t> found = integer(*value);
    if (!found.has_value()) return wrong(key, "an integer");
    if (*found < 0 || static_cast<uint64_t>(*found) >= tokens) return std::optional<int32_t>();
    return std::optional(static_cast<int32_t>(*found));
  }

  Result<const GgufArray*> array(std::string_view key) const {
    const GgufValue* value = find(key);
    if (value == nullptr) return nullptr;
    if (const auto* found = std::get_if<GgufArray>(&value->value)) return found;
    return wrong(key, "an array");
  }

  Result<std::vector<std::string>> texts(std::string_view key) const {
    TESSERA_TRY(const GgufArray* list, array(key));
    std::vector<std::string> out;
    if (list == nullptr) return out;
    out.reserve(list->size());
    for (const GgufValue& item : *list) {
      const auto* text = std::get_if<std::string>(&item.value);
      if (text == nullptr) return wrong(key, "an array of strings");
      out.push_back(*text);
    }
    return out;
  }

  static std::optional<int64_t> integer(const GgufValue& value) {
    if (const auto* found = std::get_if<int64_t>(&value.value)) return *found;
    if (const auto* found = std::get_if<uint64_t>(&value.value))
      return *found > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())
                 ? -1
                 : static_cast<int64_t>(*found);
    return std::nullopt;
  }

  static std::optional<double> number(const GgufValue& value) {
    if (const auto* found = std::get_if<double>(&value.value)) return *found;
    const std::optional<int64_t> whole = integer(value);
    return whole.has_value() ? std::optional(static_cast<double>(*whole)) : std::nullopt;
  }

  static Failure wrong(std::string_view key, std::string_view expected) {
    return fail(ErrorCode::kBadData, "{}{}: expected {}", kPrefix, key, expected);
  }

  static Failure wrong_length(std::string_view key, size_t expected, size_t found) {
    return fail(ErrorCode::kBadData, "{}{}: expected {} entries, found {}", kPrefix, key, expected, found);
  }

 private:
  const GgufMetadata& metadata_;
};

Status read_numbers(const Reader& reader, GgufVocabulary& out) {
  TESSERA_TRY(const GgufArray* scores, reader.array("scores"));
  if (scores != nullptr) {
    if (scores->size() != out.tokens.size())
      return Reader::wrong_length("scores", out.tokens.size(), scores->size());
    for (const GgufValue& item : *scores) {
      const std::optional<double> score = Reader::number(item);
      if (!score.has_value()) return Reader::wrong("scores", "numbers");
      out.scores.push_back(static_cast<float>(*score));
    }
  }
  TESSERA_TRY(const GgufArray* types, reader.array("token_type"));
  if (types != nullptr) {
    if (types->size() != out.tokens.size())
      return Reader::wrong_length("token_type", out.tokens.size(), types->size());
    for (const GgufValue& item : *types) {
      const std::optional<int64_t> type = Reader::integer(item);
      if (!type.has_value() || *type < 0 || *type > static_cast<int64_t>(GgufTokenType::kByte))
        return Reader::wrong("token_type", "integers from 0 to 6");
      out.types.push_back(static_cast<GgufTokenType>(*type));
    }
  }
  TESSERA_TRY(const GgufArray* charsmap, reader.array("precompiled_charsmap"));
  if (charsmap == nullptr) return {};
  for (const GgufValue& item : *charsmap) {
    const std::optional<int64_t> byte = Reader::integer(item);
    if (!byte.has_value() || *byte < -128 || *byte > 255)
      return Reader::wrong("precompiled_charsmap", "bytes");
    out.precompiled_charsmap += static_cast<char>(*byte);
  }
  return {};
}

}  // namespace

Result<GgufVocabulary> read_gguf_vocabulary(const GgufMetadata& metadata) {
  const Reader reader(metadata);
  GgufVocabulary out;
  TESSERA_TRY(const auto model, reader.text("model"));
  TESSERA_TRY(const auto pre, reader.text("pre"));
  TESSERA_TRY(out.tokens, reader.texts("tokens"));
  if (!model.has_value() || out.tokens.empty())
    return fail(ErrorCode::kNotFound, "no vocabulary: {}model and {}tokens are not there", kPrefix, kPrefix);
  out.model = *model;
  out.pre = pre.value_or("");
  TESSERA_TRY(out.merges, reader.texts("merges"));
  TESSERA_TRY_STATUS(read_numbers(reader, out));
  const size_t count = out.tokens.size();
  TESSERA_TRY(out.bos_id, reader.id("bos_token_id", count));
  TESSERA_TRY(out.eos_id, reader.id("eos_token_id", count));
  TESSERA_TRY(out.eot_id, reader.id("eot_token_id", count));
  TESSERA_TRY(out.eom_id, reader.id("eom_token_id", count));
  TESSERA_TRY(out.unknown_id, reader.id("unknown_token_id", count));
  TESSERA_TRY(out.separator_id, reader.id("seperator_token_id", count));  // spelled so in the files
  TESSERA_TRY(out.pad_id, reader.id("padding_token_id", count));
  TESSERA_TRY(out.cls_id, reader.id("cls_token_id", count));
  TESSERA_TRY(out.add_bos, reader.flag("add_bos_token"));
  TESSERA_TRY(out.add_eos, reader.flag("add_eos_token"));
  TESSERA_TRY(out.add_space_prefix, reader.flag("add_space_prefix"));
  TESSERA_TRY(out.remove_extra_whitespaces, reader.flag("remove_extra_whitespaces"));
  TESSERA_TRY(out.lowercase, reader.flag("normalizer.lowercase"));
  TESSERA_TRY(out.strip_accents, reader.flag("normalizer.strip_accents"));
  return out;
}

}  // namespace tessera
