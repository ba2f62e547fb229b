// See pretokenizer.h.
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "text/byte_level.h"
#include "text/component.h"
#include "text/pretokenizer.h"
#include "text/unicode.h"
#include "text/word_cutter.h"

namespace tessera {
namespace {

// GPT-2's pattern, which ByteLevel uses: contractions, then words, numbers and the rest with one leading space.
constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

class Sequence : public PreTokenizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<PreTokenizer>> parts) : parts_(std::move(parts)) {}
  Status apply(PreTokenized& text, PreTokenizerScratch& scratch) const override {
    for (const auto& part : parts_) TESSERA_TRY_STATUS(part->apply(text, scratch));
    return {};
  }
  bool only_cuts() const override {
    for (const auto& part : parts_)
      if (!part->only_cuts()) return false;
    return true;
  }
  bool needs_origin() const override {
    for (const auto& part : parts_)
      if (part->needs_origin()) return true;
    return false;
  }
  bool needs_alignment() const override {
    bool changed = false;
    for (const auto& part : parts_) {
      if (part->needs_alignment() || (changed && part->needs_origin())) return true;
      changed = changed || !part->only_cuts();
    }
    return false;
  }
  bool drop_byte_level() override { return !parts_.empty() && parts_.back()->drop_byte_level(); }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> parts_;
};

class Split : public PreTokenizer {
 public:
  Split(Regex regex, Behavior behavior, bool invert)
      : regex_(std::move(regex)), behavior_(behavior), invert_(invert) {}
  Status apply(PreTokenized& text, PreTokenizerScratch& scratch) const override {
    return cut_words(text, scratch, behavior_, [&](std::string_view word, auto emit) {
      return regex_segments(regex_, word, scratch.regex, invert_, emit);
    });
  }

 private:
  Regex regex_;
  Behavior behavior_;
  bool invert_;
};

class SplitText : public PreTokenizer {
 public:
  SplitText(std::string delimiter, Behavior behavior, bool invert)
      : delimiter_(std::move(delimiter)), behavior_(behavior), invert_(invert) {}
  Status apply(PreTokenized& text, PreTokenizerScratch& scratch) const override {
    return cut_words(text, scratch, behavior_, [&](std::string_view word, auto emit) -> Status {
      size_t last = 0;
      for (size_t at = word.find(delimiter_); at != std::string_view::npos;
           at = word.find(delimiter_, last)) {
        if (last < at) emit(last, at, invert_);
        emit(at, at + delimiter_.size(), !invert_);
        last = at + delimiter_.size();
      }
      if (last < word.size()) emit(last, word.size(), invert_);
      return {};
    });
  }

 private:
  std::string delimiter_;
  Behavior behavior_;
  bool invert_;
};

class ByteLevel : public PreTokenizer {
 public:
  ByteLevel(bool add_prefix_space, std::optional<Regex> regex)
      : add_prefix_space_(add_prefix_space), regex_(std::move(regex)) {}

  Status apply(PreTokenized& text, PreTokenizerScratch& scratch) const override {
    if (add_prefix_space_) {
      rewrite_words(text, [&](const Word& word, AlignedText& out) {
        if (!view(text, word).starts_with(' ')) out.append_inserted(" ", first_source(text, word));
        out.append_unchanged(text.text, word.begin, word.end);
      });
    }
    if (regex_.has_value()) {
      TESSERA_TRY_STATUS(cut_words(text, scratch, Behavior::kIsolated, [&](std::string_view word, auto emit) {
        return regex_segments(*regex_, word, scratch.regex, false, emit);
      }));
    }
    if (!spells_bytes_) return {};
    rewrite_words(text, [&](const Word& word, AlignedText& out) {
      const std::string_view bytes = view(text, word);
      std::string spelled;
      for (size_t i = 0; i < bytes.size(); ++i) {
        spelled.clear();
        unicode::append(spelled, byte_level_character(static_cast<unsigned char>(bytes[i])));
        out.append_inserted(spelled,
                            text.text.tracked() ? text.text.sources()[word.begin + i] : SourceRange{});
      }
    });
    return {};
  }
  bool only_cuts() const override { return !add_prefix_space_ && !spells_bytes_; }
  bool drop_byte_level() override {
    spells_bytes_ = false;
    return true;
  }

 private:
  bool add_prefix_space_;
  std::optional<Regex> regex_;
  bool spells_bytes_ = true;
};

class Metaspace : public PreTokenizer {
 public:
  Metaspace(char32_t replacement, PrependScheme scheme, bool split)
      : replacement_(unicode::encode(replacement)), scheme_(scheme), split_(split) {}

