// TokenStream: the tokens of a template as the parsers of expressions and statements read them, with the errors and
// the table of names that both share.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/jinja/lexer.h"
#include "text/jinja/syntax.h"

namespace tessera::jinja {

class TokenStream {
 public:
  TokenStream(std::vector<Token> tokens, std::string name, Syntax& syntax)
      : tokens_(std::move(tokens)), name_(std::move(name)), syntax_(syntax) {}

  [[nodiscard]] const Token& current() const { return tokens_[at_]; }
  [[nodiscard]] const Token& look() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  [[nodiscard]] bool is(TokenKind kind) const { return current().kind == kind; }
  [[nodiscard]] bool is_operator(std::string_view text) const {
    return current().kind == TokenKind::kOperator && current().text == text;
  }
  [[nodiscard]] bool is_name(std::string_view text) const {
    return current().kind == TokenKind::kName && current().text == text;
  }
  const Token& next() {
    const Token& token = tokens_[at_];
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool skip_operator(std::string_view text) {
    const bool found = is_operator(text);
    if (found) next();
    return found;
  }
  bool skip_name(std::string_view text) {
    const bool found = is_name(text);
    if (found) next();
    return found;
  }
  [[nodiscard]] Status expect_operator(std::string_view text);
  [[nodiscard]] Status expect_name(std::string_view text);
  [[nodiscard]] Status expect(TokenKind kind, std::string_view what);
  [[nodiscard]] Result<std::string> take_name();

  [[nodiscard]] Failure error(int line, std::string_view what) const {
    return fail(ErrorCode::kBadData, "{}: line {}: {}", name_, line, what);
  }
  [[nodiscard]] Failure unexpected(std::string_view expected) const;
  [[nodiscard]] Failure unsupported(int line, std::string_view what) const {
    return fail(ErrorCode::kUnsupported, "{}: line {}: {} is not supported", name_, line, what);
  }

  [[nodiscard]] Symbol symbol(const std::string& name);

  // Guards recursion; see Nesting.
  int depth = 0;

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
  std::string name_;
  Syntax& syntax_;
  std::unordered_map<std::string, Symbol> known_;
};

// Deeper than any template, and no more than the stack holds.
inline constexpr int kMaxSyntaxDepth = 120;

class Nesting {
 public:
  explicit Nesting(TokenStream& stream) : stream_(stream) { ++stream_.depth; }
  ~Nesting() { --stream_.depth; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;
  [[nodiscard]] Status check() const {
    if (stream_.depth <= kMaxSyntaxDepth) return {};
    return stream_.error(stream_.current().line, "nested too deep");
  }

 private:
  TokenStream& stream_;
};

// parse_expressions.cpp
enum class ConditionalExpressions : unsigned char { kAllowed, kNot };
[[nodiscard]] Result<ExpressionPointer> parse_expression(
    TokenStream& stream, ConditionalExpressions conditions = ConditionalExpressions::kAllowed);
// Several expressions with commas between them are a tuple. It ends before the name `end`, if one is given.
[[nodiscard]] Result<ExpressionPointer> parse_tuple(TokenStream& stream, ConditionalExpressions conditions,
                                                    std::string_view end = "");
// "|name(...)" repeated, put around `input` (null: the body of a block). With `first`, the '|' of the first is absent.
enum class FirstBar : unsigned char { kPresent, kAbsent };
[[nodiscard]] Result<ExpressionPointer> parse_filters(TokenStream& stream, ExpressionPointer input,
                                                      FirstBar first);

// parse_statements.cpp: until the end of the source.
[[nodiscard]] Result<Body> parse_body(TokenStream& stream, Syntax& syntax);
// Source to syntax tree, by the grammar and the precedences of Jinja 3.1. kBadData for what is no template,
// kUnsupported, with line and construct, for what is not run here (include, import, extends; filters, tests and methods
// that are not there): a template that loads runs.
[[nodiscard]] Result<std::unique_ptr<Syntax>> parse_template(std::string_view source,
                                                             const std::string& name);

}  // namespace tessera::jinja
