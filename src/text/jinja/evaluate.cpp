// Expressions: attributes, items, slices, and what iteration yields, by the rules of Python and of Jinja's
// sandbox.
#include <algorithm>
#include <cmath>
#include <limits>

#include "text/jinja/filters.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/methods.h"
#include "text/jinja/tests.h"
#include "text/unicode.h"

namespace tessera::jinja {
namespace {

Failure too_large() {
  return fail(ErrorCode::kUnsupported, "an integer beyond 64 bits is not supported");
}

std::string object_name(const Value& object) {
  if (object.is(Kind::kNone)) return "'None'";
  if (object.is(Kind::kNamespace)) return "'jinja2.utils.Namespace object'";
  return fmt::format("'{} object'", type_name(object));
}

Value no_attribute(const Value& object, const std::string& name) {
  return Value::undefined(fmt::format("{} has no attribute '{}'", object_name(object), name));
}

Value no_item(const Value& object, const Value& key) {
  if (key.is(Kind::kText)) return no_attribute(object, key.bytes());
  if (key.is_integral())
    return Value::undefined(fmt::format("{} has no element {}", object_name(object), key.as_integer()));
  return Value::undefined(fmt::format("{} has no such element", object_name(object)));
}

}  // namespace

Result<Value> Interpreter::make_text(MarkedText text) {
  TESSERA_TRY_STATUS(budget_.spend_bytes(text.size() + 64));
  return Value::text(std::move(text));
}

Result<Value> Interpreter::make_list(std::vector<Value> items, SequenceKind kind) {
  TESSERA_TRY_STATUS(budget_.spend_bytes(items.size() * sizeof(Value) + 64));
  Value out = make_sequence(kind, std::move(items));
  if (out.depth() > kMaxValueDepth) return fail(ErrorCode::kResourceLimit, "lists nest too deep");
  return out;
}

Result<Value> Interpreter::checked_dict(std::shared_ptr<Dict> dict) {
  TESSERA_TRY_STATUS(budget_.spend_bytes(dict->items.size() * 96 + 64));
  if (dict->depth > kMaxValueDepth) return fail(ErrorCode::kResourceLimit, "dicts nest too deep");
  return make_dict(std::move(dict));
}

Result<MarkedText> Interpreter::text_of(const Value& value) {
  if (value.is(Kind::kText)) return value.as_text();
  MarkedText out;
  TESSERA_TRY_STATUS(append_text(out, value, budget_));
  return out;
}

Result<std::vector<Value>> Interpreter::iterate(const Value& value) {
  std::vector<Value> out;
  switch (value.kind()) {
    case Kind::kUndefined:
      return out;
    case Kind::kSequence: {
      const Sequence& sequence = value.as_sequence();
      if (sequence.kind == SequenceKind::kIterator) {
        out.assign(sequence.items.begin() + static_cast<ptrdiff_t>(sequence.next), sequence.items.end());
        sequence.next = sequence.items.size();
      } else {
        out = sequence.items;
      }
      break;
    }
    case Kind::kDict:
      for (const auto& [key, element] : value.as_dict().items) out.push_back(key);
      break;
    case Kind::kRange: {
      const RangeObject& range = value.as_range();
      for (int64_t i = 0; i < range.size(); ++i) out.push_back(Value::integer(range.at(i)));
      break;
    }
    case Kind::kText: {
      const MarkedText& text = value.as_text();
      TESSERA_TRY_STATUS(budget_.spend_bytes(text.size() * 128));
      for (size_t at = 0; at < text.size();) {
        const size_t length = unicode::sequence_length(text.bytes()[at]);
        out.push_back(Value::text(text.part(at, at + length)));
        at += length;
      }
      break;
    }
    default:
      return fail(ErrorCode::kBadData, "'{}' object is not iterable", type_name(value));
  }
  TESSERA_TRY_STATUS(budget_.spend_steps(out.size()));
  TESSERA_TRY_STATUS(budget_.spend_bytes(out.size() * sizeof(Value)));
  return out;
}

Result<int64_t> Interpreter::length(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return 0;
    case Kind::kText:
      return static_cast<int64_t>(value.as_text().length());
    case Kind::kSequence:
      if (value.as_sequence().kind != SequenceKind::kIterator)
        return static_cast<int64_t>(value.as_sequence().items.size());
      break;
    case Kind::kDict:
      return static_cast<int64_t>(value.as_dict().items.size());
    case Kind::kRange:
      return value.as_range().size();
    default:
      break;
  }
  return fail(ErrorCode::kBadData, "object of type '{}' has no length", type_name(value));
}

