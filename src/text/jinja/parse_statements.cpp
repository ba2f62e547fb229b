// Statements: one function per tag.
#include <algorithm>
#include <array>

#include "text/jinja/token_stream.h"

namespace tessera::jinja {
namespace {

using StatementPointer = std::unique_ptr<Statement>;
using Names = std::vector<std::string_view>;

StatementPointer make(StatementKind kind, int line) {
  auto out = std::make_unique<Statement>();
  out->kind = kind;
  out->line = line;
  return out;
}

class Parser {
 public:
  Parser(TokenStream& stream, Syntax& syntax) : stream_(stream), syntax_(syntax) {}

  // Until a tag whose name is one of `ends`; that name is the current token then. Without ends: to the end of the
  // source.
  Result<Body> body(const Names& ends) {
    const Nesting nesting(stream_);
    TESSERA_TRY_STATUS(nesting.check());
    Body out;
    while (true) {
      const Token& token = stream_.current();
      switch (token.kind) {
        case TokenKind::kEnd:
          if (ends.empty()) return out;
          return stream_.error(token.line,
                               fmt::format("expected a tag '{}', found the end of the template", ends[0]));
        case TokenKind::kData: {
          StatementPointer text = make(StatementKind::kText, token.line);
          text->text = stream_.next().text;
          out.push_back(std::move(text));
          break;
        }
        case TokenKind::kVariableBegin: {
          StatementPointer output = make(StatementKind::kOutput, stream_.next().line);
          TESSERA_TRY(output->value, parse_tuple(stream_, ConditionalExpressions::kAllowed));
          TESSERA_TRY_STATUS(stream_.expect(TokenKind::kVariableEnd, "'}}'"));
          out.push_back(std::move(output));
          break;
        }
        case TokenKind::kBlockBegin: {
          stream_.next();
          if (!stream_.is(TokenKind::kName)) return stream_.unexpected("the name of a tag");
          for (const std::string_view end : ends)
            if (stream_.is_name(end)) return out;
          TESSERA_TRY(StatementPointer statement, this->statement());
          out.push_back(std::move(statement));
          TESSERA_TRY_STATUS(stream_.expect(TokenKind::kBlockEnd, "'%}'"));
          break;
        }
        default:
          return stream_.unexpected("text or a tag");
      }
    }
  }

 private:
  using ParseTag = Result<StatementPointer> (Parser::*)(int line);

  Result<StatementPointer> statement() {
    struct Row {
      std::string_view tag;
      ParseTag parse;
    };
    constexpr std::array<Row, 13> kTags = {{{"if", &Parser::parse_if},
                                            {"for", &Parser::parse_for},
                                            {"set", &Parser::parse_set},
                                            {"macro", &Parser::parse_macro},
                                            {"call", &Parser::parse_call_block},
                                            {"filter", &Parser::parse_filter_block},
                                            {"with", &Parser::parse_with},
                                            {"autoescape", &Parser::parse_autoescape},
                                            {"block", &Parser::parse_block},
                                            {"print", &Parser::parse_print},
                                            {"generation", &Parser::parse_generation},
                                            {"break", &Parser::parse_break},
                                            {"continue", &Parser::parse_continue}}};
    const Token token = stream_.next();
    for (const Row& row : kTags)
      if (row.tag == token.text) return (this->*row.parse)(token.line);
    for (const std::string_view tag : {"include", "import", "from", "extends", "do", "trans", "debug"})
      if (tag == token.text) return stream_.unsupported(token.line, fmt::format("the tag '{}'", tag));
    return stream_.error(token.line, fmt::format("unknown tag '{}'", token.text));
  }

  // The rest of a tag, the statements inside, and the closing tag's name.
  Result<Body> inside(const Names& ends) {
    TESSERA_TRY_STATUS(stream_.expect(TokenKind::kBlockEnd, "'%}'"));
    return body(ends);
  }

  Result<StatementPointer> parse_if(int line) {
    StatementPointer out = make(StatementKind::kIf, line);
    Statement* last = out.get();
    while (true) {
      TESSERA_TRY(last->value, parse_tuple(stream_, ConditionalExpressions::kNot));
      TESSERA_TRY(last->body, inside({"elif", "else", "endif"}));
      const Token end = stream_.next();
      if (end.text == "endif") break;
      if (end.text == "else") {
        TESSERA_TRY(last->otherwise, inside({"endif"}));
        stream_.next();
        break;
      }
      // An elif is an if inside of the else: counted, because running it recurses.
      if (++chain_ > kMaxElif) return stream_.error(end.line, "too many elif");
      last->otherwise.push_back(make(StatementKind::kIf, end.line));
      last = last->otherwise.back().get();
    }
    chain_ = 0;
    return out;
  }

