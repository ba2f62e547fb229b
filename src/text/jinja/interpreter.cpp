// Scopes, statements and calls. See interpreter.h; expressions are in evaluate.cpp.
#include "text/jinja/interpreter.h"

#include <algorithm>

#include "text/jinja/filters.h"
#include "text/jinja/methods.h"
#include "text/jinja/strftime.h"

namespace tessera::jinja {

namespace {

constexpr std::string_view kBuiltins[] = {"range",           "dict",        "namespace", "cycler", "joiner",
                                          "raise_exception", "strftime_now"};
constexpr int64_t kMaxRange = 100000;  // as in Jinja's sandbox

}  // namespace

void Frame::set(Symbol symbol, Value value) {
  for (auto& [name, old] : values) {
    if (name != symbol) continue;
    old = std::move(value);
    return;
  }
  values.emplace_back(symbol, std::move(value));
}

const Value* Frame::find_here(Symbol symbol) const {
  for (const auto& [name, value] : values)
    if (name == symbol) return &value;
  return nullptr;
}

Failure undefined_error(const Value& value) {
  return fail(ErrorCode::kBadData, "{}", value.undefined_message());
}

Value Arguments::take_keyword(std::string_view name) {
  for (auto it = keywords.begin(); it != keywords.end(); ++it) {
    if (it->first != name) continue;
    Value value = std::move(it->second);
    keywords.erase(it);
    return value;
  }
  return {};
}

Result<BoundArguments> BoundArguments::bind(const Arguments& arguments,
                                            std::initializer_list<std::string_view> names,
                                            std::string_view function) {
  BoundArguments out;
  out.values_.resize(names.size());
  out.present_.resize(names.size());
  if (arguments.positional.size() > names.size())
    return fail(ErrorCode::kBadData, "{} takes at most {} arguments, found {}", function, names.size(),
                arguments.positional.size());
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    out.values_[i] = arguments.positional[i];
    out.present_[i] = true;
  }
  for (const auto& [name, value] : arguments.keywords) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) return fail(ErrorCode::kBadData, "{} has no argument '{}'", function, name);
    const auto index = static_cast<size_t>(found - names.begin());
    if (out.present_[index]) return fail(ErrorCode::kBadData, "{} got '{}' twice", function, name);
    out.values_[index] = value;
    out.present_[index] = true;
  }
  return out;
}

Result<int64_t> BoundArguments::integer(size_t index, int64_t fallback) const {
  if (!present_[index]) return fallback;
  const Value& value = values_[index];
  if (value.is_undefined()) return undefined_error(value);
  if (!value.is_integral())
    return fail(ErrorCode::kBadData, "expected an integer, found a value of type '{}'", type_name(value));
  return value.as_integer();
}

bool BoundArguments::flag(size_t index, bool fallback) const {
  return present_[index] ? truth(values_[index]) : fallback;
}

Result<MarkedText> BoundArguments::text(size_t index, std::string_view fallback) const {
  if (!present_[index]) return MarkedText(std::string(fallback));
  if (!values_[index].is(Kind::kText))
    return fail(ErrorCode::kBadData, "expected a string, found a value of type '{}'",
                type_name(values_[index]));
  return values_[index].as_text();
}

Interpreter::Interpreter(const Syntax& syntax, const Variables& variables, const RenderOptions& options)
    : syntax_(syntax),
      variables_(variables),
      options_(options),
      budget_(options.max_steps, options.max_bytes),
      root_(std::make_shared<Frame>()),
      frame_(root_) {
  globals_.resize(syntax.symbols.size());
  has_global_.resize(syntax.symbols.size());
  for (size_t i = 0; i < syntax.symbols.size(); ++i) {
    const std::string& name = syntax.symbols[i];
    if (const Value* value = variables.find(name)) {
      globals_[i] = *value;
    } else if (std::find(std::begin(kBuiltins), std::end(kBuiltins), name) != std::end(kBuiltins)) {
      globals_[i] = Value(Kind::kFunction, std::make_shared<Function>(FunctionKind::kBuiltin, name));
    } else if (name == "self") {
      globals_[i] = Value(Kind::kFunction, std::make_shared<Function>(FunctionKind::kSelf, name));
    } else {
      continue;
    }
    has_global_[i] = true;
  }
}

