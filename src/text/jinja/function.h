// Function: the values that can be called, and those that exist for their attributes only: macros, bound methods,
// built-in functions, the loop variable, cyclers and joiners. What a call does is the interpreter's work.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/jinja/syntax.h"
#include "text/jinja/value.h"

namespace tessera::jinja {

// The variables of one scope. Names are symbols of the template.
struct Frame {
  std::shared_ptr<Frame> parent;
  std::vector<std::pair<Symbol, Value>> values;

  void set(Symbol symbol, Value value);
  [[nodiscard]] const Value* find_here(Symbol symbol) const;
};

enum class FunctionKind : uint8_t {
  kBuiltin,  // range, dict, namespace, cycler, joiner, raise_exception, strftime_now
  kMethod,   // of a string, a list, a dict
  kMacro,    // also the body of a call block
  kBlock,    // self.name
  kSelf,     // the variable self
  kLoop,
  kCycler,
  kCyclerStep,  // cycler.next, cycler.reset
  kJoiner,
  kLoopMethod,  // loop.cycle, loop.changed
};

class Function : public Object {
 public:
  Function(FunctionKind kind_of, std::string name_of) : kind(kind_of), name(std::move(name_of)) {}
  FunctionKind kind;
  std::string name;
};

struct MethodFunction : Function {
  MethodFunction(std::string method, Value object)
      : Function(FunctionKind::kMethod, std::move(method)), self(std::move(object)) {}
  Value self;
};

struct MacroFunction : Function {
  MacroFunction(const Statement& macro, std::shared_ptr<Frame> frame)
      : Function(FunctionKind::kMacro, macro.name), statement(macro), scope(std::move(frame)) {}
  const Statement& statement;
  std::shared_ptr<Frame> scope;  // where it was defined
};

struct BlockFunction : Function {
  explicit BlockFunction(const Statement& block)
      : Function(FunctionKind::kBlock, block.name), statement(block) {}
  const Statement& statement;
};

struct LoopFunction : Function {
  LoopFunction() : Function(FunctionKind::kLoop, "loop") {}
  std::vector<Value> items;
  size_t index = 0;
  int64_t depth = 0;
  mutable bool changed_before = false;
  mutable Value last_changed;
  const Statement* recursive = nullptr;  // the statement, where it may be called
  std::shared_ptr<Frame> scope;
};

struct LoopMethodFunction : Function {
  LoopMethodFunction(std::string method, std::shared_ptr<const Object> object)
      : Function(FunctionKind::kLoopMethod, std::move(method)), loop(std::move(object)) {}
  std::shared_ptr<const Object> loop;
};

struct CyclerFunction : Function {
  explicit CyclerFunction(std::vector<Value> values)
      : Function(FunctionKind::kCycler, "cycler"), items(std::move(values)) {}
  std::vector<Value> items;
  mutable size_t position = 0;
};

struct CyclerStepFunction : Function {
  CyclerStepFunction(std::string method, std::shared_ptr<const Object> object)
      : Function(FunctionKind::kCyclerStep, std::move(method)), cycler(std::move(object)) {}
  std::shared_ptr<const Object> cycler;
};

struct JoinerFunction : Function {
  explicit JoinerFunction(Value text)
      : Function(FunctionKind::kJoiner, "joiner"), separator(std::move(text)) {}
  Value separator;
  mutable bool used = false;
};

}  // namespace tessera::jinja
