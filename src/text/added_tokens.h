// Added tokens: strings that are found in the text before (or, "normalized", after) normalization and become one
// token whatever the model would make of them: control tokens, and words added to a vocabulary later.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/byte_trie.h"

namespace tessera {

struct AddedToken {
  int32_t id = -1;
  std::string content;
  bool single_word = false;  // not inside of a word
  bool lstrip = false;       // swallows white space on its left
  bool rstrip = false;
  bool normalized = true;  // looked for in normalized text, by its normalized spelling
  bool special = false;    // a control token: left out when decoding says so
  std::string
      spelling;  // what it is found by, and what decoding writes: content, normalized where that applies
};

// What added tokens are in a text whose origin may not be trusted.
enum class AddedTokenText {
  kParse,         // tokens, as the HuggingFace library does
  kPlainSpecial,  // special ones are plain text, the others tokens
  kPlain,         // all are plain text
};

class AddedTokens {
 public:
  AddedTokens() = default;
  explicit AddedTokens(std::vector<AddedToken> tokens);

  [[nodiscard]] const std::vector<AddedToken>& all() const { return tokens_; }
  [[nodiscard]] const AddedToken* find(int32_t id) const;
  [[nodiscard]] const AddedToken* find(std::string_view content) const;

  enum class Pass { kRaw, kNormalized };
  [[nodiscard]] bool any(Pass pass) const { return !trie(pass).empty(); }

  struct Segment {
    size_t begin = 0;
    size_t end = 0;
    int32_t token = -1;  // an id, or -1 for text
  };
  // Cuts `text` into added tokens and what lies between, appended to `out`. Leftmost, then longest.
  void split(std::string_view text, Pass pass, AddedTokenText mode, std::vector<Segment>& out) const;

 private:
  [[nodiscard]] const ByteTrie& trie(Pass pass) const { return pass == Pass::kRaw ? raw_ : normalized_; }
  std::vector<AddedToken> tokens_;
  std::vector<int32_t> by_id_;  // index into tokens_, or -1
  ByteTrie raw_;                // values are indices into tokens_
  ByteTrie normalized_;
  ByteTrie by_content_;
};

}  // namespace tessera