Result<Value> Interpreter::attribute(const Value& object, const std::string& name) {
  if (object.is_undefined()) return undefined_error(object);
  if (object.is(Kind::kFunction)) return function_attribute(object, name);
  if (has_method(object, name)) return Value(Kind::kFunction, std::make_shared<MethodFunction>(name, object));
  const Value* found = nullptr;
  if (object.is(Kind::kDict)) found = object.as_dict().find(name);
  if (object.is(Kind::kNamespace)) found = object.as_namespace().values.find(name);
  return found != nullptr ? *found : no_attribute(object, name);
}

Result<Value> Interpreter::item(const Value& object, const Value& key) {
  switch (object.kind()) {
    case Kind::kUndefined:
      return undefined_error(object);
    case Kind::kDict:
      if (is_hashable(key))
        if (const Value* found = object.as_dict().find(key)) return *found;
      break;
    case Kind::kText:
    case Kind::kSequence:
    case Kind::kRange: {
      if (!key.is_integral()) break;
      if (object.is(Kind::kSequence) && object.as_sequence().kind != SequenceKind::kList &&
          object.as_sequence().kind != SequenceKind::kTuple)
        break;
      TESSERA_TRY(const int64_t count, length(object));
      int64_t index = key.as_integer();
      if (index < 0) index += count;
      if (index < 0 || index >= count) break;
      if (object.is(Kind::kRange)) return Value::integer(object.as_range().at(index));
      if (object.is(Kind::kSequence)) return object.as_sequence().items[static_cast<size_t>(index)];
      const MarkedText& text = object.as_text();
      TESSERA_TRY_STATUS(budget_.spend_steps(text.size() / 64));
      const size_t begin = text.byte_of(static_cast<size_t>(index));
      return Value::text(text.part(begin, begin + unicode::sequence_length(text.bytes()[begin])));
    }
    default:
      break;
  }
  if (key.is(Kind::kText) && !object.is(Kind::kDict)) return attribute(object, key.bytes());
  if (key.is(Kind::kText) && has_method(object, key.bytes()))
    return Value(Kind::kFunction, std::make_shared<MethodFunction>(key.bytes(), object));
  return no_item(object, key);
}

Result<Value> Interpreter::slice(const Value& object, const Value& start, const Value& stop,
                                 const Value& step) {
  if (object.is_undefined()) return undefined_error(object);
  const bool sliceable = object.is(Kind::kText) || object.is(Kind::kRange) ||
                         (object.is(Kind::kSequence) && (object.as_sequence().kind == SequenceKind::kList ||
                                                         object.as_sequence().kind == SequenceKind::kTuple));
  const auto is_bound = [](const Value& value) { return value.is(Kind::kNone) || value.is_integral(); };
  if (!sliceable || !is_bound(start) || !is_bound(stop) || !is_bound(step))
    return no_item(object, Value::none());
  const int64_t by = step.is(Kind::kNone) ? 1 : step.as_integer();
  if (by == 0) return fail(ErrorCode::kBadData, "the step of a slice must not be zero");
  TESSERA_TRY(const int64_t count, length(object));
  // As Python's slice.indices.
  const auto bound = [&](const Value& value, int64_t fallback) {
    if (value.is(Kind::kNone)) return fallback;
    int64_t at = value.as_integer();
    if (at < 0) at = at < -count ? (by < 0 ? -1 : 0) : at + count;
    return std::min(at, by < 0 ? count - 1 : count);
  };
  const int64_t first = bound(start, by < 0 ? count - 1 : 0);
  const int64_t end = bound(stop, by < 0 ? -1 : count);
  std::vector<int64_t> indices;
  for (int64_t i = first; by > 0 ? i < end : i > end;) {
    indices.push_back(i);
    if (by > 0 ? i >= end - by : i <= end - by) break;
    i += by;
  }
  TESSERA_TRY_STATUS(budget_.spend_steps(indices.size() / 8));
  if (object.is(Kind::kText)) {
    const MarkedText& text = object.as_text();
    if (by == 1) {
      const size_t begin = text.byte_of(static_cast<size_t>(first));
      const size_t last = end > first ? text.byte_of(static_cast<size_t>(end)) : begin;
      return make_text(text.part(begin, last));
    }
    std::vector<size_t> starts;
    for (size_t at = 0; at < text.size(); at += unicode::sequence_length(text.bytes()[at]))
      starts.push_back(at);
    MarkedText out;
    for (const int64_t i : indices) {
      const size_t at = starts[static_cast<size_t>(i)];
      out.append(text, at, at + unicode::sequence_length(text.bytes()[at]));
    }
    out.set_markup(text.is_markup());
    return make_text(std::move(out));
  }
  std::vector<Value> items;
  items.reserve(indices.size());
  for (const int64_t i : indices)
    items.push_back(object.is(Kind::kRange) ? Value::integer(object.as_range().at(i))
                                            : object.as_sequence().items[static_cast<size_t>(i)]);
  return make_list(std::move(items),
                   object.is(Kind::kSequence) ? object.as_sequence().kind : SequenceKind::kList);
}

