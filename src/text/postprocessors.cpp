// See postprocessor.h.
#include "text/postprocessor.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "text/byte_level.h"
#include "text/component.h"
#include "text/unicode.h"

namespace tessera {
namespace {

// A special token as an encoding of its own; details only where the others have them.
void append_special(Encoding& out, int32_t id, std::string_view piece, int32_t type_id, bool details) {
  out.ids.push_back(id);
  if (!details) return;
  out.offsets.push_back({0, 0});
  out.type_ids.push_back(type_id);
  out.special.push_back(1);
  out.pieces.emplace_back(piece);
}

bool has_details(const std::vector<Encoding>& inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [](const Encoding& e) { return e.detailed; });
}

// White space at the ends of a token's text out of its offsets. A single leading space of the first token stays
// when add_prefix_space may have put it there.
void trim_offsets(Encoding& encoding, bool add_prefix_space) {
  const auto is_space = [](char32_t code) {
    return code == byte_level_character(' ') || unicode::is_white_space(code);
  };
  for (size_t i = 0; i < encoding.offsets.size(); ++i) {
    const std::string& piece = encoding.pieces[i];
    SourceRange& range = encoding.offsets[i];
    uint32_t leading = 0;  // characters
    uint32_t leading_size = 0;
    uint32_t trailing_size = 0;
    // The space of the byte-level alphabet stands for one byte.
    const auto size_of = [&](const unicode::Character& c) {
      return encoding.unit == OffsetUnit::kCharacters || c.code == byte_level_character(' ') ? 1 : c.length;
    };
    for (size_t at = 0; at < piece.size();) {
      const unicode::Character c = unicode::decode(piece, at);
      if (!is_space(c.code)) break;
      ++leading;
      leading_size += size_of(c);
      at += c.length;
    }
    for (size_t at = piece.size(); at > 0;) {
      const unicode::Character c = unicode::decode_before(piece, at);
      if (!is_space(c.code)) break;
      trailing_size += size_of(c);
      at -= c.length;
    }
    if (leading > 0) {
      const bool first = i == 0 || range.begin == 0;
      if (first && add_prefix_space && leading == 1) leading_size = 0;
      range.begin = std::min(range.begin + leading_size, range.end);
    }
    if (trailing_size > 0 && range.end >= trailing_size)
      range.end = std::max(range.end - trailing_size, range.begin);
  }
}

class ByteLevel : public PostProcessor {
 public:
  ByteLevel(bool trim, bool add_prefix_space) : trim_(trim), add_prefix_space_(add_prefix_space) {}
  void apply(std::vector<Encoding>& inputs, SpecialTokens) const override {
    if (!trim_) return;
    for (Encoding& input : inputs) trim_offsets(input, add_prefix_space_);
  }
  size_t added_tokens(size_t) const override { return 0; }

 private:
  bool trim_;
  bool add_prefix_space_;
};

class Template : public PostProcessor {
 public:
  struct Piece {
    int input = -1;  // 0: A, 1: B, -1: the tokens below
    int32_t type_id = 0;
    std::vector<EdgeToken> tokens;
  };
  Template(std::vector<Piece> single, std::vector<Piece> pair)
      : single_(std::move(single)), pair_(std::move(pair)) {}

  void apply(std::vector<Encoding>& inputs, SpecialTokens specials) const override {
    const bool details = has_details(inputs);
    std::vector<Encoding> out;
    for (const Piece& piece : inputs.size() == 1 ? single_ : pair_) {
      if (piece.input >= 0) {
        Encoding& input = inputs[static_cast<size_t>(piece.input)];
        std::fill(input.type_ids.begin(), input.type_ids.end(), piece.type_id);
        out.push_back(input);
      } else if (specials == SpecialTokens::kAdd) {
        Encoding added;
        for (const EdgeToken& token : piece.tokens)
          append_special(added, token.id, token.piece, piece.type_id, details);
        out.push_back(std::move(added));
      }
    }
    inputs = std::move(out);
  }

  size_t added_tokens(size_t inputs) const override {
    size_t count = 0;
    for (const Piece& piece : inputs == 1 ? single_ : pair_) count += piece.tokens.size();
    return count;
  }

  std::vector<int32_t> special_ids() const override {
    std::vector<int32_t> ids;
    for (const Piece& piece : single_)
      for (const EdgeToken& token : piece.tokens) ids.push_back(token.id);
    return ids;
  }

 private:
  std::vector<Piece> single_;
  std::vector<Piece> pair_;
};

// [CLS] A [SEP] and B [SEP]; RoBERTa writes [SEP] B [SEP], gives everything type 0 and trims offsets.
class Classic : public PostProcessor {
 public:
  struct Options {
    EdgeToken cls;
    EdgeToken sep;
    bool roberta = false;
    bool trim = false;
    bool add_prefix_space = false;
  };
  explicit Classic(Options options) : options_(std::move(options)) {}