  Result<Target> target_item(bool namespaces) {
    Target out;
    out.line = stream_.current().line;
    if (stream_.skip_operator("(")) {
      TESSERA_TRY(out, target(namespaces, ")"));
      TESSERA_TRY_STATUS(stream_.expect_operator(")"));
      return out;
    }
    TESSERA_TRY(out.name, stream_.take_name());
    for (const std::string_view word : {"true", "false", "none", "True", "False", "None"})
      if (out.name == word) return stream_.error(out.line, fmt::format("'{}' cannot be assigned to", word));
    out.symbol = stream_.symbol(out.name);
    if (namespaces && stream_.skip_operator(".")) {
      TESSERA_TRY(out.attribute, stream_.take_name());
    }
    return out;
  }

  Result<Target> target(bool namespaces, std::string_view end) {
    const Nesting nesting(stream_);
    TESSERA_TRY_STATUS(nesting.check());
    TESSERA_TRY(Target first, target_item(namespaces));
    if (!stream_.is_operator(",")) return first;
    Target out;
    out.line = first.line;
    out.is_tuple = true;
    out.items.push_back(std::move(first));
    while (stream_.skip_operator(",")) {
      if (stream_.is_operator(end) || stream_.is_operator("=") || stream_.is_name("in")) break;
      TESSERA_TRY(Target item, target_item(namespaces));
      out.items.push_back(std::move(item));
    }
    return out;
  }

  Result<StatementPointer> parse_for(int line) {
    StatementPointer out = make(StatementKind::kFor, line);
    TESSERA_TRY(out->target, target(false, ""));
    TESSERA_TRY_STATUS(stream_.expect_name("in"));
    TESSERA_TRY(out->value, parse_tuple(stream_, ConditionalExpressions::kNot, "recursive"));
    if (stream_.skip_name("if")) {
      TESSERA_TRY(out->condition, parse_expression(stream_));
    }
    out->recursive = stream_.skip_name("recursive");
    out->symbol = stream_.symbol("loop");
    ++loops_;
    TESSERA_TRY(out->body, inside({"endfor", "else"}));
    --loops_;
    if (stream_.next().text == "else") {
      TESSERA_TRY(out->otherwise, inside({"endfor"}));
      stream_.next();
    }
    return out;
  }

  Result<StatementPointer> parse_set(int line) {
    StatementPointer out = make(StatementKind::kSet, line);
    TESSERA_TRY(out->target, target(true, ""));
    if (stream_.skip_operator("=")) {
      TESSERA_TRY(out->value, parse_tuple(stream_, ConditionalExpressions::kAllowed));
      return out;
    }
    out->kind = StatementKind::kSetBlock;
    TESSERA_TRY(out->value, parse_filters(stream_, nullptr, FirstBar::kPresent));
    TESSERA_TRY(out->body, scope({"endset"}));
    stream_.next();
    return out;
  }

  // A body that is a function of its own: break and continue do not reach out of it.
  Result<Body> scope(const Names& ends) {
    const int loops = loops_;
    loops_ = 0;
    TESSERA_TRY(Body out, inside(ends));
    loops_ = loops;
    return out;
  }

  Status signature(Statement& out) {
    TESSERA_TRY_STATUS(stream_.expect_operator("("));
    while (!stream_.is_operator(")")) {
      if (!out.parameters.empty()) TESSERA_TRY_STATUS(stream_.expect_operator(","));
      Parameter parameter;
      TESSERA_TRY(parameter.name, stream_.take_name());
      parameter.symbol = stream_.symbol(parameter.name);
      if (stream_.skip_operator("=")) {
        TESSERA_TRY(parameter.fallback, parse_expression(stream_));
      } else if (!out.parameters.empty() && out.parameters.back().fallback != nullptr) {
        return stream_.error(stream_.current().line,
                             "a parameter without a default behind one with a default");
      }
      out.parameters.push_back(std::move(parameter));
    }
    return stream_.expect_operator(")");
  }

  // The body of a macro, and which of the names that a macro gets unasked it uses.
  Status macro_body(Statement& out, const Names& ends) {
    TESSERA_TRY(out.body, scope(ends));
    stream_.next();
    const auto declared = [&](std::string_view name) {
      return std::any_of(out.parameters.begin(), out.parameters.end(),
                         [&](const Parameter& parameter) { return parameter.name == name; });
    };
    out.uses_caller = uses_name(out.body, "caller") || declared("caller");
    out.uses_varargs = uses_name(out.body, "varargs") && !declared("varargs");
    out.uses_kwargs = uses_name(out.body, "kwargs") && !declared("kwargs");
    return {};
  }

  static bool uses_name(const Expression* expression, std::string_view name) {
    if (expression == nullptr) return false;
    if (expression->kind == ExpressionKind::kName && expression->name == name) return true;
    const auto used = [&](const ExpressionPointer& part) { return uses_name(part.get(), name); };
    const CallArguments& arguments = expression->arguments;
    return std::any_of(expression->items.begin(), expression->items.end(), used) ||
           std::any_of(arguments.positional.begin(), arguments.positional.end(), used) ||
           std::any_of(arguments.keywords.begin(), arguments.keywords.end(),
                       [&](const auto& keyword) { return used(keyword.second); }) ||
           used(arguments.more_positional) || used(arguments.more_keywords);
  }

