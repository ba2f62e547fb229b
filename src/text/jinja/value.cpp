// See value.h.
#include "text/jinja/value.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "text/jinja/function.h"
#include "text/jinja/number_text.h"
#include "text/unicode.h"

namespace tessera::jinja {
namespace {

struct TextObject : Object {
  explicit TextObject(MarkedText value) : text(std::move(value)) {}
  MarkedText text;
};

struct UndefinedObject : Object {
  explicit UndefinedObject(std::string text) : message(std::move(text)) {}
  std::string message;
};

constexpr size_t kNotThere = static_cast<size_t>(-1);
constexpr size_t kIndexedFrom = 8;  // dicts with fewer keys are searched one by one

// Keys of dicts compare like ==, but they are hashable, so that no budget is needed.
bool same_key(const Value& a, const Value& b) {
  if (a.is(Kind::kText) || b.is(Kind::kText))
    return a.is(Kind::kText) && b.is(Kind::kText) && a.bytes() == b.bytes();
  if (a.is_integral() && b.is_integral()) return a.as_integer() == b.as_integer();
  if (a.is_numeric() && b.is_numeric()) return a.as_number() == b.as_number();
  if (a.kind() != b.kind()) return false;
  if (a.is(Kind::kNone) || a.is_undefined()) return true;
  if (a.is(Kind::kSequence)) {
    const auto& x = a.as_sequence().items;
    const auto& y = b.as_sequence().items;
    return a.as_sequence().kind == b.as_sequence().kind && x.size() == y.size() &&
           std::equal(x.begin(), x.end(), y.begin(), same_key);
  }
  return a.object() == b.object();
}

}  // namespace

Object::~Object() = default;

Value Value::undefined(std::string message) {
  return Value(Kind::kUndefined, std::make_shared<UndefinedObject>(std::move(message)));
}

Value Value::boolean(bool value) {
  Value out(Kind::kBool);
  out.integer_ = value ? 1 : 0;
  return out;
}

Value Value::integer(int64_t value, Origin origin) {
  Value out(Kind::kInt);
  out.integer_ = value;
  out.origin_ = origin;
  return out;
}

Value Value::number(double value, Origin origin) {
  Value out(Kind::kFloat);
  out.number_ = value;
  out.origin_ = origin;
  return out;
}

Value Value::text(MarkedText value) {
  return Value(Kind::kText, std::make_shared<TextObject>(std::move(value)));
}

Value Value::text(std::string_view value, Origin origin) {
  return text(MarkedText(std::string(value), origin));
}

const MarkedText& Value::as_text() const {
  return static_cast<const TextObject*>(object_.get())->text;
}
const Sequence& Value::as_sequence() const {
  return *static_cast<const Sequence*>(object_.get());
}
const RangeObject& Value::as_range() const {
  return *static_cast<const RangeObject*>(object_.get());
}
const Dict& Value::as_dict() const {
  return *static_cast<const Dict*>(object_.get());
}
NamespaceObject& Value::as_namespace() const {
  return *const_cast<NamespaceObject*>(static_cast<const NamespaceObject*>(object_.get()));
}
const Function& Value::as_function() const {
  return *static_cast<const Function*>(object_.get());
}

std::string Value::undefined_message() const {
  return object_ == nullptr ? "a value is undefined"
                            : static_cast<const UndefinedObject*>(object_.get())->message;
}

uint32_t Value::depth() const {
  if (kind_ == Kind::kSequence) return as_sequence().depth;
  if (kind_ == Kind::kDict) return as_dict().depth;
  return 0;
}

Sequence::Sequence(SequenceKind kind_of, std::vector<Value> values)
    : kind(kind_of), items(std::move(values)) {
  for (const Value& item : items) depth = std::max(depth, item.depth());
  ++depth;
}

int64_t RangeObject::size() const {
  if (step > 0 && start < stop) return (stop - start - 1) / step + 1;
  if (step < 0 && start > stop) return (start - stop - 1) / -step + 1;
  return 0;
}

size_t Dict::index_of(std::string_view key) const {
  if (items.size() >= kIndexedFrom) {
    const auto found = texts_.find(std::string(key));
    return found == texts_.end() ? kNotThere : found->second;
  }
  for (size_t i = 0; i < items.size(); ++i)
    if (items[i].first.is(Kind::kText) && items[i].first.bytes() == key) return i;
  return kNotThere;
}

size_t Dict::index_of(const Value& key) const {
  if (key.is(Kind::kText)) return index_of(key.bytes());
  if (others_ == 0) return kNotThere;
  for (size_t i = 0; i < items.size(); ++i)
    if (same_key(items[i].first, key)) return i;
  return kNotThere;
}

void Dict::set(Value key, Value value) {
  depth = std::max(depth, std::max(value.depth(), key.depth()) + 1);
  const size_t found = index_of(key);
  if (found != kNotThere) {
    items[found].second = std::move(value);
    return;
  }
  if (!key.is(Kind::kText)) ++others_;
  items.emplace_back(std::move(key), std::move(value));
  if (items.size() < kIndexedFrom) return;
  for (size_t i = items.size() == kIndexedFrom ? 0 : items.size() - 1; i < items.size(); ++i)
    if (items[i].first.is(Kind::kText)) texts_.emplace(items[i].first.bytes(), i);
}

void Dict::clear() {
  // What is freed here may hold this dict: it is empty by then.
  const auto old = std::exchange(items, {});
  texts_.clear();
  others_ = 0;
}

const Value* Dict::find(const Value& key) const {
  const size_t found = index_of(key);
  return found == kNotThere ? nullptr : &items[found].second;
}

const Value* Dict::find(std::string_view key) const {
  const size_t found = index_of(key);
  return found == kNotThere ? nullptr : &items[found].second;
}

Value make_sequence(SequenceKind kind, std::vector<Value> items) {
  return Value(Kind::kSequence, std::make_shared<Sequence>(kind, std::move(items)));
}

Value make_dict(std::shared_ptr<Dict> dict) {
  return Value(Kind::kDict, std::move(dict));
}

Status Budget::spend_steps(uint64_t count) {
  if (count > steps_)
    return fail(ErrorCode::kResourceLimit, "the template does not end: its limit of steps is reached");
  steps_ -= count;
  return {};
}

Status Budget::spend_bytes(uint64_t count) {
  if (count > bytes_) return fail(ErrorCode::kResourceLimit, "the template uses more memory than its limit");
  bytes_ -= count;
  return {};
}

Result<Value> value_from_json(const Json& json, Origin origin) {
  switch (json.type()) {
    case Json::value_t::null:
      return Value::none();
    case Json::value_t::boolean:
      return Value::boolean(json.get<bool>());
    case Json::value_t::number_integer:
      return Value::integer(json.get<int64_t>(), origin);
    case Json::value_t::number_unsigned: {
      const auto number = json.get<uint64_t>();
      if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
        return fail(ErrorCode::kBadData, "the number {} is larger than 63 bits hold", number);
      return Value::integer(static_cast<int64_t>(number), origin);
    }
    case Json::value_t::number_float:
      return Value::number(json.get<double>(), origin);
    case Json::value_t::string: {
      const auto& bytes = json.get_ref<const std::string&>();
      if (!unicode::is_valid_utf8(bytes)) return fail(ErrorCode::kBadData, "a string is not valid UTF-8");
      return Value::text(bytes, origin);
    }
    case Json::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const Json& element : json) {
        TESSERA_TRY(Value item, value_from_json(element, origin));
        items.push_back(std::move(item));
      }
      Value list = make_sequence(SequenceKind::kList, std::move(items));
      if (list.depth() > kMaxValueDepth) return fail(ErrorCode::kBadData, "nested too deep");
      return list;
    }
    case Json::value_t::object: {
      auto dict = std::make_shared<Dict>();
      for (const auto& [key, element] : json.items()) {
        if (!unicode::is_valid_utf8(key)) return fail(ErrorCode::kBadData, "a key is not valid UTF-8");
        TESSERA_TRY(Value item, value_from_json(element, origin));
        dict->set(Value::text(key, origin), std::move(item));
      }
      if (dict->depth > kMaxValueDepth) return fail(ErrorCode::kBadData, "nested too deep");
      return make_dict(std::move(dict));
    }
    case Json::value_t::binary:
    case Json::value_t::discarded:
      break;
  }
  return fail(ErrorCode::kBadData, "expected a JSON value, found {}", json_type_name(json));
}

