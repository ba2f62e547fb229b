// Expressions: recursive descent, one function per level of precedence, lowest first.
#include <array>
#include <optional>

#include "text/jinja/filters.h"
#include "text/jinja/methods.h"
#include "text/jinja/number_text.h"
#include "text/jinja/tests.h"
#include "text/jinja/token_stream.h"

namespace tessera::jinja {
namespace {

using Pointer = Result<ExpressionPointer>;

ExpressionPointer make(ExpressionKind kind, int line) {
  auto out = std::make_unique<Expression>();
  out->kind = kind;
  out->line = line;
  return out;
}

ExpressionPointer make_constant(Value value, int line) {
  ExpressionPointer out = make(ExpressionKind::kConstant, line);
  out->constant = std::move(value);
  return out;
}

ExpressionPointer make_pair(ExpressionKind kind, int line, ExpressionPointer a, ExpressionPointer b) {
  ExpressionPointer out = make(kind, line);
  out->items.push_back(std::move(a));
  out->items.push_back(std::move(b));
  return out;
}

Pointer parse_unary(TokenStream& stream, bool with_filter);

Status parse_arguments(TokenStream& stream, CallArguments& out) {
  TESSERA_TRY_STATUS(stream.expect_operator("("));
  bool first = true;
  while (!stream.is_operator(")")) {
    if (!first) {
      TESSERA_TRY_STATUS(stream.expect_operator(","));
      if (stream.is_operator(")")) break;
    }
    first = false;
    const int line = stream.current().line;
    if (stream.skip_operator("*")) {
      if (out.more_positional != nullptr || out.more_keywords != nullptr)
        return stream.error(line, "a second * in the arguments of a call");
      TESSERA_TRY(out.more_positional, parse_expression(stream));
    } else if (stream.skip_operator("**")) {
      if (out.more_keywords != nullptr) return stream.error(line, "a second ** in the arguments of a call");
      TESSERA_TRY(out.more_keywords, parse_expression(stream));
    } else if (stream.is(TokenKind::kName) && stream.look().kind == TokenKind::kOperator &&
               stream.look().text == "=") {
      if (out.more_keywords != nullptr) return stream.error(line, "an argument behind **");
      TESSERA_TRY(std::string name, stream.take_name());
      stream.next();
      TESSERA_TRY(ExpressionPointer value, parse_expression(stream));
      out.keywords.emplace_back(std::move(name), std::move(value));
    } else {
      if (!out.keywords.empty() || out.more_positional != nullptr || out.more_keywords != nullptr)
        return stream.error(line, "an argument without a name behind one with a name");
      TESSERA_TRY(ExpressionPointer value, parse_expression(stream));
      out.positional.push_back(std::move(value));
    }
  }
  return stream.expect_operator(")");
}

Pointer parse_call(TokenStream& stream, ExpressionPointer callee) {
  const int line = stream.current().line;
  if (callee->kind == ExpressionKind::kAttribute && is_missing_method(callee->name))
    return stream.unsupported(line, fmt::format("the method '{}'", callee->name));
  if (callee->kind == ExpressionKind::kName && callee->name == "lipsum")
    return stream.unsupported(line, "the function 'lipsum'");
  ExpressionPointer out = make(ExpressionKind::kCall, line);
  out->items.push_back(std::move(callee));
  TESSERA_TRY_STATUS(parse_arguments(stream, out->arguments));
  return out;
}

// Inside of [ ]: an index, or a slice.
Pointer parse_index(TokenStream& stream, ExpressionPointer object) {
  const int line = stream.current().line;
  ExpressionPointer parts[3];
  bool is_slice = false;
  if (!stream.is_operator(":")) {
    TESSERA_TRY(parts[0], parse_expression(stream));
  }
  for (int i = 1; i < 3 && stream.is_operator(":"); ++i) {
    is_slice = true;
    stream.next();
    if (stream.is_operator("]") || stream.is_operator(":") || stream.is_operator(",")) continue;
    TESSERA_TRY(parts[i], parse_expression(stream));
  }
  if (!is_slice) {
    if (stream.is_operator(",")) {  // a tuple as key
      ExpressionPointer tuple = make(ExpressionKind::kTuple, line);
      tuple->items.push_back(std::move(parts[0]));
      while (stream.skip_operator(",")) {
        if (stream.is_operator("]")) break;
        TESSERA_TRY(ExpressionPointer item, parse_expression(stream));
        tuple->items.push_back(std::move(item));
      }
      return make_pair(ExpressionKind::kItem, line, std::move(object), std::move(tuple));
    }
    return make_pair(ExpressionKind::kItem, line, std::move(object), std::move(parts[0]));
  }
  ExpressionPointer out = make(ExpressionKind::kSlice, line);
  out->items.push_back(std::move(object));
  for (ExpressionPointer& part : parts) out->items.push_back(std::move(part));
  return out;
}

Pointer parse_subscript(TokenStream& stream, ExpressionPointer object) {
  const int line = stream.current().line;
  if (stream.skip_operator(".")) {
    if (stream.is(TokenKind::kName)) {
      ExpressionPointer out = make(ExpressionKind::kAttribute, line);
      out->items.push_back(std::move(object));
      TESSERA_TRY(out->name, stream.take_name());
      return out;
    }
    if (!stream.is(TokenKind::kInteger)) return stream.unexpected("a name or a number behind '.'");
    const auto index = parse_python_integer(stream.next().text, 0);
    if (!index) return stream.error(line, "the number behind '.' is too large");
    return make_pair(ExpressionKind::kItem, line, std::move(object),
                     make_constant(Value::integer(*index), line));
  }
  TESSERA_TRY_STATUS(stream.expect_operator("["));
  TESSERA_TRY(ExpressionPointer out, parse_index(stream, std::move(object)));
  TESSERA_TRY_STATUS(stream.expect_operator("]"));
  return out;
}

// A chain is built in a loop; its length is bounded all the same, because running and freeing it recurse.
constexpr int kMaxChain = 200;

Pointer parse_postfix(TokenStream& stream, ExpressionPointer node) {
  for (int count = 0;; ++count) {
    if (count > kMaxChain) return stream.error(stream.current().line, "nested too deep");
    if (stream.is_operator(".") || stream.is_operator("[")) {
      TESSERA_TRY(node, parse_subscript(stream, std::move(node)));
    } else if (stream.is_operator("(")) {
      TESSERA_TRY(node, parse_call(stream, std::move(node)));
    } else {
      return node;
    }
  }
}

Result<std::string> dotted_name(TokenStream& stream) {
  TESSERA_TRY(std::string name, stream.take_name());
  while (stream.skip_operator(".")) {
    TESSERA_TRY(const std::string part, stream.take_name());
    name += "." + part;
  }
  return name;
}

// `map('upper')`, `select('string')` and their like name a filter or a test in a string: looked up here, so that a
// template that loads runs.
Status check_named_argument(TokenStream& stream, const Expression& filter) {
  size_t index = 0;
  bool is_test = true;
  if (filter.name == "map") {
    is_test = false;
  } else if (filter.name == "selectattr" || filter.name == "rejectattr") {
    index = 1;
  } else if (filter.name != "select" && filter.name != "reject") {
    return {};
  }
  const auto& arguments = filter.arguments.positional;
  if (index >= arguments.size() || arguments[index]->kind != ExpressionKind::kConstant ||
      !arguments[index]->constant.is(Kind::kText))
    return {};
  const std::string& name = arguments[index]->constant.bytes();
  if (is_test ? has_test(name) : has_filter(name)) return {};
  return stream.unsupported(filter.line, fmt::format("the {} '{}'", is_test ? "test" : "filter", name));
}

Pointer parse_test(TokenStream& stream, ExpressionPointer node) {
  const int line = stream.next().line;  // "is"
  const bool negated = stream.skip_name("not");
  ExpressionPointer out = make(ExpressionKind::kTest, line);
  TESSERA_TRY(out->name, dotted_name(stream));
  if (!has_test(out->name)) return stream.unsupported(line, fmt::format("the test '{}'", out->name));
  out->items.push_back(std::move(node));
  const Token& token = stream.current();
  if (stream.is_operator("(")) {
    TESSERA_TRY_STATUS(parse_arguments(stream, out->arguments));
  } else if ((token.kind == TokenKind::kName && token.text != "else" && token.text != "or" &&
              token.text != "and") ||
             token.kind == TokenKind::kString || token.kind == TokenKind::kInteger ||
             token.kind == TokenKind::kFloat || stream.is_operator("[") || stream.is_operator("{")) {
    if (stream.is_name("is")) return stream.error(line, "tests cannot be chained with 'is'");
    TESSERA_TRY(ExpressionPointer argument, parse_unary(stream, false));
    out->arguments.positional.push_back(std::move(argument));
  }
  if (!negated) return out;
  ExpressionPointer inverse = make(ExpressionKind::kNot, line);
  inverse->items.push_back(std::move(out));
  return inverse;
}

Pointer parse_filter_expression(TokenStream& stream, ExpressionPointer node) {
  for (int count = 0;; ++count) {
    if (count > kMaxChain) return stream.error(stream.current().line, "nested too deep");
    if (stream.is_operator("|")) {
      TESSERA_TRY(node, parse_filters(stream, std::move(node), FirstBar::kPresent));
    } else if (stream.is_name("is")) {
      TESSERA_TRY(node, parse_test(stream, std::move(node)));
    } else if (stream.is_operator("(")) {
      TESSERA_TRY(node, parse_call(stream, std::move(node)));
    } else {
      return node;
    }
  }
}

Pointer parse_list(TokenStream& stream, int line) {
  ExpressionPointer out = make(ExpressionKind::kList, line);
  while (!stream.is_operator("]")) {
    if (!out->items.empty()) TESSERA_TRY_STATUS(stream.expect_operator(","));
    if (stream.is_operator("]")) break;
    TESSERA_TRY(ExpressionPointer item, parse_expression(stream));
    out->items.push_back(std::move(item));
  }
  TESSERA_TRY_STATUS(stream.expect_operator("]"));
  return out;
}

Pointer parse_dict(TokenStream& stream, int line) {
  ExpressionPointer out = make(ExpressionKind::kDict, line);
  while (!stream.is_operator("}")) {
    if (!out->items.empty()) TESSERA_TRY_STATUS(stream.expect_operator(","));
    if (stream.is_operator("}")) break;
    TESSERA_TRY(ExpressionPointer key, parse_expression(stream));
    TESSERA_TRY_STATUS(stream.expect_operator(":"));
    TESSERA_TRY(ExpressionPointer value, parse_expression(stream));
    out->items.push_back(std::move(key));
    out->items.push_back(std::move(value));
  }
  TESSERA_TRY_STATUS(stream.expect_operator("}"));
  return out;
}

Pointer parse_parenthesized(TokenStream& stream, int line) {
  if (stream.skip_operator(")")) return make(ExpressionKind::kTuple, line);
  TESSERA_TRY(ExpressionPointer out, parse_tuple(stream, ConditionalExpressions::kAllowed));
  TESSERA_TRY_STATUS(stream.expect_operator(")"));
  return out;
}

Pointer parse_number(TokenStream& stream, const Token& token) {
  if (token.kind == TokenKind::kInteger) {
    const auto number = parse_python_integer(token.text, 0);
    if (!number) return stream.unsupported(token.line, fmt::format("the number {}", token.text));
    return make_constant(Value::integer(*number), token.line);
  }
  const auto number = parse_python_float(token.text);
  if (!number) return stream.error(token.line, fmt::format("'{}' is no number", token.text));
  return make_constant(Value::number(*number), token.line);
}

Pointer parse_primary(TokenStream& stream) {
  const Token token = stream.current();
  switch (token.kind) {
    case TokenKind::kName: {
      stream.next();
      const std::string& name = token.text;
      if (name == "true" || name == "True") return make_constant(Value::boolean(true), token.line);
      if (name == "false" || name == "False") return make_constant(Value::boolean(false), token.line);
      if (name == "none" || name == "None") return make_constant(Value::none(), token.line);
      ExpressionPointer out = make(ExpressionKind::kName, token.line);
      out->name = name;
      out->symbol = stream.symbol(name);
      return out;
    }
    case TokenKind::kString: {
      std::string text;
      while (stream.is(TokenKind::kString)) text += stream.next().text;
      return make_constant(Value::text(text), token.line);
    }
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      stream.next();
      return parse_number(stream, token);
    default:
      break;
  }
  if (stream.skip_operator("(")) return parse_parenthesized(stream, token.line);
  if (stream.skip_operator("[")) return parse_list(stream, token.line);
  if (stream.skip_operator("{")) return parse_dict(stream, token.line);
  return stream.unexpected("an expression");
}

Pointer parse_unary(TokenStream& stream, bool with_filter) {
  const Nesting nesting(stream);
  TESSERA_TRY_STATUS(nesting.check());
  const int line = stream.current().line;
  ExpressionPointer node;
  if (stream.is_operator("-") || stream.is_operator("+")) {
    const bool negative = stream.next().text == "-";
    node = make(negative ? ExpressionKind::kNegative : ExpressionKind::kPositive, line);
    // The operand takes no filters: -x|abs filters the negative.
    TESSERA_TRY(ExpressionPointer operand, parse_unary(stream, false));
    node->items.push_back(std::move(operand));
  } else {
    TESSERA_TRY(node, parse_primary(stream));
  }
  TESSERA_TRY(node, parse_postfix(stream, std::move(node)));
  if (!with_filter) return node;
  return parse_filter_expression(stream, std::move(node));
}

// A level of left-associative binary operators.
template <class Next>
Pointer parse_binary(TokenStream& stream, std::initializer_list<std::string_view> operators, Next next) {
  TESSERA_TRY(ExpressionPointer left, next());
  for (int count = 0;; ++count) {
    std::string_view found;
    for (const std::string_view text : operators)
      if (stream.is_operator(text)) found = text;
    if (found.empty()) return left;
    if (count > kMaxChain) return stream.error(stream.current().line, "nested too deep");
    const int line = stream.next().line;
    TESSERA_TRY(ExpressionPointer right, next());
    left = make_pair(ExpressionKind::kBinary, line, std::move(left), std::move(right));
    left->name = found;
  }
}

Pointer parse_power(TokenStream& stream) {
  return parse_binary(stream, {"**"}, [&] { return parse_unary(stream, true); });
}

Pointer parse_product(TokenStream& stream) {
  return parse_binary(stream, {"*", "/", "//", "%"}, [&] { return parse_power(stream); });
}

Pointer parse_concatenation(TokenStream& stream) {
  TESSERA_TRY(ExpressionPointer first, parse_product(stream));
  if (!stream.is_operator("~")) return first;
  ExpressionPointer out = make(ExpressionKind::kConcatenate, stream.current().line);
  out->items.push_back(std::move(first));
  while (stream.skip_operator("~")) {
    TESSERA_TRY(ExpressionPointer item, parse_product(stream));
    out->items.push_back(std::move(item));
  }
  return out;
}

Pointer parse_sum(TokenStream& stream) {
  return parse_binary(stream, {"+", "-"}, [&] { return parse_concatenation(stream); });
}

Pointer parse_comparison(TokenStream& stream) {
  constexpr std::array<std::pair<std::string_view, Comparison>, 6> kComparisons = {
      {{"==", Comparison::kEqual},
       {"!=", Comparison::kNotEqual},
       {"<=", Comparison::kLessEqual},
       {"<", Comparison::kLess},
       {">=", Comparison::kGreaterEqual},
       {">", Comparison::kGreater}}};
  const int line = stream.current().line;
  TESSERA_TRY(ExpressionPointer left, parse_sum(stream));
  ExpressionPointer out;
  while (true) {
    std::optional<Comparison> found;
    for (const auto& [text, comparison] : kComparisons)
      if (stream.is_operator(text)) found = comparison;
    if (stream.is_name("in")) found = Comparison::kIn;
    if (stream.is_name("not") && stream.look().kind == TokenKind::kName && stream.look().text == "in") {
      found = Comparison::kNotIn;
      stream.next();
    }
    if (!found) break;
    stream.next();
    if (out == nullptr) {
      out = make(ExpressionKind::kCompare, line);
      out->items.push_back(std::move(left));
    }
    out->operators.push_back(*found);
    TESSERA_TRY(ExpressionPointer right, parse_sum(stream));
    out->items.push_back(std::move(right));
  }
  return out == nullptr ? std::move(left) : std::move(out);
}

Pointer parse_not(TokenStream& stream) {
  if (!stream.is_name("not")) return parse_comparison(stream);
  const Nesting nesting(stream);
  TESSERA_TRY_STATUS(nesting.check());
  ExpressionPointer out = make(ExpressionKind::kNot, stream.next().line);
  TESSERA_TRY(ExpressionPointer operand, parse_not(stream));
  out->items.push_back(std::move(operand));
  return out;
}

Pointer parse_and(TokenStream& stream) {
  TESSERA_TRY(ExpressionPointer left, parse_not(stream));
  for (int count = 0; stream.is_name("and"); ++count) {
    const int line = stream.next().line;
    if (count > kMaxChain) return stream.error(line, "nested too deep");
    TESSERA_TRY(ExpressionPointer right, parse_not(stream));
    left = make_pair(ExpressionKind::kAnd, line, std::move(left), std::move(right));
  }
  return left;
}

Pointer parse_or(TokenStream& stream) {
  TESSERA_TRY(ExpressionPointer left, parse_and(stream));
  for (int count = 0; stream.is_name("or"); ++count) {
    const int line = stream.next().line;
    if (count > kMaxChain) return stream.error(line, "nested too deep");
    TESSERA_TRY(ExpressionPointer right, parse_and(stream));
    left = make_pair(ExpressionKind::kOr, line, std::move(left), std::move(right));
  }
  return left;
}

}  // namespace

Result<ExpressionPointer> parse_filters(TokenStream& stream, ExpressionPointer node, FirstBar first) {
  bool inline_start = first == FirstBar::kAbsent;
  for (int count = 0; stream.is_operator("|") || inline_start; ++count) {
    if (count > kMaxChain) return stream.error(stream.current().line, "nested too deep");
    if (!inline_start) stream.next();
    inline_start = false;
    ExpressionPointer out = make(ExpressionKind::kFilter, stream.current().line);
    TESSERA_TRY(out->name, dotted_name(stream));
    if (!has_filter(out->name))
      return stream.unsupported(out->line, fmt::format("the filter '{}'", out->name));
    out->items.push_back(std::move(node));
    if (stream.is_operator("(")) TESSERA_TRY_STATUS(parse_arguments(stream, out->arguments));
    TESSERA_TRY_STATUS(check_named_argument(stream, *out));
    node = std::move(out);
  }
  return node;
}

Result<ExpressionPointer> parse_expression(TokenStream& stream, ConditionalExpressions conditions) {
  const Nesting nesting(stream);
  TESSERA_TRY_STATUS(nesting.check());
  TESSERA_TRY(ExpressionPointer value, parse_or(stream));
  if (conditions == ConditionalExpressions::kNot) return value;
  for (int count = 0; stream.is_name("if"); ++count) {
    if (count > kMaxChain) return stream.error(stream.current().line, "nested too deep");
    ExpressionPointer out = make(ExpressionKind::kCondition, stream.next().line);
    TESSERA_TRY(ExpressionPointer condition, parse_or(stream));
    ExpressionPointer otherwise;
    if (stream.skip_name("else")) {
      TESSERA_TRY(otherwise, parse_expression(stream));
    }
    out->items.push_back(std::move(condition));
    out->items.push_back(std::move(value));
    out->items.push_back(std::move(otherwise));
    value = std::move(out);
  }
  return value;
}

Result<ExpressionPointer> parse_tuple(TokenStream& stream, ConditionalExpressions conditions,
                                      std::string_view end) {
  const int line = stream.current().line;
  std::vector<ExpressionPointer> items;
  bool is_tuple = false;
  while (true) {
    if (!items.empty()) {
      if (!stream.skip_operator(",")) break;
      is_tuple = true;
    }
    if (stream.is(TokenKind::kVariableEnd) || stream.is(TokenKind::kBlockEnd) || stream.is_operator(")") ||
        (!end.empty() && stream.is_name(end)))
      break;
    TESSERA_TRY(ExpressionPointer item, parse_expression(stream, conditions));
    items.push_back(std::move(item));
  }
  if (items.empty()) return stream.unexpected("an expression");
  if (!is_tuple) return std::move(items.front());
  ExpressionPointer out = make(ExpressionKind::kTuple, line);
  out->items = std::move(items);
  return out;
}

}  // namespace tessera::jinja
