// See sentencepiece_normalizer.h.
#include "text/sentencepiece_normalizer.h"

#include <utility>

#include "text/unicode.h"

namespace tessera {
namespace {

constexpr std::string_view kMark = "\xE2\x96\x81";

class SentencePieceNormalizer : public Normalizer {
 public:
  explicit SentencePieceNormalizer(SentencePieceRules rules) : rules_(std::move(rules)) {}

  Status apply(AlignedText& text, RegexScratch&) const override {
    const std::string_view old = text.text();
    size_t end = old.size();
    size_t at = 0;
    if (rules_.remove_extra_whitespaces) {
      while (at < end) {
        const auto [length, replacement] = next(old.substr(at));
        if (replacement != " ") break;
        at += length;
      }
    }
    AlignedText out;
    out.clear(text.origin(), text.tracked());
    const bool prefix = rules_.add_dummy_prefix && at < end;
    if (prefix && !rules_.whitespace_as_suffix) out.append_inserted(space(), source(text, at, at + 1));
    bool after_space = rules_.remove_extra_whitespaces;
    size_t kept = out.text().size();  // up to here the text does not end in white space
    while (at < end) {
      auto [length, replacement] = next(old.substr(at));
      const SourceRange range = source(text, at, at + length);
      at += length;
      while (after_space && replacement.starts_with(' ')) replacement.remove_prefix(1);
      if (!replacement.empty()) {
        for (const char c : replacement) {
          const bool is_space = c == ' ';
          out.append_inserted(is_space ? space() : std::string_view(&c, 1), range);
          if (!is_space) kept = out.text().size();
        }
        after_space = replacement.ends_with(' ');
      }
      if (!rules_.remove_extra_whitespaces) after_space = false;
    }
    AlignedText trimmed;
    trimmed.clear(text.origin(), text.tracked());
    trimmed.append_unchanged(out, 0, rules_.remove_extra_whitespaces ? kept : out.text().size());
    if (prefix && rules_.whitespace_as_suffix) trimmed.append_inserted(space(), source(text, end - 1, end));
    text = std::move(trimmed);
    return {};
  }

 private:
  [[nodiscard]] std::string_view space() const {
    return rules_.escape_whitespaces ? kMark : std::string_view(" ");
  }

  // How much of the text the next rule takes (one character when none does), and what it becomes.
  [[nodiscard]] std::pair<size_t, std::string_view> next(std::string_view text) const {
    if (rules_.charsmap.has_value())
      if (const auto rule = rules_.charsmap->longest(text)) return {rule->length, rule->replacement};
    const size_t length = unicode::sequence_length(text[0]);
    return {length, text.substr(0, length)};
  }

  static SourceRange source(const AlignedText& text, size_t begin, size_t end) {
    const auto sources = text.sources();
    if (sources.empty()) return {};
    return {sources[begin].begin, sources[end - 1].end};
  }

  SentencePieceRules rules_;
};

}  // namespace

std::unique_ptr<Normalizer> make_sentencepiece_normalizer(SentencePieceRules rules) {
  // Most vocabularies only mark spaces: then whole stretches can be copied.
  if (!rules.charsmap.has_value() && !rules.remove_extra_whitespaces && rules.escape_whitespaces &&
      !rules.whitespace_as_suffix) {
    std::vector<std::unique_ptr<Normalizer>> steps;
    if (rules.add_dummy_prefix) steps.push_back(make_prepend(std::string(kMark)));
    steps.push_back(make_replace(" ", std::string(kMark)));
    return make_sequence(std::move(steps));
  }
  return std::make_unique<SentencePieceNormalizer>(std::move(rules));
}

}  // namespace tessera