Interpreter::~Interpreter() {
  for (const auto& frame : captured_) std::exchange(frame->values, {}).clear();
  for (const auto& space : namespaces_) space->values.clear();
}

Result<MarkedText> Interpreter::run() {
  MarkedText out;
  out_ = &out;
  TESSERA_TRY_STATUS(execute(syntax_.body));
  return out;
}

Failure Interpreter::at_line(const Error& error, int line) {
  // What the template itself says is passed on as it is.
  if (error.code == ErrorCode::kInvalidArgument || located_) return Failure(error);
  located_ = true;
  return fail(error.code, "{}: line {}: {}", syntax_.name, line, error.message);
}

Status Interpreter::write(const MarkedText& text) {
  if (out_->size() + text.size() > options_.max_output)
    return fail(ErrorCode::kResourceLimit, "the template writes more than {} bytes", options_.max_output);
  TESSERA_TRY_STATUS(budget_.spend_bytes(text.size()));
  out_->append(text);
  return {};
}

Status Interpreter::write_value(const Value& value) {
  TESSERA_TRY(const MarkedText text, text_of(value));
  return write(autoescape_ ? escape_html(text) : text);
}

Result<MarkedText> Interpreter::capture(const Body& body, const std::shared_ptr<Frame>& frame) {
  MarkedText text;
  MarkedText* const outer_out = std::exchange(out_, &text);
  std::shared_ptr<Frame> outer_frame = std::exchange(frame_, frame);
  const Result<Flow> flow = execute(body);
  out_ = outer_out;
  frame_ = std::move(outer_frame);
  if (!flow) return Failure(flow.error());
  return text;
}