Result<bool> Interpreter::contains(const Value& container, const Value& element) {
  switch (container.kind()) {
    case Kind::kUndefined:
      return false;
    case Kind::kText: {
      if (!element.is(Kind::kText))
        return fail(ErrorCode::kBadData, "'in <string>' requires string as left operand, not {}",
                    type_name(element));
      TESSERA_TRY_STATUS(budget_.spend_steps(container.as_text().size() / 64));
      return container.bytes().find(element.bytes()) != std::string::npos;
    }
    case Kind::kDict:
      if (!is_hashable(element))
        return fail(ErrorCode::kBadData, "unhashable type: '{}'", type_name(element));
      return container.as_dict().find(element) != nullptr;
    case Kind::kSequence:
    case Kind::kRange: {
      TESSERA_TRY(const std::vector<Value> items, iterate(container));
      for (const Value& item : items) {
        TESSERA_TRY(const bool same, equal(item, element, budget_));
        if (same) return true;
      }
      return false;
    }
    default:
      return fail(ErrorCode::kBadData, "argument of type '{}' is not iterable", type_name(container));
  }
}

Result<bool> Interpreter::holds(Comparison comparison, const Value& left, const Value& right) {
  switch (comparison) {
    case Comparison::kEqual:
      return equal(left, right, budget_);
    case Comparison::kNotEqual: {
      TESSERA_TRY(const bool same, equal(left, right, budget_));
      return !same;
    }
    case Comparison::kIn:
      return contains(right, left);
    case Comparison::kNotIn: {
      TESSERA_TRY(const bool inside, contains(right, left));
      return !inside;
    }
    default:
      break;
  }
  const bool less = comparison == Comparison::kLess || comparison == Comparison::kLessEqual;
  const bool or_equal = comparison == Comparison::kLessEqual || comparison == Comparison::kGreaterEqual;
  TESSERA_TRY(const int order,
              compare(left, right, less ? (or_equal ? "<=" : "<") : (or_equal ? ">=" : ">"), budget_));
  if (left.is_numeric() && right.is_numeric() &&
      (std::isnan(left.as_number()) || std::isnan(right.as_number())))
    return false;
  return order == 0 ? or_equal : (order < 0) == less;
}

Result<Value> Interpreter::evaluate(const Expression& expression) {
  TESSERA_TRY_STATUS(budget_.spend_steps(1));
  switch (expression.kind) {  // the most frequent ones, without the bookkeeping
    case ExpressionKind::kConstant:
      return expression.constant;
    case ExpressionKind::kName:
      return lookup(expression.symbol, expression.name);
    default:
      break;
  }
  if (depth_ >= options_.max_depth)
    return at_line({ErrorCode::kResourceLimit, "calls nest too deep"}, expression.line);
  ++depth_;
  Result<Value> value = evaluate_node(expression);
  --depth_;
  if (!value) return at_line(value.error(), expression.line);
  return value;
}

