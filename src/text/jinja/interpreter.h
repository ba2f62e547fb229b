// Interpreter: runs a syntax tree. It walks the tree directly; filters, tests and methods, which are tables of
// functions in files of their own, call back into it for iteration, attributes, calls and the budget.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/jinja/function.h"
#include "text/jinja/syntax.h"
#include "text/jinja/template.h"
#include "text/jinja/value.h"

namespace tessera::jinja {

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keywords;

  // Takes the keyword argument `name`; undefined where there is none.
  [[nodiscard]] Value take_keyword(std::string_view name);
};

// Arguments in the order of `names`; an absent one is an undefined value that present() tells from a given one.
class BoundArguments {
 public:
  [[nodiscard]] static Result<BoundArguments> bind(const Arguments& arguments,
                                                   std::initializer_list<std::string_view> names,
                                                   std::string_view function);
  [[nodiscard]] bool present(size_t index) const { return present_[index]; }
  [[nodiscard]] const Value& operator[](size_t index) const { return values_[index]; }
  [[nodiscard]] Result<int64_t> integer(size_t index, int64_t fallback) const;
  [[nodiscard]] bool flag(size_t index, bool fallback) const;
  [[nodiscard]] Result<MarkedText> text(size_t index, std::string_view fallback) const;

 private:
  std::vector<Value> values_;
  std::vector<bool> present_;
};

class Interpreter {
 public:
  Interpreter(const Syntax& syntax, const Variables& variables, const RenderOptions& options);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  [[nodiscard]] Result<MarkedText> run();

  [[nodiscard]] Budget& budget() { return budget_; }
  [[nodiscard]] bool autoescape() const { return autoescape_; }

  // The items of anything Python iterates over; a generator is used up by it.
  [[nodiscard]] Result<std::vector<Value>> iterate(const Value& value);
  [[nodiscard]] Result<int64_t> length(const Value& value);
  // object.name and object[key] as Jinja's sandbox looks them up.
  [[nodiscard]] Result<Value> attribute(const Value& object, const std::string& name);
  [[nodiscard]] Result<Value> item(const Value& object, const Value& key);
  [[nodiscard]] Result<Value> slice(const Value& object, const Value& start, const Value& stop,
                                    const Value& step);
  [[nodiscard]] Result<bool> contains(const Value& container, const Value& element);
  [[nodiscard]] Result<bool> holds(Comparison comparison, const Value& left, const Value& right);
  [[nodiscard]] Result<Value> binary(const std::string& operation, const Value& left, const Value& right);
  [[nodiscard]] Result<MarkedText> text_of(const Value& value);
  [[nodiscard]] Result<Value> call(const Value& callee, Arguments arguments);
  // A list, within the bounds of depth and memory.
  [[nodiscard]] Result<Value> make_list(std::vector<Value> items, SequenceKind kind = SequenceKind::kList);
  [[nodiscard]] Result<Value> checked_dict(std::shared_ptr<Dict> dict);
  [[nodiscard]] Result<Value> make_text(MarkedText text);

 private:
  enum class Flow : uint8_t { kNext, kBreak, kContinue };

  [[nodiscard]] Result<Flow> execute(const Body& body);
  [[nodiscard]] Result<Flow> execute(const Statement& statement);
  [[nodiscard]] Result<Flow> execute_for(const Statement& statement);
  [[nodiscard]] Status run_loop(const Statement& statement, std::shared_ptr<Frame> outer,
                                const Value& iterable, int64_t depth);
  [[nodiscard]] Status assign(const Target& target, const Value& value);
  [[nodiscard]] Status call_block(const Statement& statement);
  // A body in a scope of its own below `parent`, its output as a text.
  [[nodiscard]] Result<MarkedText> capture(const Body& body, const std::shared_ptr<Frame>& frame);
  [[nodiscard]] Status write(const MarkedText& text);
  [[nodiscard]] Status write_value(const Value& value);

  [[nodiscard]] Result<Value> evaluate(const Expression& expression);
  [[nodiscard]] Result<Value> evaluate_node(const Expression& expression);
  [[nodiscard]] Result<Value> evaluate_filter(const Expression& expression, const Value* body);
  [[nodiscard]] Result<Value> evaluate_compare(const Expression& expression);
  [[nodiscard]] Result<Arguments> evaluate_arguments(const CallArguments& arguments);
  [[nodiscard]] Value lookup(Symbol symbol, const std::string& name) const;

  [[nodiscard]] Result<Value> call_macro(const MacroFunction& macro, Arguments arguments);
  [[nodiscard]] Result<Value> call_builtin(const std::string& name, Arguments arguments);
  [[nodiscard]] Result<Value> call_loop_method(const LoopMethodFunction& method, Arguments arguments);
  [[nodiscard]] Value loop_attribute(const Value& loop, const std::string& name) const;
  [[nodiscard]] Value function_attribute(const Value& function, const std::string& name) const;
  [[nodiscard]] Failure at_line(const Error& error, int line);

  const Syntax& syntax_;
  const Variables& variables_;
  const RenderOptions& options_;
  Budget budget_;
  int depth_ = 0;
  bool autoescape_ = false;
  bool located_ = false;        // the error on its way up names its line
  std::vector<Value> globals_;  // by symbol; undefined where there is none
  std::vector<bool> has_global_;
  std::shared_ptr<Frame> root_;
  std::shared_ptr<Frame> frame_;
  MarkedText* out_ = nullptr;
  // What may hold itself, emptied at the end.
  std::vector<std::shared_ptr<Frame>> captured_;
  std::vector<std::shared_ptr<NamespaceObject>> namespaces_;
};

// An undefined value where it must not stand.
[[nodiscard]] Failure undefined_error(const Value& value);

}  // namespace tessera::jinja
