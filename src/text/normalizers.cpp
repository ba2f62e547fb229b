// See normalizer.h. The Unicode forms are in unicode_form.cpp, SentencePiece's rules in precompiled.cpp.
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "text/base64.h"
#include "text/byte_level.h"
#include "text/component.h"
#include "text/normalizer.h"
#include "text/unicode.h"

namespace tessera {
namespace {

using Changes = std::vector<CharacterChange>;
using Ranges = std::vector<AlignedText::Range>;

// Calls visit(code) for every character.
template <class Visit>
void for_each_character(std::string_view text, Visit visit) {
  for (size_t i = 0; i < text.size();) {
    const unicode::Character c = unicode::decode(text, i);
    visit(c.code);
    i += c.length;
  }
}

// Keeps the characters that `keep` accepts.
template <class Keep>
void filter(AlignedText& text, Keep keep) {
  Changes changes;
  size_t skipped = 0;
  int32_t removed = 0;
  bool any_removed = false;
  for_each_character(text.text(), [&](char32_t code) {
    if (!keep(code)) {
      ++removed;
      any_removed = true;
      return;
    }
    if (changes.empty())
      skipped = static_cast<size_t>(removed);
    else
      changes.back().change = -removed;
    changes.push_back({code, 0});
    removed = 0;
  });
  if (!any_removed) return;
  if (!changes.empty()) changes.back().change = -removed;
  text.transform(changes, skipped);
}

template <class Map>
void map_characters(AlignedText& text, Map map) {
  Changes changes;
  bool any = false;
  for_each_character(text.text(), [&](char32_t code) {
    const char32_t mapped = map(code);
    any = any || mapped != code;
    changes.push_back({mapped, 0});
  });
  if (any) text.transform(changes, 0);
}

void lowercase(AlignedText& text) {
  Changes changes;
  bool any = false;
  for_each_character(text.text(), [&](char32_t code) {
    char32_t lower[2];
    const int count = unicode::lower(code, lower);
    any = any || count > 1 || lower[0] != code;
    for (int i = 0; i < count; ++i) changes.push_back({lower[i], i > 0 ? 1 : 0});
  });
  if (any) text.transform(changes, 0);
}

class Sequence : public Normalizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Normalizer>> parts) : parts_(std::move(parts)) {}
  Status apply(AlignedText& text, RegexScratch& scratch) const override {
    for (const auto& part : parts_) TESSERA_TRY_STATUS(part->apply(text, scratch));
    return {};
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> parts_;
};

class Form : public Normalizer {
 public:
  explicit Form(UnicodeForm form) : form_(form) {}
  Status apply(AlignedText& text, RegexScratch&) const override {
    apply_unicode_form(text, form_);
    return {};
  }

 private:
  UnicodeForm form_;
};

class Lowercase : public Normalizer {
 public:
  Status apply(AlignedText& text, RegexScratch&) const override {
    lowercase(text);
    return {};
  }
};

class StripAccents : public Normalizer {
 public:
  Status apply(AlignedText& text, RegexScratch&) const override {
    filter(text, [](char32_t c) { return !unicode::is_mark(c); });
    return {};
  }
};

// White space off the ends.
class Strip : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  Status apply(AlignedText& text, RegexScratch&) const override {
    size_t leading = 0;
    size_t total = 0;
    size_t trailing = 0;
    bool only_space = true;
    for_each_character(text.text(), [&](char32_t code) {
      const bool space = unicode::is_white_space(code);
      ++total;
      trailing = space ? trailing + 1 : 0;
      only_space = only_space && space;
      if (only_space) ++leading;
    });
    if (!left_) leading = 0;
    if (!right_) trailing = 0;
    if (leading == 0 && trailing == 0) return {};
    Changes changes;
    size_t index = 0;
    for_each_character(text.text(), [&](char32_t code) {
      if (index >= leading && index + trailing < total) changes.push_back({code, 0});
      ++index;
    });
    text.transform(changes, leading);
    return {};
  }

 private:
  bool left_;
  bool right_;
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string text) : prefix_(std::move(text)) {}
  Status apply(AlignedText& text, RegexScratch&) const override {
    text.prepend(prefix_);
    return {};
  }

 private:
  std::string prefix_;
};

class Replace : public Normalizer {
 public:
  Replace(std::string from, std::optional<Regex> regex, std::string to)
      : from_(std::move(from)), regex_(std::move(regex)), to_(std::move(to)) {}