bool truth(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return value.as_integer() != 0;
    case Kind::kFloat:
      return value.as_number() != 0;
    case Kind::kText:
      return !value.as_text().empty();
    case Kind::kSequence:
      return value.as_sequence().kind == SequenceKind::kIterator || !value.as_sequence().items.empty();
    case Kind::kRange:
      return value.as_range().size() > 0;
    case Kind::kDict:
      return !value.as_dict().items.empty();
    case Kind::kNamespace:
    case Kind::kFunction:
      return true;
  }
  return false;
}

const char* type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kText:
      return value.as_text().is_markup() ? "Markup" : "str";
    case Kind::kSequence:
      switch (value.as_sequence().kind) {
        case SequenceKind::kList:
          return "list";
        case SequenceKind::kTuple:
          return "tuple";
        case SequenceKind::kKeys:
          return "dict_keys";
        case SequenceKind::kValues:
          return "dict_values";
        case SequenceKind::kItems:
          return "dict_items";
        case SequenceKind::kIterator:
          return "generator";
      }
      return "list";
    case Kind::kRange:
      return "range";
    case Kind::kDict:
      return "dict";
    case Kind::kNamespace:
      return "Namespace";
    case Kind::kFunction:
      return "function";
  }
  return "object";
}

bool is_hashable(const Value& value) {
  if (value.is(Kind::kDict)) return false;
  if (!value.is(Kind::kSequence)) return true;
  const Sequence& sequence = value.as_sequence();
  return sequence.kind == SequenceKind::kTuple &&
         std::all_of(sequence.items.begin(), sequence.items.end(), is_hashable);
}