Result<Value> Interpreter::evaluate_node(const Expression& expression) {
  const auto& items = expression.items;
  switch (expression.kind) {
    case ExpressionKind::kConstant:
      return expression.constant;
    case ExpressionKind::kName:
      return lookup(expression.symbol, expression.name);
    case ExpressionKind::kList:
    case ExpressionKind::kTuple: {
      std::vector<Value> values;
      values.reserve(items.size());
      for (const auto& item : items) {
        TESSERA_TRY(Value value, evaluate(*item));
        values.push_back(std::move(value));
      }
      return make_list(std::move(values),
                       expression.kind == ExpressionKind::kList ? SequenceKind::kList : SequenceKind::kTuple);
    }
    case ExpressionKind::kDict: {
      auto dict = std::make_shared<Dict>();
      for (size_t i = 0; i + 1 < items.size(); i += 2) {
        TESSERA_TRY(Value key, evaluate(*items[i]));
        TESSERA_TRY(Value value, evaluate(*items[i + 1]));
        if (!is_hashable(key)) return fail(ErrorCode::kBadData, "unhashable type: '{}'", type_name(key));
        dict->set(std::move(key), std::move(value));
      }
      return checked_dict(std::move(dict));
    }
    case ExpressionKind::kAttribute: {
      TESSERA_TRY(const Value object, evaluate(*items[0]));
      return attribute(object, expression.name);
    }
    case ExpressionKind::kItem: {
      TESSERA_TRY(const Value object, evaluate(*items[0]));
      TESSERA_TRY(const Value key, evaluate(*items[1]));
      return item(object, key);
    }
    case ExpressionKind::kSlice: {
      TESSERA_TRY(const Value object, evaluate(*items[0]));
      Value parts[3] = {Value::none(), Value::none(), Value::none()};
      for (size_t i = 0; i < 3; ++i) {
        if (items[i + 1] == nullptr) continue;
        TESSERA_TRY(parts[i], evaluate(*items[i + 1]));
      }
      return slice(object, parts[0], parts[1], parts[2]);
    }
    case ExpressionKind::kCall: {
      TESSERA_TRY(const Value callee, evaluate(*items[0]));
      TESSERA_TRY(Arguments arguments, evaluate_arguments(expression.arguments));
      return call(callee, std::move(arguments));
    }
    case ExpressionKind::kFilter:
      return evaluate_filter(expression, nullptr);
    case ExpressionKind::kTest: {
      TESSERA_TRY(const Value value, evaluate(*items[0]));
      TESSERA_TRY(const Arguments arguments, evaluate_arguments(expression.arguments));
      TESSERA_TRY(const bool result, apply_test(*this, expression.name, value, arguments));
      return Value::boolean(result);
    }
    case ExpressionKind::kNot: {
      TESSERA_TRY(const Value value, evaluate(*items[0]));
      return Value::boolean(!truth(value));
    }
    case ExpressionKind::kNegative:
    case ExpressionKind::kPositive: {
      TESSERA_TRY(const Value value, evaluate(*items[0]));
      if (value.is_undefined()) return undefined_error(value);
      if (!value.is_numeric())
        return fail(ErrorCode::kBadData, "bad operand type for a sign: '{}'", type_name(value));
      const bool negative = expression.kind == ExpressionKind::kNegative;
      if (value.is(Kind::kFloat))
        return Value::number(negative ? -value.as_number() : value.as_number(), value.origin());
      if (negative && value.as_integer() == std::numeric_limits<int64_t>::min()) return too_large();
      return Value::integer(negative ? -value.as_integer() : value.as_integer(), value.origin());
    }
    case ExpressionKind::kAnd:
    case ExpressionKind::kOr: {
      TESSERA_TRY(Value left, evaluate(*items[0]));
      if (truth(left) == (expression.kind == ExpressionKind::kOr)) return left;
      return evaluate(*items[1]);
    }
    case ExpressionKind::kBinary: {
      TESSERA_TRY(const Value left, evaluate(*items[0]));
      TESSERA_TRY(const Value right, evaluate(*items[1]));
      return binary(expression.name, left, right);
    }
    case ExpressionKind::kConcatenate: {
      MarkedText out;
      bool markup = false;
      std::vector<MarkedText> parts;
      for (const auto& item : items) {
        TESSERA_TRY(const Value value, evaluate(*item));
        TESSERA_TRY(MarkedText text, text_of(value));
        TESSERA_TRY_STATUS(budget_.spend_bytes(text.size()));
        markup |= autoescape_ && text.is_markup();
        parts.push_back(std::move(text));
      }
      for (const MarkedText& part : parts) out.append(markup ? escape_html(part) : part);
      out.set_markup(markup);
      return make_text(std::move(out));
    }
    case ExpressionKind::kCompare:
      return evaluate_compare(expression);
    case ExpressionKind::kCondition: {
      TESSERA_TRY(const Value condition, evaluate(*items[0]));
      if (truth(condition)) return evaluate(*items[1]);
      if (items[2] != nullptr) return evaluate(*items[2]);
      return Value::undefined("the inline if-expression evaluated to false and no else section was defined");
    }
  }
  return Value();
}

