// See token_stream.h.
#include "text/jinja/token_stream.h"

namespace tessera::jinja {

Status TokenStream::expect_operator(std::string_view text) {
  if (skip_operator(text)) return {};
  return unexpected(fmt::format("'{}'", text));
}

Status TokenStream::expect_name(std::string_view text) {
  if (skip_name(text)) return {};
  return unexpected(fmt::format("'{}'", text));
}

Status TokenStream::expect(TokenKind kind, std::string_view what) {
  if (!is(kind)) return unexpected(what);
  next();
  return {};
}

Result<std::string> TokenStream::take_name() {
  if (!is(TokenKind::kName)) return unexpected("a name");
  return next().text;
}

Failure TokenStream::unexpected(std::string_view expected) const {
  const Token& token = current();
  std::string found;
  switch (token.kind) {
    case TokenKind::kData:
      found = "text";
      break;
    case TokenKind::kBlockBegin:
      found = "'{%'";
      break;
    case TokenKind::kBlockEnd:
      found = "'%}'";
      break;
    case TokenKind::kVariableBegin:
      found = "'{{'";
      break;
    case TokenKind::kVariableEnd:
      found = "'}}'";
      break;
    case TokenKind::kString:
      found = "a string";
      break;
    case TokenKind::kEnd:
      found = "the end of the template";
      break;
    case TokenKind::kName:
    case TokenKind::kInteger:
    case TokenKind::kFloat:
    case TokenKind::kOperator:
      found = "'" + token.text + "'";
      break;
  }
  return error(token.line, fmt::format("expected {}, found {}", expected, found));
}

Symbol TokenStream::symbol(const std::string& name) {
  const auto [found, added] = known_.emplace(name, static_cast<Symbol>(syntax_.symbols.size()));
  if (added) syntax_.symbols.push_back(name);
  return found->second;
}

}  // namespace tessera::jinja