Result<Interpreter::Flow> Interpreter::execute(const Body& body) {
  for (const auto& statement : body) {
    TESSERA_TRY(const Flow flow, execute(*statement));
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::execute(const Statement& statement) {
  TESSERA_TRY_STATUS(budget_.spend_steps(1));
  if (depth_ >= options_.max_depth)
    return fail(ErrorCode::kResourceLimit, "{}: line {}: calls nest too deep", syntax_.name, statement.line);
  ++depth_;
  const auto run = [&]() -> Result<Flow> {
    const auto inner = [&] {
      auto frame = std::make_shared<Frame>();
      frame->parent = frame_;
      return frame;
    };
    switch (statement.kind) {
      case StatementKind::kText:
        TESSERA_TRY_STATUS(write(MarkedText(statement.text)));
        return Flow::kNext;
      case StatementKind::kOutput: {
        TESSERA_TRY(const Value value, evaluate(*statement.value));
        TESSERA_TRY_STATUS(write_value(value));
        for (const auto& more : statement.values) {
          TESSERA_TRY(const Value next, evaluate(*more));
          TESSERA_TRY_STATUS(write_value(next));
        }
        return Flow::kNext;
      }
      case StatementKind::kIf: {
        TESSERA_TRY(const Value condition, evaluate(*statement.value));
        return execute(truth(condition) ? statement.body : statement.otherwise);
      }
      case StatementKind::kFor: {
        TESSERA_TRY(const Value iterable, evaluate(*statement.value));
        TESSERA_TRY_STATUS(run_loop(statement, frame_, iterable, 0));
        return Flow::kNext;
      }
      case StatementKind::kSet: {
        TESSERA_TRY(const Value value, evaluate(*statement.value));
        TESSERA_TRY_STATUS(assign(statement.target, value));
        return Flow::kNext;
      }
      case StatementKind::kSetBlock:
      case StatementKind::kFilterBlock: {
        TESSERA_TRY(MarkedText text, capture(statement.body, inner()));
        text.set_markup(autoescape_);
        TESSERA_TRY(Value value, make_text(std::move(text)));
        if (statement.value != nullptr) {
          TESSERA_TRY(value, evaluate_filter(*statement.value, &value));
        }
        if (statement.kind == StatementKind::kSetBlock) {
          TESSERA_TRY_STATUS(assign(statement.target, value));
        } else {
          TESSERA_TRY_STATUS(write_value(value));
        }
        return Flow::kNext;
      }
      case StatementKind::kMacro: {
        captured_.push_back(frame_);
        TESSERA_TRY_STATUS(budget_.spend_bytes(256));
        frame_->set(statement.symbol,
                    Value(Kind::kFunction, std::make_shared<MacroFunction>(statement, frame_)));
        return Flow::kNext;
      }
      case StatementKind::kCallBlock:
        TESSERA_TRY_STATUS(call_block(statement));
        return Flow::kNext;
      case StatementKind::kWith: {
        auto frame = inner();
        for (size_t i = 0; i < statement.targets.size(); ++i) {
          TESSERA_TRY(Value value, evaluate(*statement.values[i]));
          frame->set(statement.targets[i].symbol, std::move(value));
        }
        std::shared_ptr<Frame> outer = std::exchange(frame_, frame);
        Result<Flow> flow = execute(statement.body);
        frame_ = std::move(outer);
        return flow;
      }
      case StatementKind::kAutoescape: {
        TESSERA_TRY(const Value value, evaluate(*statement.value));
        const bool outer = std::exchange(autoescape_, truth(value));
        std::shared_ptr<Frame> outer_frame = std::exchange(frame_, inner());
        Result<Flow> flow = execute(statement.body);
        frame_ = std::move(outer_frame);
        autoescape_ = outer;
        return flow;
      }
      case StatementKind::kBlock: {
        auto frame = std::make_shared<Frame>();
        frame->parent = statement.scoped ? frame_ : root_;
        TESSERA_TRY(const MarkedText text, capture(statement.body, frame));
        TESSERA_TRY_STATUS(write(text));
        return Flow::kNext;
      }
      case StatementKind::kGeneration: {
        TESSERA_TRY(const MarkedText text, capture(statement.body, inner()));
        TESSERA_TRY_STATUS(write(text));
        return Flow::kNext;
      }
      case StatementKind::kBreak:
        return Flow::kBreak;
      case StatementKind::kContinue:
        return Flow::kContinue;
    }
    return Flow::kNext;
  };
  Result<Flow> flow = run();
  --depth_;
  if (!flow) return at_line(flow.error(), statement.line);
  return flow;
}

Status Interpreter::run_loop(const Statement& statement, std::shared_ptr<Frame> outer, const Value& iterable,
                             int64_t depth) {
  TESSERA_TRY(std::vector<Value> items, iterate(iterable));
  std::shared_ptr<Frame> before = frame_;
  const auto enter = [&] {
    frame_ = std::make_shared<Frame>();
    frame_->parent = outer;
  };
  const auto leave = [&] { frame_ = before; };

  if (statement.condition != nullptr) {
    std::vector<Value> kept;
    for (Value& item : items) {
      enter();
      const auto test = [&]() -> Result<bool> {
        TESSERA_TRY_STATUS(assign(statement.target, item));
        TESSERA_TRY(const Value value, evaluate(*statement.condition));
        return truth(value);
      };
      const Result<bool> keep = test();
      leave();
      if (!keep) return Failure(keep.error());
      if (*keep) kept.push_back(std::move(item));
    }
    items = std::move(kept);
  }

  auto loop = std::make_shared<LoopFunction>();
  loop->depth = depth;
  loop->items = std::move(items);
  if (statement.recursive) {
    loop->recursive = &statement;
    loop->scope = outer;
    captured_.push_back(outer);
    TESSERA_TRY_STATUS(budget_.spend_bytes(256));
  }
  for (size_t i = 0; i < loop->items.size(); ++i) {
    loop->index = i;
    enter();
    frame_->set(statement.symbol, Value(Kind::kFunction, loop));
    const Status assigned = assign(statement.target, loop->items[i]);
    Result<Flow> flow = assigned ? execute(statement.body) : Result<Flow>(Failure(assigned.error()));
    leave();
    if (!flow) return Failure(flow.error());
    if (*flow == Flow::kBreak) break;
  }
  if (loop->items.empty() && !statement.otherwise.empty()) {
    enter();
    const Result<Flow> flow = execute(statement.otherwise);
    leave();
    if (!flow) return Failure(flow.error());
  }
  return {};
}

Status Interpreter::assign(const Target& target, const Value& value) {
  if (target.is_tuple) {
    TESSERA_TRY(const std::vector<Value> items, iterate(value));
    if (items.size() != target.items.size())
      return fail(ErrorCode::kBadData, "expected {} values to unpack, found {}", target.items.size(),
                  items.size());
    for (size_t i = 0; i < items.size(); ++i) TESSERA_TRY_STATUS(assign(target.items[i], items[i]));
    return {};
  }
  if (target.attribute.empty()) {
    frame_->set(target.symbol, value);
    return {};
  }
  const Value space = lookup(target.symbol, target.name);
  if (!space.is(Kind::kNamespace))
    return fail(ErrorCode::kBadData, "cannot assign to the attribute '{}' of '{}': it is no namespace",
                target.attribute, target.name);
  TESSERA_TRY_STATUS(budget_.spend_bytes(64));
  space.as_namespace().values.set(Value::text(target.attribute), value);
  return {};
}

Value Interpreter::lookup(Symbol symbol, const std::string& name) const {
  for (const Frame* frame = frame_.get(); frame != nullptr; frame = frame->parent.get())
    if (const Value* found = frame->find_here(symbol)) return *found;
  if (has_global_[static_cast<size_t>(symbol)]) return globals_[static_cast<size_t>(symbol)];
  return Value::undefined(fmt::format("'{}' is undefined", name));
}

Status Interpreter::call_block(const Statement& statement) {
  captured_.push_back(frame_);
  TESSERA_TRY_STATUS(budget_.spend_bytes(256));
  const Value caller(Kind::kFunction, std::make_shared<MacroFunction>(statement, frame_));
  TESSERA_TRY(const Value callee, evaluate(*statement.value->items[0]));
  TESSERA_TRY(Arguments arguments, evaluate_arguments(statement.value->arguments));
  arguments.keywords.emplace_back("caller", caller);
  TESSERA_TRY(const Value result, call(callee, std::move(arguments)));
  return write_value(result);
}

Result<Value> Interpreter::call_macro(const MacroFunction& macro, Arguments arguments) {
  const Statement& statement = macro.statement;
  auto frame = std::make_shared<Frame>();
  frame->parent = macro.scope;
  const size_t given = std::min(arguments.positional.size(), statement.parameters.size());
  std::vector<std::pair<const Parameter*, Value>> absent;
  bool declares_caller = false;
  std::vector<bool> missing(statement.parameters.size());
  for (size_t i = 0; i < statement.parameters.size(); ++i) {
    const Parameter& parameter = statement.parameters[i];
    declares_caller |= parameter.name == "caller";
    if (i < given) {
      frame->set(parameter.symbol, arguments.positional[i]);
      continue;
    }
    const bool named = std::any_of(arguments.keywords.begin(), arguments.keywords.end(),
                                   [&](const auto& keyword) { return keyword.first == parameter.name; });
    if (named)
      frame->set(parameter.symbol, arguments.take_keyword(parameter.name));
    else
      missing[i] = true;
  }
  const auto symbol_of = [&](std::string_view name) {
    const auto found = std::find(syntax_.symbols.begin(), syntax_.symbols.end(), name);
    return static_cast<Symbol>(found - syntax_.symbols.begin());
  };
  const std::string name = macro.name.empty() ? "of the call block" : "'" + macro.name + "'";
  if (statement.uses_caller && !declares_caller) {
    Value caller = arguments.take_keyword("caller");
    if (caller.is_undefined()) caller = Value::undefined("No caller defined");
    frame->set(symbol_of("caller"), std::move(caller));
  }
  if (statement.uses_kwargs) {
    auto dict = std::make_shared<Dict>();
    for (auto& [key, value] : arguments.keywords) dict->set(Value::text(key), std::move(value));
    TESSERA_TRY(Value kwargs, checked_dict(std::move(dict)));
    frame->set(symbol_of("kwargs"), std::move(kwargs));
  } else if (!arguments.keywords.empty()) {
    return fail(ErrorCode::kBadData, "macro {} takes no keyword argument '{}'", name,
                arguments.keywords[0].first);
  }
  if (statement.uses_varargs) {
    TESSERA_TRY(Value varargs, make_list({arguments.positional.begin() + static_cast<ptrdiff_t>(given),
                                          arguments.positional.end()},
                                         SequenceKind::kTuple));
    frame->set(symbol_of("varargs"), std::move(varargs));
  } else if (arguments.positional.size() > statement.parameters.size()) {
    return fail(ErrorCode::kBadData, "macro {} takes not more than {} argument(s)", name,
                statement.parameters.size());
  }

  for (size_t i = 0; i < statement.parameters.size(); ++i) {
    if (!missing[i]) continue;
    const Parameter& parameter = statement.parameters[i];
    Value value = Value::undefined(fmt::format("parameter '{}' was not provided", parameter.name));
    if (parameter.fallback != nullptr) {
      std::shared_ptr<Frame> outer = std::exchange(frame_, frame);
      Result<Value> fallback = evaluate(*parameter.fallback);
      frame_ = std::move(outer);
      if (!fallback) return fallback;
      value = *std::move(fallback);
    }
    frame->set(parameter.symbol, std::move(value));
  }
  TESSERA_TRY(MarkedText text, capture(statement.body, frame));
  text.set_markup(autoescape_);
  return make_text(std::move(text));
}

Result<Value> Interpreter::call(const Value& callee, Arguments arguments) {
  TESSERA_TRY_STATUS(budget_.spend_steps(1));
  if (callee.is_undefined()) return undefined_error(callee);
  if (!callee.is(Kind::kFunction))
    return fail(ErrorCode::kBadData, "a value of type '{}' cannot be called", type_name(callee));
  const Function& function = callee.as_function();
  switch (function.kind) {
    case FunctionKind::kBuiltin:
      return call_builtin(function.name, std::move(arguments));
    case FunctionKind::kMethod:
      return call_method(*this, static_cast<const MethodFunction&>(function), arguments);
    case FunctionKind::kMacro:
      return call_macro(static_cast<const MacroFunction&>(function), std::move(arguments));
    case FunctionKind::kBlock: {
      auto frame = std::make_shared<Frame>();
      frame->parent = root_;
      TESSERA_TRY(MarkedText text,
                  capture(static_cast<const BlockFunction&>(function).statement.body, frame));
      return make_text(std::move(text));
    }
    case FunctionKind::kLoop: {
      const auto& loop = static_cast<const LoopFunction&>(function);
      if (loop.recursive == nullptr)
        return fail(ErrorCode::kBadData,
                    "the loop must have the 'recursive' marker to be called recursively");
      TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {"iterable"}, "loop"));
      MarkedText text;
      MarkedText* const outer = std::exchange(out_, &text);
      const Status status = run_loop(*loop.recursive, loop.scope, bound[0], loop.depth + 1);
      out_ = outer;
      if (!status) return Failure(status.error());
      return make_text(std::move(text));
    }
    case FunctionKind::kLoopMethod:
      return call_loop_method(static_cast<const LoopMethodFunction&>(function), std::move(arguments));
    case FunctionKind::kCyclerStep: {
      const auto& step = static_cast<const CyclerStepFunction&>(function);
      const auto& cycler = static_cast<const CyclerFunction&>(*step.cycler);
      if (function.name == "reset") {
        cycler.position = 0;
        return Value::none();
      }
      const Value value = cycler.items[cycler.position];
      cycler.position = (cycler.position + 1) % cycler.items.size();
      return value;
    }
    case FunctionKind::kJoiner: {
      const auto& joiner = static_cast<const JoinerFunction&>(function);
      if (std::exchange(joiner.used, true)) return joiner.separator;
      return Value::text("");
    }
    case FunctionKind::kSelf:
    case FunctionKind::kCycler:
      break;
  }
  return fail(ErrorCode::kBadData, "'{}' cannot be called", function.name);
}