  Status apply(PreTokenized& text, PreTokenizerScratch& scratch) const override {
    rewrite_words(text, [&](const Word& word, AlignedText& out) { rewrite(text, word, out); });
    if (!split_) return {};
    return cut_words(text, scratch, Behavior::kMergedWithNext,
                     [&](std::string_view word, auto emit) -> Status {
                       size_t last = 0;
                       for (size_t at = word.find(replacement_); at != std::string_view::npos;
                            at = word.find(replacement_, last)) {
                         if (last < at) emit(last, at, false);
                         emit(at, at + replacement_.size(), true);
                         last = at + replacement_.size();
                       }
                       if (last < word.size()) emit(last, word.size(), false);
                       return {};
                     });
  }
  bool only_cuts() const override { return false; }
  bool needs_origin() const override { return scheme_ == PrependScheme::kFirst; }

 private:
  void rewrite(const PreTokenized& text, const Word& word, AlignedText& out) const {
    const std::string_view old = view(text, word);
    const bool starts = old.starts_with(' ') || old.starts_with(replacement_);
    if (!starts &&
        (scheme_ == PrependScheme::kAlways || (scheme_ == PrependScheme::kFirst && word.origin == 0)))
      out.append_inserted(replacement_, first_source(text, word));
    const auto sources = text.text.sources();
    size_t last = 0;
    for (size_t at = old.find(' '); at != std::string_view::npos; at = old.find(' ', last)) {
      out.append_unchanged(text.text, word.begin + last, word.begin + at);
      out.append_inserted(replacement_, sources.empty() ? SourceRange{} : sources[word.begin + at]);
      last = at + 1;
    }
    out.append_unchanged(text.text, word.begin + last, word.end);
  }

  std::string replacement_;
  PrependScheme scheme_;
  bool split_;
};

class Bert : public PreTokenizer {
 public:
  Status apply(PreTokenized& text, PreTokenizerScratch& scratch) const override {
    TESSERA_TRY_STATUS(cut_characters(text, scratch, Behavior::kRemoved, unicode::is_white_space));
    return cut_characters(text, scratch, Behavior::kIsolated, unicode::is_punctuation);
  }
};

class Punctuation : public PreTokenizer {
 public:
  explicit Punctuation(Behavior behavior) : behavior_(behavior) {}
  Status apply(PreTokenized& text, PreTokenizerScratch& scratch) const override {
    return cut_characters(text, scratch, behavior_, unicode::is_punctuation);
  }

 private:
  Behavior behavior_;
};

class Digits : public PreTokenizer {
 public:
  explicit Digits(bool individual) : behavior_(individual ? Behavior::kIsolated : Behavior::kContiguous) {}
  Status apply(PreTokenized& text, PreTokenizerScratch& scratch) const override {
    return cut_characters(text, scratch, behavior_, unicode::is_numeric);
  }

 private:
  Behavior behavior_;
};

class WhitespaceSplit : public PreTokenizer {
 public:
  Status apply(PreTokenized& text, PreTokenizerScratch& scratch) const override {
    return cut_characters(text, scratch, Behavior::kRemoved, unicode::is_white_space);
  }
};

// Runs of word characters and runs of what is neither that nor white space; white space goes away.
class Whitespace : public PreTokenizer {
 public:
  Status apply(PreTokenized& text, PreTokenizerScratch& scratch) const override {
    enum class Kind { kSpace, kWord, kOther };
    return cut_words(text, scratch, Behavior::kRemoved, [](std::string_view word, auto emit) -> Status {
      size_t begin = 0;
      Kind kind = Kind::kSpace;
      for (size_t i = 0; i < word.size();) {
        const unicode::Character c = unicode::decode(word, i);
        const Kind next = unicode::is_word(c.code)          ? Kind::kWord
                          : unicode::is_white_space(c.code) ? Kind::kSpace
                                                            : Kind::kOther;
        if (next != kind) {
          if (begin < i) emit(begin, i, kind == Kind::kSpace);
          begin = i;
          kind = next;
        }
        i += c.length;
      }
      if (begin < word.size()) emit(begin, word.size(), kind == Kind::kSpace);
      return {};
    });
  }
};

class CharDelimiterSplit : public PreTokenizer {
 public:
  explicit CharDelimiterSplit(char32_t delimiter) : delimiter_(delimiter) {}
  Status apply(PreTokenized& text, PreTokenizerScratch& scratch) const override {
    return cut_characters(text, scratch, Behavior::kRemoved, [this](char32_t c) { return c == delimiter_; });
  }

 private:
  char32_t delimiter_;
};

