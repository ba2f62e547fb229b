// Pre-tokenizers: how text is cut into the words that the model sees one by one. PreTokenized is the text of all
// words, one after another, with the cuts; some pre-tokenizers also change the text (Metaspace, ByteLevel).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/aligned_text.h"
#include "text/regex.h"

namespace tessera {

class ComponentReader;

// A stretch of PreTokenized::text: a word still to be encoded, or an added token that was found in the text.
struct Word {
  size_t begin = 0;
  size_t end = 0;
  int32_t token = -1;   // an added token's id
  uint32_t origin = 0;  // where it starts in the original input
};

struct PreTokenized {
  AlignedText text;
  std::vector<Word> words;
};

// The state that one thread needs to pre-tokenize.
struct PreTokenizerScratch {
  RegexScratch regex;
  std::vector<Word> words;
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  [[nodiscard]] virtual Status apply(PreTokenized& text, PreTokenizerScratch& scratch) const = 0;

  // True when words keep their bytes: apply only cuts.
  [[nodiscard]] virtual bool only_cuts() const { return true; }
  // True when it asks where in the original input a word starts; needs_alignment: and that cannot be known from
  // the word's place in the text, because an earlier part changed the text.
  [[nodiscard]] virtual bool needs_origin() const { return false; }
  [[nodiscard]] virtual bool needs_alignment() const { return false; }
  // When the last thing this does is to spell bytes in the byte-level alphabet: stops doing that (the model then
  // works on bytes) and returns true.
  [[nodiscard]] virtual bool drop_byte_level() { return false; }
};

// A component of tokenizer.json; `where` names it in messages. Null gives nullptr.
[[nodiscard]] Result<std::unique_ptr<PreTokenizer>> create_pretokenizer(const Json& value,
                                                                        const std::string& where);

// What other formats need: cut around the matches of a regex, each match a word of its own.
[[nodiscard]] Result<std::unique_ptr<PreTokenizer>> make_regex_split(std::string_view pattern);
[[nodiscard]] std::unique_ptr<PreTokenizer> make_pretokenizer_sequence(
    std::vector<std::unique_ptr<PreTokenizer>> parts);
enum class ByteLevelRegex { kNone, kGpt2 };
[[nodiscard]] std::unique_ptr<PreTokenizer> make_byte_level(ByteLevelRegex regex);
[[nodiscard]] std::unique_ptr<PreTokenizer> make_bert_pretokenizer();
// Runs of digits cut into threes from their right end.
[[nodiscard]] std::unique_ptr<PreTokenizer> make_digit_triples();
enum class PrependScheme { kAlways, kFirst, kNever };
[[nodiscard]] Result<PrependScheme> read_prepend_scheme(
    const ComponentReader& reader);  // also for the decoder
[[nodiscard]] std::unique_ptr<PreTokenizer> make_metaspace(char32_t replacement, PrependScheme scheme,
                                                           bool split);

}  // namespace tessera