  Status apply(AlignedText& text, RegexScratch& scratch) const override {
    Ranges ranges;
    if (regex_.has_value()) {
      Regex::Cursor cursor = regex_->find_all(text.text(), scratch);
      Regex::Match match;
      while (!text.empty()) {
        TESSERA_TRY(const bool found, cursor.next(&match));
        if (!found) break;
        ranges.push_back({match.begin, match.end});
      }
    } else {
      const std::string_view all = text.text();
      for (size_t at = all.find(from_); at != std::string_view::npos; at = all.find(from_, at + from_.size()))
        ranges.push_back({at, at + from_.size()});
    }
    text.replace(ranges, to_);
    return {};
  }

 private:
  std::string from_;
  std::optional<Regex> regex_;
  std::string to_;
};

// SentencePiece's nmt rule: control characters away, unusual spaces to spaces.
class Nmt : public Normalizer {
 public:
  Status apply(AlignedText& text, RegexScratch&) const override {
    filter(text, [](char32_t c) {
      return !((c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f ||
               c == 0x9f);
    });
    map_characters(text, [](char32_t c) -> char32_t {
      const bool space = c == 9 || c == 0xa || c == 0xc || c == 0xd || c == 0x1680 ||
                         (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                         c == 0xfeff || c == 0xfffd;
      return space ? U' ' : c;
    });
    return {};
  }
};

class Bert : public Normalizer {
 public:
  struct Options {
    bool clean_text = true;
    bool handle_chinese_chars = true;
    bool strip_accents = true;
    bool lowercase = true;
  };
  explicit Bert(Options options) : options_(options) {}

  Status apply(AlignedText& text, RegexScratch&) const override {
    if (options_.clean_text) {
      filter(text, [](char32_t c) {
        if (c == '\t' || c == '\n' || c == '\r') return true;
        return c != 0 && c != 0xfffd && !unicode::is_other(c);
      });
      map_characters(text, [](char32_t c) -> char32_t { return unicode::is_white_space(c) ? U' ' : c; });
    }
    if (options_.handle_chinese_chars) space_ideographs(text);
    if (options_.strip_accents) {
      apply_unicode_form(text, UnicodeForm::kNfd);
      filter(text, [](char32_t c) { return !unicode::is_nonspacing_mark(c); });
    }
    if (options_.lowercase) lowercase(text);
    return {};
  }

 private:
  static void space_ideographs(AlignedText& text) {
    Changes changes;
    bool any = false;
    for_each_character(text.text(), [&](char32_t code) {
      if (!unicode::is_cjk_ideograph(code)) {
        changes.push_back({code, 0});
        return;
      }
      any = true;
      changes.push_back({U' ', 0});
      changes.push_back({code, 1});
      changes.push_back({U' ', 1});
    });
    if (any) text.transform(changes, 0);
  }
  Options options_;
};

// Every byte as the printable character that stands for it (see byte_level.h).
class ByteLevel : public Normalizer {
 public:
  Status apply(AlignedText& text, RegexScratch&) const override {
    Changes changes;
    for (const char c : text.text())
      changes.push_back(
          {byte_level_character(static_cast<unsigned char>(c)), unicode::is_continuation(c) ? 1 : 0});
    text.transform(changes, 0);
    return {};
  }
};

using Made = Result<std::unique_ptr<Normalizer>>;

Made read_sequence(const ComponentReader& reader) {
  TESSERA_TRY_STATUS(reader.only({"normalizers"}));
  TESSERA_TRY(const Json* list, reader.array("normalizers"));
  std::vector<std::unique_ptr<Normalizer>> parts;
  for (const Json& item : *list) {
    TESSERA_TRY(auto part, create_normalizer(item, fmt::format("{}.{}", reader.where(), parts.size())));
    if (part != nullptr) parts.push_back(std::move(part));
  }
  return make_sequence(std::move(parts));
}

Made read_replace(const ComponentReader& reader) {
  TESSERA_TRY_STATUS(reader.only({"pattern", "content"}));
  TESSERA_TRY(TextPattern pattern, read_pattern(reader, "pattern"));
  TESSERA_TRY(std::string content, reader.text("content"));
  std::optional<Regex> regex;
  if (pattern.is_regex || pattern.text.empty()) {
    auto compiled = Regex::compile(pattern.text);
    if (!compiled) return with_context(compiled.error(), reader.where());
    regex.emplace(std::move(*compiled));
  }
  return std::make_unique<Replace>(std::move(pattern.text), std::move(regex), std::move(content));
}

Made read_bert(const ComponentReader& reader) {
  TESSERA_TRY_STATUS(reader.only({"clean_text", "handle_chinese_chars", "strip_accents", "lowercase"}));
  Bert::Options options;
  TESSERA_TRY(options.clean_text, reader.flag("clean_text"));
  TESSERA_TRY(options.handle_chinese_chars, reader.flag("handle_chinese_chars"));
  TESSERA_TRY(options.lowercase, reader.flag("lowercase"));
  TESSERA_TRY(options.strip_accents, reader.flag_or("strip_accents", options.lowercase));
  return std::make_unique<Bert>(options);
}

Made read_strip(const ComponentReader& reader) {
  TESSERA_TRY_STATUS(reader.only({"strip_left", "strip_right"}));
  TESSERA_TRY(const bool left, reader.flag("strip_left"));
  TESSERA_TRY(const bool right, reader.flag("strip_right"));
  return std::make_unique<Strip>(left, right);
}

Made read_precompiled(const ComponentReader& reader) {
  TESSERA_TRY_STATUS(reader.only({"precompiled_charsmap"}));
  TESSERA_TRY(const std::string encoded, reader.text("precompiled_charsmap"));
  std::optional<std::string> bytes = decode_base64(encoded);
  if (!bytes.has_value()) return reader.error("precompiled_charsmap: not base64");
  return make_precompiled(std::move(*bytes), reader.where());
}

}  // namespace

std::unique_ptr<Normalizer> make_sequence(std::vector<std::unique_ptr<Normalizer>> parts) {
  if (parts.empty()) return nullptr;
  if (parts.size() == 1) return std::move(parts.front());
  return std::make_unique<Sequence>(std::move(parts));
}

std::unique_ptr<Normalizer> make_prepend(std::string text) {
  return std::make_unique<Prepend>(std::move(text));
}

std::unique_ptr<Normalizer> make_replace(std::string from, std::string to) {
  return std::make_unique<Replace>(std::move(from), std::nullopt, std::move(to));
}

std::unique_ptr<Normalizer> make_bert_normalizer(bool lowercase, bool strip_accents) {
  Bert::Options options;
  options.lowercase = lowercase;
  options.strip_accents = strip_accents;
  return std::make_unique<Bert>(options);
}

std::unique_ptr<Normalizer> make_unicode_form(UnicodeForm form) {
  return std::make_unique<Form>(form);
}

Result<std::unique_ptr<Normalizer>> create_normalizer(const Json& value, const std::string& where) {
  if (value.is_null()) return std::unique_ptr<Normalizer>();
  TESSERA_TRY(const std::string type, component_type(value, where));
  const ComponentReader reader(value, where);
  if (type == "Sequence") return read_sequence(reader);
  if (type == "Replace") return read_replace(reader);
  if (type == "BertNormalizer" || type == "Bert") return read_bert(reader);
  if (type == "Strip") return read_strip(reader);
  if (type == "Precompiled") return read_precompiled(reader);
  if (type == "Prepend") {
    TESSERA_TRY_STATUS(reader.only({"prepend"}));
    TESSERA_TRY(std::string prefix, reader.text("prepend"));
    return make_prepend(std::move(prefix));
  }
  std::unique_ptr<Normalizer> made;
  if (type == "NFC") made = make_unicode_form(UnicodeForm::kNfc);
  if (type == "NFD") made = make_unicode_form(UnicodeForm::kNfd);
  if (type == "NFKC") made = make_unicode_form(UnicodeForm::kNfkc);
  if (type == "NFKD") made = make_unicode_form(UnicodeForm::kNfkd);
  if (type == "Lowercase") made = std::make_unique<Lowercase>();
  if (type == "StripAccents") made = std::make_unique<StripAccents>();
  if (type == "Nmt") made = std::make_unique<Nmt>();
  if (type == "ByteLevel") made = std::make_unique<ByteLevel>();
  if (made == nullptr) return fail(ErrorCode::kUnsupported, "{}: unknown normalizer \"{}\"", where, type);
  TESSERA_TRY_STATUS(reader.only({}));
  return made;
}

}  // namespace tessera