class DigitTriples : public PreTokenizer {
 public:
  Status apply(PreTokenized& text, PreTokenizerScratch& scratch) const override {
    return cut_words(text, scratch, Behavior::kIsolated, [](std::string_view word, auto emit) -> Status {
      size_t begin = 0;
      std::vector<size_t> digits;  // where each digit of a run starts
      const auto end_run = [&](size_t end) {
        if (digits.empty()) return;
        size_t from = digits.front();
        for (size_t i = digits.size() % 3 == 0 ? 3 : digits.size() % 3; i < digits.size(); i += 3) {
          emit(from, digits[i], true);
          from = digits[i];
        }
        emit(from, end, true);
        begin = end;
        digits.clear();
      };
      for (size_t i = 0; i < word.size();) {
        const unicode::Character c = unicode::decode(word, i);
        if (unicode::is_numeric(c.code)) {
          if (digits.empty() && begin < i) emit(begin, i, false);
          digits.push_back(i);
        } else {
          end_run(i);
        }
        i += c.length;
      }
      end_run(word.size());
      if (begin < word.size()) emit(begin, word.size(), false);
      return {};
    });
  }
};

class FixedLength : public PreTokenizer {
 public:
  explicit FixedLength(int64_t length) : length_(length) {}
  Status apply(PreTokenized& text, PreTokenizerScratch& scratch) const override {
    return cut_words(text, scratch, Behavior::kIsolated, [this](std::string_view word, auto emit) -> Status {
      size_t begin = 0;
      int64_t count = 0;
      for (size_t i = 0; i < word.size();) {
        i += unicode::sequence_length(word[i]);
        if (++count == length_ || i == word.size()) {
          emit(begin, i, true);
          begin = i;
          count = 0;
        }
      }
      return {};
    });
  }

 private:
  int64_t length_;
};

using Made = Result<std::unique_ptr<PreTokenizer>>;

Result<Behavior> read_behavior(const ComponentReader& reader) {
  TESSERA_TRY(const std::string name, reader.text("behavior"));
  if (name == "Removed") return Behavior::kRemoved;
  if (name == "Isolated") return Behavior::kIsolated;
  if (name == "MergedWithPrevious") return Behavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return Behavior::kMergedWithNext;
  if (name == "Contiguous") return Behavior::kContiguous;
  return fail(ErrorCode::kUnsupported, "{}: unknown behavior \"{}\"", reader.where(), name);
}

Made read_sequence(const ComponentReader& reader) {
  TESSERA_TRY_STATUS(reader.only({"pretokenizers"}));
  TESSERA_TRY(const Json* list, reader.array("pretokenizers"));
  std::vector<std::unique_ptr<PreTokenizer>> parts;
  for (const Json& item : *list) {
    TESSERA_TRY(auto part, create_pretokenizer(item, fmt::format("{}.{}", reader.where(), parts.size())));
    if (part != nullptr) parts.push_back(std::move(part));
  }
  return make_pretokenizer_sequence(std::move(parts));
}

Made read_split(const ComponentReader& reader) {
  TESSERA_TRY_STATUS(reader.only({"pattern", "behavior", "invert"}));
  TESSERA_TRY(TextPattern pattern, read_pattern(reader, "pattern"));
  TESSERA_TRY(const Behavior behavior, read_behavior(reader));
  TESSERA_TRY(const bool invert, reader.flag_or("invert", false));
  if (!pattern.is_regex && !pattern.text.empty())
    return std::make_unique<SplitText>(std::move(pattern.text), behavior, invert);
  auto regex = Regex::compile(pattern.text);
  if (!regex) return with_context(regex.error(), reader.where());
  return std::make_unique<Split>(std::move(*regex), behavior, invert);
}

Made read_byte_level(const ComponentReader& reader) {
  // trim_offsets has a meaning in the post-processor of the same name only.
  TESSERA_TRY_STATUS(reader.only({"add_prefix_space", "trim_offsets", "use_regex"}));
  TESSERA_TRY(const bool add_prefix_space, reader.flag("add_prefix_space"));
  TESSERA_TRY(const bool use_regex, reader.flag_or("use_regex", true));
  std::optional<Regex> regex;
  if (use_regex) {
    TESSERA_TRY(Regex compiled, Regex::compile(kGpt2Pattern));
    regex.emplace(std::move(compiled));
  }
  return std::make_unique<ByteLevel>(add_prefix_space, std::move(regex));
}

Made read_metaspace(const ComponentReader& reader) {
  TESSERA_TRY_STATUS(reader.only({"replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"}));
  TESSERA_TRY(const char32_t replacement, reader.character("replacement"));
  TESSERA_TRY(const PrependScheme scheme, read_prepend_scheme(reader));
  TESSERA_TRY(const bool split, reader.flag_or("split", true));
  return make_metaspace(replacement, scheme, split);
}

}  // namespace