Result<bool> equal(const Value& a, const Value& b, Budget& budget) {
  TESSERA_TRY_STATUS(budget.spend_steps(1));
  if (a.is_numeric() && b.is_numeric()) {
    if (a.is_integral() && b.is_integral()) return a.as_integer() == b.as_integer();
    return a.as_number() == b.as_number();
  }
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kText:
      return a.bytes() == b.bytes();
    case Kind::kRange: {
      const RangeObject& x = a.as_range();
      const RangeObject& y = b.as_range();
      return x.size() == y.size() && (x.size() == 0 || x.start == y.start) &&
             (x.size() < 2 || x.step == y.step);
    }
    case Kind::kSequence: {
      const Sequence& x = a.as_sequence();
      const Sequence& y = b.as_sequence();
      if (&x == &y) return true;
      if (x.kind != y.kind || x.items.size() != y.items.size()) return false;
      if (x.kind == SequenceKind::kIterator || x.kind == SequenceKind::kValues) return false;
      for (size_t i = 0; i < x.items.size(); ++i) {
        TESSERA_TRY(const bool same, equal(x.items[i], y.items[i], budget));
        if (!same) return false;
      }
      return true;
    }
    case Kind::kDict: {
      const Dict& x = a.as_dict();
      const Dict& y = b.as_dict();
      if (x.items.size() != y.items.size()) return false;
      for (const auto& [key, value] : x.items) {
        const Value* other = y.find(key);
        if (other == nullptr) return false;
        TESSERA_TRY(const bool same, equal(value, *other, budget));
        if (!same) return false;
      }
      return true;
    }
    default:
      return a.object() == b.object();
  }
}

Result<int> compare(const Value& a, const Value& b, std::string_view operation, Budget& budget) {
  TESSERA_TRY_STATUS(budget.spend_steps(1));
  if (a.is_numeric() && b.is_numeric()) {
    if (a.is_integral() && b.is_integral())
      return a.as_integer() < b.as_integer() ? -1 : a.as_integer() > b.as_integer() ? 1 : 0;
    const double x = a.as_number();
    const double y = b.as_number();
    return x < y ? -1 : x > y ? 1 : 0;
  }
  // UTF-8 sorts as its code points do.
  if (a.is(Kind::kText) && b.is(Kind::kText)) return a.bytes().compare(b.bytes());
  if (a.is(Kind::kSequence) && b.is(Kind::kSequence) && a.as_sequence().kind == b.as_sequence().kind &&
      (a.as_sequence().kind == SequenceKind::kList || a.as_sequence().kind == SequenceKind::kTuple)) {
    const auto& x = a.as_sequence().items;
    const auto& y = b.as_sequence().items;
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      TESSERA_TRY(const bool same, equal(x[i], y[i], budget));
      if (!same) return compare(x[i], y[i], operation, budget);
    }
    return x.size() < y.size() ? -1 : x.size() > y.size() ? 1 : 0;
  }
  if (a.is_undefined()) return fail(ErrorCode::kBadData, "{}", a.undefined_message());
  if (b.is_undefined()) return fail(ErrorCode::kBadData, "{}", b.undefined_message());
  return fail(ErrorCode::kBadData, "'{}' not supported between instances of '{}' and '{}'", operation,
              type_name(a), type_name(b));
}

namespace {

Status append_items(MarkedText& out, const std::vector<Value>& items, std::string_view open,
                    std::string_view close, Budget& budget) {
  out.append(open, Origin::kTemplate);
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.append(", ", Origin::kTemplate);
    TESSERA_TRY_STATUS(append_repr(out, items[i], budget));
  }
  out.append(close, Origin::kTemplate);
  return {};
}

