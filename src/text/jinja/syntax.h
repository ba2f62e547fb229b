// The syntax tree of a template. One struct for expressions and one for statements: which members are in use
// depends on the kind, and is said beside it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace tessera::jinja {

using Symbol = int32_t;  // a name: index into Syntax::symbols

struct Expression;
struct Statement;
using ExpressionPointer = std::unique_ptr<Expression>;
using Body = std::vector<std::unique_ptr<Statement>>;

enum class ExpressionKind : uint8_t {
  kConstant,     // constant
  kName,         // symbol, name
  kList,         // items
  kTuple,        // items
  kDict,         // items: key, value, key, value
  kAttribute,    // items[0].name
  kItem,         // items[0][items[1]]
  kSlice,        // items[0][items[1]:items[2]:items[3]], any of the last three may be null
  kCall,         // items[0](arguments)
  kFilter,       // items[0]|name(arguments); items[0] null: the body of a filter or set block
  kTest,         // items[0] is name(arguments)
  kNot,          // items[0]
  kNegative,     // items[0]
  kPositive,     // items[0]
  kAnd,          // items[0], items[1]
  kOr,           // items[0], items[1]
  kBinary,       // name is the operator: + - * / // % **
  kConcatenate,  // items
  kCompare,      // items[0], then operators[i] and items[i + 1]
  kCondition,    // items[1] if items[0] else items[2] (may be null)
};

enum class Comparison : uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn
};

struct CallArguments {
  std::vector<ExpressionPointer> positional;
  std::vector<std::pair<std::string, ExpressionPointer>> keywords;
  ExpressionPointer more_positional;  // *x
  ExpressionPointer more_keywords;    // **x
};

struct Expression {
  ExpressionKind kind = ExpressionKind::kConstant;
  int line = 0;
  Symbol symbol = -1;
  std::string name;
  Value constant;
  std::vector<ExpressionPointer> items;
  std::vector<Comparison> operators;
  CallArguments arguments;
};

// What an assignment writes to: a name, an attribute of a namespace, or several of them.
struct Target {
  int line = 0;
  Symbol symbol = -1;
  std::string name;
  std::string attribute;  // not empty: of the namespace `name`
  std::vector<Target> items;
  bool is_tuple = false;
};

enum class StatementKind : uint8_t {
  kText,         // text
  kOutput,       // value, then those of values
  kIf,           // value, body, otherwise
  kFor,          // target, value (iterable), condition (may be null), recursive, body, otherwise
  kSet,          // target, value
  kSetBlock,     // target, value (a chain of filters, may be null), body
  kMacro,        // name, symbol, parameters, body
  kCallBlock,    // value (the call), parameters, body
  kFilterBlock,  // value (a chain of filters), body
  kWith,         // targets, values, body
  kAutoescape,   // value, body
  kBlock,        // name, scoped, body
  kGeneration,   // body
  kBreak,
  kContinue,
};

struct Parameter {
  Symbol symbol = -1;
  std::string name;
  ExpressionPointer fallback;  // may be null
};

struct Statement {
  StatementKind kind = StatementKind::kText;
  int line = 0;
  std::string text;
  std::string name;
  Symbol symbol = -1;
  ExpressionPointer value;
  ExpressionPointer condition;
  Target target;
  std::vector<Target> targets;
  std::vector<ExpressionPointer> values;
  std::vector<Parameter> parameters;
  bool recursive = false;
  bool scoped = false;
  bool uses_caller = false;  // of a macro: its body names caller, varargs, kwargs
  bool uses_varargs = false;
  bool uses_kwargs = false;
  Body body;
  Body otherwise;
};

struct Syntax {
  std::string name;  // of the template, for messages
  std::vector<std::string> symbols;
  Body body;
  std::vector<const Statement*> blocks;
};

}  // namespace tessera::jinja