Result<Value> Interpreter::evaluate_compare(const Expression& expression) {
  TESSERA_TRY(Value left, evaluate(*expression.items[0]));
  for (size_t i = 0; i < expression.operators.size(); ++i) {
    TESSERA_TRY(Value right, evaluate(*expression.items[i + 1]));
    TESSERA_TRY(const bool result, holds(expression.operators[i], left, right));
    if (!result) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Result<Value> Interpreter::evaluate_filter(const Expression& expression, const Value* body) {
  Value input;
  if (expression.items[0] == nullptr) {
    input = *body;
  } else if (body != nullptr && expression.items[0]->kind == ExpressionKind::kFilter) {
    TESSERA_TRY(input, evaluate_filter(*expression.items[0], body));
  } else {
    TESSERA_TRY(input, evaluate(*expression.items[0]));
  }
  TESSERA_TRY(const Arguments arguments, evaluate_arguments(expression.arguments));
  return apply_filter(*this, expression.name, input, arguments);
}

Result<Arguments> Interpreter::evaluate_arguments(const CallArguments& arguments) {
  Arguments out;
  for (const auto& argument : arguments.positional) {
    TESSERA_TRY(Value value, evaluate(*argument));
    out.positional.push_back(std::move(value));
  }
  for (const auto& [name, argument] : arguments.keywords) {
    TESSERA_TRY(Value value, evaluate(*argument));
    out.keywords.emplace_back(name, std::move(value));
  }
  if (arguments.more_positional != nullptr) {
    TESSERA_TRY(const Value list, evaluate(*arguments.more_positional));
    TESSERA_TRY(const std::vector<Value> more, iterate(list));
    out.positional.insert(out.positional.end(), more.begin(), more.end());
  }
  if (arguments.more_keywords != nullptr) {
    TESSERA_TRY(const Value dict, evaluate(*arguments.more_keywords));
    if (!dict.is(Kind::kDict))
      return fail(ErrorCode::kBadData, "expected a dict behind **, found a value of type '{}'",
                  type_name(dict));
    for (const auto& [key, value] : dict.as_dict().items) {
      if (!key.is(Kind::kText)) return fail(ErrorCode::kBadData, "keywords must be strings");
      out.keywords.emplace_back(key.bytes(), value);
    }
  }
  return out;
}

Value Interpreter::loop_attribute(const Value& value, const std::string& name) const {
  const auto& loop = static_cast<const LoopFunction&>(value.as_function());
  const auto count = static_cast<int64_t>(loop.items.size());
  const auto index = static_cast<int64_t>(loop.index);
  if (name == "index") return Value::integer(index + 1);
  if (name == "index0") return Value::integer(index);
  if (name == "revindex") return Value::integer(count - index);
  if (name == "revindex0") return Value::integer(count - index - 1);
  if (name == "first") return Value::boolean(index == 0);
  if (name == "last") return Value::boolean(index + 1 == count);
  if (name == "length") return Value::integer(count);
  if (name == "depth") return Value::integer(loop.depth + 1);
  if (name == "depth0") return Value::integer(loop.depth);
  if (name == "previtem")
    return index == 0 ? Value::undefined("there is no previous item") : loop.items[loop.index - 1];
  if (name == "nextitem")
    return index + 1 >= count ? Value::undefined("there is no next item") : loop.items[loop.index + 1];
  return Value::undefined(fmt::format("'jinja2.runtime.LoopContext object' has no attribute '{}'", name));
}

Value Interpreter::function_attribute(const Value& value, const std::string& name) const {
  const Function& function = value.as_function();
  switch (function.kind) {
    case FunctionKind::kLoop: {
      if (name != "cycle" && name != "changed") return loop_attribute(value, name);
      // The loop lives as long as its items; the method only for the call.
      std::shared_ptr<const Object> self = value.shared();
      return Value(Kind::kFunction, std::make_shared<LoopMethodFunction>(name, std::move(self)));
    }
    case FunctionKind::kCycler: {
      const auto& cycler = static_cast<const CyclerFunction&>(function);
      if (name == "current") return cycler.items[cycler.position];
      if (name == "next" || name == "reset")
        return Value(Kind::kFunction, std::make_shared<CyclerStepFunction>(name, value.shared()));
      break;
    }
    case FunctionKind::kSelf:
      for (const Statement* block : syntax_.blocks)
        if (block->name == name) return Value(Kind::kFunction, std::make_shared<BlockFunction>(*block));
      break;
    case FunctionKind::kMacro: {
      const Statement& macro = static_cast<const MacroFunction&>(function).statement;
      if (name == "name") return Value::text(macro.name);
      if (name == "catch_kwargs") return Value::boolean(macro.uses_kwargs);
      if (name == "catch_varargs") return Value::boolean(macro.uses_varargs);
      if (name == "caller") return Value::boolean(macro.uses_caller);
      if (name == "arguments") {
        std::vector<Value> names;
        for (const Parameter& parameter : macro.parameters) names.push_back(Value::text(parameter.name));
        return make_sequence(SequenceKind::kTuple, std::move(names));
      }
      break;
    }
    default:
      break;
  }
  return Value::undefined(fmt::format("'{}' has no attribute '{}'", function.name, name));
}

}  // namespace tessera::jinja
