// Lexer: template source to tokens, with the rules of white space that transformers sets: a block's line break goes
// (trim_blocks), white space before a block at the start of a line goes (lstrip_blocks), '-' takes all white space on
// its side, '+' keeps it; one line break at the end of the source goes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tessera::jinja {

enum class TokenKind : unsigned char {
  kData,           // text outside of tags
  kBlockBegin,     // {%
  kBlockEnd,       // %}
  kVariableBegin,  // {{
  kVariableEnd,    // }}
  kName,
  kString,  // text: the value
  kInteger,
  kFloat,
  kOperator,  // text: "+", "==", "(", ...
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  int line = 0;
  std::string text;
};

// kBadData with the line for what is no template.
[[nodiscard]] Result<std::vector<Token>> tokenize(std::string_view source, const std::string& name);

}  // namespace tessera::jinja