  void apply(std::vector<Encoding>& inputs, SpecialTokens specials) const override {
    const bool details = has_details(inputs);
    for (Encoding& input : inputs) {
      if (options_.trim) trim_offsets(input, options_.add_prefix_space);
      if (options_.roberta) std::fill(input.type_ids.begin(), input.type_ids.end(), 0);
    }
    if (specials == SpecialTokens::kOmit) return;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const int32_t type_id = i == 0 || options_.roberta ? 0 : 1;
      Encoding out;
      if (i == 0)
        append_special(out, options_.cls.id, options_.cls.piece, type_id, details);
      else if (options_.roberta)
        append_special(out, options_.sep.id, options_.sep.piece, type_id, details);
      out.append(std::move(inputs[i]));
      append_special(out, options_.sep.id, options_.sep.piece, type_id, details);
      inputs[i] = std::move(out);
    }
  }

  size_t added_tokens(size_t inputs) const override { return inputs == 1 ? 2 : options_.roberta ? 4 : 3; }
  std::vector<int32_t> special_ids() const override { return {options_.cls.id, options_.sep.id}; }

 private:
  Options options_;
};

class Sequence : public PostProcessor {
 public:
  explicit Sequence(std::vector<std::unique_ptr<PostProcessor>> parts) : parts_(std::move(parts)) {}
  void apply(std::vector<Encoding>& inputs, SpecialTokens specials) const override {
    for (const auto& part : parts_) part->apply(inputs, specials);
  }
  size_t added_tokens(size_t inputs) const override {
    size_t count = 0;
    for (const auto& part : parts_) count += part->added_tokens(inputs);
    return count;
  }
  std::vector<int32_t> special_ids() const override {
    std::vector<int32_t> ids;
    for (const auto& part : parts_)
      for (const int32_t id : part->special_ids()) ids.push_back(id);
    return ids;
  }

 private:
  std::vector<std::unique_ptr<PostProcessor>> parts_;
};

using Made = Result<std::unique_ptr<PostProcessor>>;

Failure bad_piece(const ComponentReader& reader, std::string_view key) {
  return fail(ErrorCode::kBadData, "{}: {}: expected Sequence or SpecialToken with id and type_id",
              reader.where(), key);
}

bool is_id(const Json& value) {
  return value.is_number_integer() && value.get<int64_t>() >= 0 && value.get<int64_t>() < (1 << 30);
}

using TokenMap = std::unordered_map<std::string, std::vector<EdgeToken>>;

Result<TokenMap> read_special_tokens(const ComponentReader& reader) {
  TokenMap map;
  const Json* found = json_find(reader.object(), "special_tokens");
  if (found == nullptr || !found->is_object()) return reader.error("special_tokens: expected object");
  for (const auto& item : found->items()) {
    const Json* ids = json_find(item.value(), "ids");
    const Json* tokens = json_find(item.value(), "tokens");
    if (ids == nullptr || tokens == nullptr || !ids->is_array() || !tokens->is_array() ||
        ids->size() != tokens->size())
      return reader.error(
          fmt::format("special_tokens: {}: expected ids and tokens of equal length", item.key()));
    std::vector<EdgeToken>& list = map[item.key()];
    for (size_t i = 0; i < ids->size(); ++i) {
      if (!is_id((*ids)[i]) || !(*tokens)[i].is_string())
        return reader.error(fmt::format("special_tokens: {}: bad id or token", item.key()));
      list.push_back({(*ids)[i].get<int32_t>(), (*tokens)[i].get<std::string>()});
    }
  }
  return map;
}