Result<Value> Interpreter::call_loop_method(const LoopMethodFunction& method, Arguments arguments) {
  const auto& loop = static_cast<const LoopFunction&>(*method.loop);
  if (method.name == "cycle") {
    if (arguments.positional.empty()) return fail(ErrorCode::kBadData, "no items for cycling given");
    return arguments.positional[loop.index % arguments.positional.size()];
  }
  TESSERA_TRY(Value now, make_list(std::move(arguments.positional), SequenceKind::kTuple));
  if (loop.changed_before) {
    TESSERA_TRY(const bool same, equal(now, loop.last_changed, budget_));
    if (same) return Value::boolean(false);
  }
  loop.changed_before = true;
  loop.last_changed = std::move(now);
  return Value::boolean(true);
}

Result<Value> Interpreter::call_builtin(const std::string& name, Arguments arguments) {
  if (name == "raise_exception") {
    TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {"message"}, name));
    TESSERA_TRY(const MarkedText message, text_of(bound[0]));
    return fail(ErrorCode::kInvalidArgument, "{}", message.bytes());
  }
  if (name == "strftime_now") {
    TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {"format"}, name));
    TESSERA_TRY(const MarkedText format, bound.text(0, ""));
    return make_text(MarkedText(format_time(options_.clock, format.bytes())));
  }
  if (name == "range") {
    TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {"start", "stop", "step"}, name));
    if (!bound.present(0) || !arguments.keywords.empty())
      return fail(ErrorCode::kBadData, "range takes one to three integers");
    TESSERA_TRY(int64_t start, bound.integer(0, 0));
    int64_t stop = start;
    if (bound.present(1)) {
      TESSERA_TRY(stop, bound.integer(1, 0));
    } else {
      start = 0;
    }
    TESSERA_TRY(const int64_t step, bound.integer(2, 1));
    constexpr int64_t kFar = int64_t{1} << 60;
    if (step == 0) return fail(ErrorCode::kBadData, "range: the step must not be zero");
    if (start < -kFar || start > kFar || stop < -kFar || stop > kFar || step < -kFar || step > kFar)
      return fail(ErrorCode::kResourceLimit, "range: an end is too large");
    auto range = std::make_shared<RangeObject>(start, stop, step);
    if (range->size() > kMaxRange)
      return fail(ErrorCode::kResourceLimit, "range: at most {} numbers, found {}", kMaxRange, range->size());
    return Value(Kind::kRange, std::move(range));
  }
  if (name == "dict" || name == "namespace") {
    auto dict = std::make_shared<Dict>();
    if (arguments.positional.size() > 1)
      return fail(ErrorCode::kBadData, "{} takes at most one argument", name);
    if (arguments.positional.size() == 1) {
      const Value& from = arguments.positional[0];
      if (from.is(Kind::kDict)) {
        TESSERA_TRY_STATUS(budget_.spend_bytes(from.as_dict().items.size() * 96));
        for (const auto& [key, value] : from.as_dict().items) dict->set(key, value);
      } else {
        TESSERA_TRY(const std::vector<Value> pairs, iterate(from));
        for (const Value& pair : pairs) {
          TESSERA_TRY(const std::vector<Value> both, iterate(pair));
          if (both.size() != 2 || !is_hashable(both[0]))
            return fail(ErrorCode::kBadData, "{}: expected pairs of a key and a value", name);
          TESSERA_TRY_STATUS(budget_.spend_bytes(96));
          dict->set(both[0], both[1]);
        }
      }
    }
    for (auto& [key, value] : arguments.keywords) dict->set(Value::text(key), std::move(value));
    if (name == "dict") return checked_dict(std::move(dict));
    TESSERA_TRY_STATUS(budget_.spend_bytes(256 + dict->items.size() * 96));
    auto space = std::make_shared<NamespaceObject>();
    for (const auto& [key, value] : dict->items) space->values.set(key, value);
    namespaces_.push_back(space);
    return Value(Kind::kNamespace, std::move(space));
  }
  if (name == "cycler") {
    if (arguments.positional.empty())
      return fail(ErrorCode::kBadData, "at least one item has to be provided");
    TESSERA_TRY_STATUS(budget_.spend_bytes(arguments.positional.size() * sizeof(Value)));
    return Value(Kind::kFunction, std::make_shared<CyclerFunction>(std::move(arguments.positional)));
  }
  TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {"sep"}, name));
  return Value(Kind::kFunction,
               std::make_shared<JoinerFunction>(bound.present(0) ? bound[0] : Value::text(", ")));
}

}  // namespace tessera::jinja