Result<PrependScheme> read_prepend_scheme(const ComponentReader& reader) {
  TESSERA_TRY(const std::optional<std::string> name, reader.optional_text("prepend_scheme"));
  PrependScheme scheme = PrependScheme::kAlways;
  if (name == "first")
    scheme = PrependScheme::kFirst;
  else if (name == "never")
    scheme = PrependScheme::kNever;
  else if (name.has_value() && name != "always")
    return fail(ErrorCode::kUnsupported, "{}: unknown prepend_scheme \"{}\"", reader.where(), *name);
  TESSERA_TRY(const bool add_prefix_space, reader.flag_or("add_prefix_space", true));
  if (add_prefix_space) return scheme;
  if (name.has_value() && scheme != PrependScheme::kNever)
    return reader.error("add_prefix_space is false, but prepend_scheme is not \"never\"");
  return PrependScheme::kNever;
}

std::unique_ptr<PreTokenizer> make_pretokenizer_sequence(std::vector<std::unique_ptr<PreTokenizer>> parts) {
  if (parts.empty()) return nullptr;
  if (parts.size() == 1) return std::move(parts.front());
  return std::make_unique<Sequence>(std::move(parts));
}

Result<std::unique_ptr<PreTokenizer>> make_regex_split(std::string_view pattern) {
  TESSERA_TRY(Regex regex, Regex::compile(pattern));
  return std::make_unique<Split>(std::move(regex), Behavior::kIsolated, false);
}

std::unique_ptr<PreTokenizer> make_byte_level(ByteLevelRegex regex) {
  std::optional<Regex> compiled;
  if (regex == ByteLevelRegex::kGpt2) compiled.emplace(std::move(*Regex::compile(kGpt2Pattern)));
  return std::make_unique<ByteLevel>(false, std::move(compiled));
}

std::unique_ptr<PreTokenizer> make_digit_triples() {
  return std::make_unique<DigitTriples>();
}

std::unique_ptr<PreTokenizer> make_bert_pretokenizer() {
  return std::make_unique<Bert>();
}

std::unique_ptr<PreTokenizer> make_metaspace(char32_t replacement, PrependScheme scheme, bool split) {
  return std::make_unique<Metaspace>(replacement, scheme, split);
}

Result<std::unique_ptr<PreTokenizer>> create_pretokenizer(const Json& value, const std::string& where) {
  if (value.is_null()) return std::unique_ptr<PreTokenizer>();
  TESSERA_TRY(const std::string type, component_type(value, where));
  const ComponentReader reader(value, where);
  if (type == "Sequence") return read_sequence(reader);
  if (type == "Split") return read_split(reader);
  if (type == "ByteLevel") return read_byte_level(reader);
  if (type == "Metaspace") return read_metaspace(reader);
  if (type == "Punctuation") {
    TESSERA_TRY_STATUS(reader.only({"behavior"}));
    Behavior behavior = Behavior::kIsolated;
    if (json_find(value, "behavior") != nullptr) {
      TESSERA_TRY(behavior, read_behavior(reader));
    }
    return std::make_unique<Punctuation>(behavior);
  }
  if (type == "Digits") {
    TESSERA_TRY_STATUS(reader.only({"individual_digits"}));
    TESSERA_TRY(const bool individual, reader.flag("individual_digits"));
    return std::make_unique<Digits>(individual);
  }
  if (type == "CharDelimiterSplit") {
    TESSERA_TRY_STATUS(reader.only({"delimiter"}));
    TESSERA_TRY(const char32_t delimiter, reader.character("delimiter"));
    return std::make_unique<CharDelimiterSplit>(delimiter);
  }
  if (type == "FixedLength") {
    TESSERA_TRY_STATUS(reader.only({"length"}));
    int64_t length = 5;
    if (json_find(value, "length") != nullptr) {
      TESSERA_TRY(length, reader.integer("length"));
    }
    if (length < 1) return reader.error(fmt::format("length: expected at least 1, found {}", length));
    return std::make_unique<FixedLength>(length);
  }
  std::unique_ptr<PreTokenizer> made;
  if (type == "BertPreTokenizer") made = std::make_unique<Bert>();
  if (type == "WhitespaceSplit") made = std::make_unique<WhitespaceSplit>();
  if (type == "Whitespace") made = std::make_unique<Whitespace>();
  if (made == nullptr) return fail(ErrorCode::kUnsupported, "{}: unknown pre-tokenizer \"{}\"", where, type);
  TESSERA_TRY_STATUS(reader.only({}));
  return made;
}

}  // namespace tessera