Status append_dict(MarkedText& out, const Dict& dict, Budget& budget) {
  out.append("{", Origin::kTemplate);
  for (size_t i = 0; i < dict.items.size(); ++i) {
    if (i > 0) out.append(", ", Origin::kTemplate);
    TESSERA_TRY_STATUS(append_repr(out, dict.items[i].first, budget));
    out.append(": ", Origin::kTemplate);
    TESSERA_TRY_STATUS(append_repr(out, dict.items[i].second, budget));
  }
  out.append("}", Origin::kTemplate);
  return {};
}

Status append_function(MarkedText& out, const Function& function) {
  if (function.kind == FunctionKind::kMacro) {
    const std::string name = function.name.empty() ? "anonymous" : "'" + function.name + "'";
    out.append("<Macro " + name + ">", Origin::kTemplate);
    return {};
  }
  if (function.kind == FunctionKind::kLoop) {
    const auto& loop = static_cast<const LoopFunction&>(function);
    out.append(fmt::format("<LoopContext {}/{}>", loop.index + 1, loop.items.size()), Origin::kTemplate);
    return {};
  }
  return fail(ErrorCode::kUnsupported, "the text of a function ('{}') is not defined", function.name);
}

}  // namespace

Status append_text(MarkedText& out, const Value& value, Budget& budget) {
  if (value.is_undefined()) return {};
  if (value.is(Kind::kText)) {
    TESSERA_TRY_STATUS(budget.spend_bytes(value.as_text().size()));
    out.append(value.as_text());
    return {};
  }
  return append_repr(out, value, budget);
}

Status append_repr(MarkedText& out, const Value& value, Budget& budget) {
  TESSERA_TRY_STATUS(budget.spend_steps(1));
  TESSERA_TRY_STATUS(budget.spend_bytes(16));
  switch (value.kind()) {
    case Kind::kUndefined:
      out.append("Undefined", Origin::kTemplate);
      return {};
    case Kind::kNone:
      out.append("None", Origin::kTemplate);
      return {};
    case Kind::kBool:
      out.append(value.as_bool() ? "True" : "False", Origin::kTemplate);
      return {};
    case Kind::kInt:
      out.append(fmt::format("{}", value.as_integer()), value.origin());
      return {};
    case Kind::kFloat:
      out.append(python_float(value.as_number()), value.origin());
      return {};
    case Kind::kText: {
      TESSERA_TRY_STATUS(budget.spend_bytes(value.as_text().size()));
      if (value.as_text().is_markup()) out.append("Markup(", Origin::kTemplate);
      out.append(quoted(value.as_text()));
      if (value.as_text().is_markup()) out.append(")", Origin::kTemplate);
      return {};
    }
    case Kind::kSequence: {
      const Sequence& sequence = value.as_sequence();
      switch (sequence.kind) {
        case SequenceKind::kList:
          return append_items(out, sequence.items, "[", "]", budget);
        case SequenceKind::kTuple:
          return append_items(out, sequence.items, "(", sequence.items.size() == 1 ? ",)" : ")", budget);
        case SequenceKind::kKeys:
          return append_items(out, sequence.items, "dict_keys([", "])", budget);
        case SequenceKind::kValues:
          return append_items(out, sequence.items, "dict_values([", "])", budget);
        case SequenceKind::kItems:
          return append_items(out, sequence.items, "dict_items([", "])", budget);
        case SequenceKind::kIterator:
          return fail(ErrorCode::kUnsupported, "the text of a generator is not defined: use |list");
      }
      return {};
    }
    case Kind::kRange: {
      const RangeObject& range = value.as_range();
      out.append(range.step == 1 ? fmt::format("range({}, {})", range.start, range.stop)
                                 : fmt::format("range({}, {}, {})", range.start, range.stop, range.step),
                 Origin::kTemplate);
      return {};
    }
    case Kind::kDict:
      return append_dict(out, value.as_dict(), budget);
    case Kind::kNamespace: {
      // A namespace may hold itself.
      for (const auto& [key, member] : value.as_namespace().values.items)
        if (member.is(Kind::kNamespace) || member.depth() > 0)
          return fail(ErrorCode::kUnsupported, "the text of a namespace that holds lists is not defined");
      out.append("<Namespace ", Origin::kTemplate);
      TESSERA_TRY_STATUS(append_dict(out, value.as_namespace().values, budget));
      out.append(">", Origin::kTemplate);
      return {};
    }
    case Kind::kFunction:
      return append_function(out, value.as_function());
  }
  return {};
}

}  // namespace tessera::jinja