  static bool uses_name(const Body& body, std::string_view name) {
    return std::any_of(body.begin(), body.end(), [&](const StatementPointer& statement) {
      return uses_name(statement->value.get(), name) || uses_name(statement->condition.get(), name) ||
             std::any_of(statement->values.begin(), statement->values.end(),
                         [&](const ExpressionPointer& value) { return uses_name(value.get(), name); }) ||
             uses_name(statement->body, name) || uses_name(statement->otherwise, name);
    });
  }

  Result<StatementPointer> parse_macro(int line) {
    StatementPointer out = make(StatementKind::kMacro, line);
    TESSERA_TRY(out->name, stream_.take_name());
    out->symbol = stream_.symbol(out->name);
    TESSERA_TRY_STATUS(signature(*out));
    TESSERA_TRY_STATUS(macro_body(*out, {"endmacro"}));
    return out;
  }

  Result<StatementPointer> parse_call_block(int line) {
    StatementPointer out = make(StatementKind::kCallBlock, line);
    if (stream_.is_operator("(")) TESSERA_TRY_STATUS(signature(*out));
    TESSERA_TRY(out->value, parse_expression(stream_));
    if (out->value->kind != ExpressionKind::kCall)
      return stream_.error(line, "expected a call behind 'call'");
    TESSERA_TRY_STATUS(macro_body(*out, {"endcall"}));
    return out;
  }

  Result<StatementPointer> parse_filter_block(int line) {
    StatementPointer out = make(StatementKind::kFilterBlock, line);
    TESSERA_TRY(out->value, parse_filters(stream_, nullptr, FirstBar::kAbsent));
    TESSERA_TRY(out->body, scope({"endfilter"}));
    stream_.next();
    return out;
  }

  Result<StatementPointer> parse_with(int line) {
    StatementPointer out = make(StatementKind::kWith, line);
    while (!stream_.is(TokenKind::kBlockEnd)) {
      if (!out->targets.empty()) TESSERA_TRY_STATUS(stream_.expect_operator(","));
      TESSERA_TRY(Target name, target_item(false));
      TESSERA_TRY_STATUS(stream_.expect_operator("="));
      TESSERA_TRY(ExpressionPointer value, parse_expression(stream_));
      out->targets.push_back(std::move(name));
      out->values.push_back(std::move(value));
    }
    TESSERA_TRY(out->body, inside({"endwith"}));
    stream_.next();
    return out;
  }

  Result<StatementPointer> parse_autoescape(int line) {
    StatementPointer out = make(StatementKind::kAutoescape, line);
    TESSERA_TRY(out->value, parse_expression(stream_));
    TESSERA_TRY(out->body, inside({"endautoescape"}));
    stream_.next();
    return out;
  }

  Result<StatementPointer> parse_block(int line) {
    StatementPointer out = make(StatementKind::kBlock, line);
    TESSERA_TRY(out->name, stream_.take_name());
    out->scoped = stream_.skip_name("scoped");
    if (stream_.is_name("required")) return stream_.unsupported(line, "a required block");
    for (const Statement* other : syntax_.blocks)
      if (other->name == out->name) return stream_.error(line, fmt::format("a second block '{}'", out->name));
    syntax_.blocks.push_back(out.get());
    TESSERA_TRY(out->body, scope({"endblock"}));
    stream_.next();
    if (stream_.is(TokenKind::kName)) TESSERA_TRY_STATUS(stream_.expect_name(out->name));
    return out;
  }

  Result<StatementPointer> parse_print(int line) {
    StatementPointer out = make(StatementKind::kOutput, line);
    TESSERA_TRY(out->value, parse_expression(stream_));
    while (stream_.skip_operator(",")) {
      TESSERA_TRY(ExpressionPointer value, parse_expression(stream_));
      out->values.push_back(std::move(value));
    }
    return out;
  }

  Result<StatementPointer> parse_generation(int line) {
    StatementPointer out = make(StatementKind::kGeneration, line);
    TESSERA_TRY(out->body, scope({"endgeneration"}));
    stream_.next();
    return out;
  }

  Result<StatementPointer> parse_break(int line) { return loop_control(StatementKind::kBreak, line); }
  Result<StatementPointer> parse_continue(int line) { return loop_control(StatementKind::kContinue, line); }

  Result<StatementPointer> loop_control(StatementKind kind, int line) {
    if (loops_ == 0) return stream_.error(line, "break or continue outside of a loop");
    return make(kind, line);
  }

  static constexpr int kMaxElif = 100;
  TokenStream& stream_;
  Syntax& syntax_;
  int loops_ = 0;
  int chain_ = 0;
};

}  // namespace

Result<Body> parse_body(TokenStream& stream, Syntax& syntax) {
  return Parser(stream, syntax).body({});
}

Result<std::unique_ptr<Syntax>> parse_template(std::string_view source, const std::string& name) {
  auto syntax = std::make_unique<Syntax>();
  syntax->name = name;
  TESSERA_TRY(std::vector<Token> tokens, tokenize(source, name));
  TokenStream stream(std::move(tokens), name, *syntax);
  TESSERA_TRY(syntax->body, parse_body(stream, *syntax));
  return syntax;
}

}  // namespace tessera::jinja