Result<std::vector<Template::Piece>> read_template(const ComponentReader& reader, std::string_view key,
                                                   int inputs, const TokenMap& map) {
  TESSERA_TRY(const Json* list, reader.array(key));
  std::vector<Template::Piece> pieces;
  for (const Json& item : *list) {
    if (!item.is_object() || item.size() != 1) return bad_piece(reader, key);
    const auto entry = item.begin();
    const Json* id = json_find(*entry, "id");
    const Json* type_id = json_find(*entry, "type_id");
    if (id == nullptr || !id->is_string() || type_id == nullptr || !is_id(*type_id))
      return bad_piece(reader, key);
    const auto& name = id->get_ref<const std::string&>();
    Template::Piece piece;
    piece.type_id = type_id->get<int32_t>();
    if (entry.key() == "Sequence") {
      if (name != "A" && name != "B") return bad_piece(reader, key);
      piece.input = name == "A" ? 0 : 1;
      if (piece.input >= inputs)
        return reader.error(fmt::format("{}: names the second input, but there is one", key));
    } else if (entry.key() == "SpecialToken") {
      const auto found = map.find(name);
      if (found == map.end())
        return reader.error(fmt::format("{}: \"{}\" is not among special_tokens", key, name));
      piece.tokens = found->second;
    } else {
      return bad_piece(reader, key);
    }
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

Made read_template_processing(const ComponentReader& reader) {
  TESSERA_TRY_STATUS(reader.only({"single", "pair", "special_tokens"}));
  TESSERA_TRY(const TokenMap map, read_special_tokens(reader));
  TESSERA_TRY(auto single, read_template(reader, "single", 1, map));
  TESSERA_TRY(auto pair, read_template(reader, "pair", 2, map));
  return std::make_unique<Template>(std::move(single), std::move(pair));
}

// ["[SEP]", 102]
Result<EdgeToken> read_edge(const ComponentReader& reader, std::string_view key) {
  TESSERA_TRY(const Json* list, reader.array(key));
  if (list->size() != 2 || !(*list)[0].is_string() || !is_id((*list)[1]))
    return reader.error(fmt::format("{}: expected a token and its id", key));
  return EdgeToken{(*list)[1].get<int32_t>(), (*list)[0].get<std::string>()};
}

Made read_classic(const ComponentReader& reader, bool roberta) {
  Classic::Options options;
  options.roberta = roberta;
  TESSERA_TRY(options.cls, read_edge(reader, "cls"));
  TESSERA_TRY(options.sep, read_edge(reader, "sep"));
  if (roberta) {
    TESSERA_TRY_STATUS(reader.only({"cls", "sep", "trim_offsets", "add_prefix_space"}));
    TESSERA_TRY(options.trim, reader.flag("trim_offsets"));
    TESSERA_TRY(options.add_prefix_space, reader.flag("add_prefix_space"));
  } else {
    TESSERA_TRY_STATUS(reader.only({"cls", "sep"}));
  }
  return std::make_unique<Classic>(std::move(options));
}

}  // namespace

void Encoding::append(Encoding&& other) {
  const auto move_all = [](auto& to, auto& from) {
    if (to.empty())
      to = std::move(from);
    else
      to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  detailed = detailed || other.detailed;
  move_all(ids, other.ids);
  move_all(offsets, other.offsets);
  move_all(type_ids, other.type_ids);
  move_all(special, other.special);
  move_all(pieces, other.pieces);
}

std::vector<SourceRange> character_offsets(std::string_view text, const std::vector<SourceRange>& offsets) {
  std::vector<uint32_t> index(text.size() + 1);  // of the character that a byte belongs to
  uint32_t count = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!unicode::is_continuation(text[i])) ++count;
    index[i] = count > 0 ? count - 1 : 0;
  }
  index[text.size()] = count;
  std::vector<SourceRange> out;
  out.reserve(offsets.size());
  for (const SourceRange& range : offsets) {
    const auto at = [&](uint32_t byte) { return index[std::min<size_t>(byte, text.size())]; };
    out.push_back({at(range.begin), at(range.end)});
  }
  return out;
}

std::unique_ptr<PostProcessor> make_edge_tokens(EdgeToken first, EdgeToken last) {
  if (first.id < 0 && last.id < 0) return nullptr;
  std::vector<Template::Piece> single;
  std::vector<Template::Piece> pair;
  for (int input = 0; input < 2; ++input) {
    std::vector<Template::Piece> part;
    if (first.id >= 0) part.push_back({-1, input, {first}});
    part.push_back({input, input, {}});
    if (last.id >= 0) part.push_back({-1, input, {last}});
    if (input == 0) single = part;
    pair.insert(pair.end(), part.begin(), part.end());
  }
  return std::make_unique<Template>(std::move(single), std::move(pair));
}

std::unique_ptr<PostProcessor> make_bert_processing(EdgeToken cls, EdgeToken sep) {
  Classic::Options options;
  options.cls = std::move(cls);
  options.sep = std::move(sep);
  return std::make_unique<Classic>(std::move(options));
}

Result<std::unique_ptr<PostProcessor>> create_postprocessor(const Json& value, const std::string& where) {
  if (value.is_null()) return std::unique_ptr<PostProcessor>();
  TESSERA_TRY(const std::string type, component_type(value, where));
  const ComponentReader reader(value, where);
  if (type == "TemplateProcessing") return read_template_processing(reader);
  if (type == "BertProcessing") return read_classic(reader, false);
  if (type == "RobertaProcessing") return read_classic(reader, true);
  if (type == "ByteLevel") {
    TESSERA_TRY_STATUS(reader.only({"add_prefix_space", "trim_offsets", "use_regex"}));
    TESSERA_TRY(const bool trim, reader.flag("trim_offsets"));
    TESSERA_TRY(const bool add_prefix_space, reader.flag("add_prefix_space"));
    return std::make_unique<ByteLevel>(trim, add_prefix_space);
  }
  if (type == "Sequence") {
    TESSERA_TRY_STATUS(reader.only({"processors"}));
    TESSERA_TRY(const Json* list, reader.array("processors"));
    std::vector<std::unique_ptr<PostProcessor>> parts;
    for (const Json& item : *list) {
      TESSERA_TRY(auto part, create_postprocessor(item, fmt::format("{}.{}", where, parts.size())));
      if (part != nullptr) parts.push_back(std::move(part));
    }
    return std::make_unique<Sequence>(std::move(parts));
  }
  return fail(ErrorCode::kUnsupported, "{}: unknown post-processor \"{}\"", where, type);
}

}  // namespace tessera
