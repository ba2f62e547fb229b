// Value: what an expression of a template yields, with the types and the rules of Python that templates rely on.
// Values are immutable and shared, except for namespaces and iterators that are used up. Strings know which of their
// bytes came from request data, numbers whether they did. Lists and dicts know how deep they nest, so that nothing
// recursive runs out of stack.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/jinja/marked_text.h"

namespace tessera::jinja {

enum class Kind : uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kText,
  kSequence,  // lists, tuples, views of dicts, iterators: SequenceKind says which
  kRange,
  kDict,
  kNamespace,
  kFunction,  // macros, methods, built-in functions, the loop variable, cyclers, joiners
};

class Object {
 public:
  Object() = default;
  virtual ~Object();
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
};

struct Sequence;
struct Dict;
struct RangeObject;
struct NamespaceObject;
class Function;

class Value {
 public:
  Value() = default;  // undefined
  // Undefined, and what an error that uses it says.
  [[nodiscard]] static Value undefined(std::string message);
  [[nodiscard]] static Value none() { return Value(Kind::kNone); }
  [[nodiscard]] static Value boolean(bool value);
  [[nodiscard]] static Value integer(int64_t value, Origin origin = Origin::kTemplate);
  [[nodiscard]] static Value number(double value, Origin origin = Origin::kTemplate);
  [[nodiscard]] static Value text(MarkedText value);
  [[nodiscard]] static Value text(std::string_view value, Origin origin = Origin::kTemplate);
  Value(Kind kind, std::shared_ptr<const Object> object) : kind_(kind), object_(std::move(object)) {}

  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] bool is(Kind kind) const { return kind_ == kind; }
  [[nodiscard]] bool is_undefined() const { return kind_ == Kind::kUndefined; }
  [[nodiscard]] Origin origin() const { return origin_; }

  // Each only for its kind.
  [[nodiscard]] bool as_bool() const { return integer_ != 0; }
  [[nodiscard]] int64_t as_integer() const { return integer_; }  // of a bool too
  [[nodiscard]] double as_number() const {
    return kind_ == Kind::kFloat ? number_ : static_cast<double>(integer_);
  }
  [[nodiscard]] const MarkedText& as_text() const;
  [[nodiscard]] const std::string& bytes() const { return as_text().bytes(); }
  [[nodiscard]] const Sequence& as_sequence() const;
  [[nodiscard]] const RangeObject& as_range() const;
  [[nodiscard]] const Dict& as_dict() const;
  [[nodiscard]] NamespaceObject& as_namespace() const;
  [[nodiscard]] const Function& as_function() const;
  [[nodiscard]] std::string undefined_message() const;
  [[nodiscard]] const Object* object() const { return object_.get(); }
  [[nodiscard]] const std::shared_ptr<const Object>& shared() const { return object_; }

  [[nodiscard]] bool is_integral() const { return kind_ == Kind::kInt || kind_ == Kind::kBool; }
  [[nodiscard]] bool is_numeric() const { return is_integral() || kind_ == Kind::kFloat; }
  // How deep lists and dicts nest in it; 0 for anything else.
  [[nodiscard]] uint32_t depth() const;

 private:
  explicit Value(Kind kind) : kind_(kind) {}
  Kind kind_ = Kind::kUndefined;
  Origin origin_ = Origin::kTemplate;
  union {
    int64_t integer_ = 0;
    double number_;
  };
  std::shared_ptr<const Object> object_;
};

enum class SequenceKind : uint8_t { kList, kTuple, kKeys, kValues, kItems, kIterator };

struct Sequence : Object {
  Sequence(SequenceKind kind_of, std::vector<Value> values);
  SequenceKind kind;
  mutable std::vector<Value> items;  // changed only by a list's pop and clear, which the sandbox allows
  mutable size_t next = 0;           // of an iterator: the items before are used up
  uint32_t depth = 0;
};

struct RangeObject : Object {
  RangeObject(int64_t first, int64_t end, int64_t by) : start(first), stop(end), step(by) {}
  [[nodiscard]] int64_t size() const;
  [[nodiscard]] int64_t at(int64_t index) const { return start + index * step; }
  int64_t start;
  int64_t stop;
  int64_t step;
};

struct Dict : Object {
  // Keeps the place of a key that comes again and takes its last value, as Python does.
  void set(Value key, Value value);
  void clear();
  [[nodiscard]] const Value* find(const Value& key) const;
  [[nodiscard]] const Value* find(std::string_view key) const;
  std::vector<std::pair<Value, Value>> items;
  uint32_t depth = 1;

 private:
  [[nodiscard]] size_t index_of(const Value& key) const;
  [[nodiscard]] size_t index_of(std::string_view key) const;
  std::unordered_map<std::string, size_t> texts_;
  size_t others_ = 0;  // keys that are no strings
};

struct NamespaceObject : Object {
  Dict values;
};

inline constexpr uint32_t kMaxValueDepth = 220;

[[nodiscard]] Value make_sequence(SequenceKind kind, std::vector<Value> items);
[[nodiscard]] Value make_dict(std::shared_ptr<Dict> dict);

// What a render may spend; every loop over values draws on it.
class Budget {
 public:
  Budget(uint64_t steps, uint64_t bytes) : steps_(steps), bytes_(bytes) {}
  // kResourceLimit when it is used up.
  [[nodiscard]] Status spend_steps(uint64_t count);
  [[nodiscard]] Status spend_bytes(uint64_t count);

 private:
  uint64_t steps_;
  uint64_t bytes_;
};

// A request's JSON as values; all of it is data. kBadData where it nests too deep or holds invalid UTF-8.
[[nodiscard]] Result<Value> value_from_json(const Json& json, Origin origin);

[[nodiscard]] bool truth(const Value& value);
[[nodiscard]] const char* type_name(const Value& value);  // Python's: "str", "list", "Undefined"
[[nodiscard]] bool is_hashable(const Value& value);

[[nodiscard]] Result<bool> equal(const Value& a, const Value& b, Budget& budget);
// Negative, zero, positive; an error where Python does not order the two. `operation` ("<") is for its message.
[[nodiscard]] Result<int> compare(const Value& a, const Value& b, std::string_view operation, Budget& budget);

// Python's str() and repr(), appended.
[[nodiscard]] Status append_text(MarkedText& out, const Value& value, Budget& budget);
[[nodiscard]] Status append_repr(MarkedText& out, const Value& value, Budget& budget);

}  // namespace tessera::jinja
