// See tests.h.
#include "text/jinja/tests.h"

#include <utf8proc.h>

#include <algorithm>
#include <optional>

#include "text/jinja/filters.h"
#include "text/jinja/methods.h"

namespace tessera::jinja {
namespace {

struct Test {
  std::string_view name;
  bool (*check)(const Value& value);
};

bool is_sequence(const Value& value) {
  if (value.is(Kind::kText) || value.is(Kind::kDict) || value.is(Kind::kRange) || value.is_undefined())
    return true;
  return value.is(Kind::kSequence) && (value.as_sequence().kind == SequenceKind::kList ||
                                       value.as_sequence().kind == SequenceKind::kTuple);
}

bool is_iterable(const Value& value) {
  return value.is(Kind::kText) || value.is(Kind::kDict) || value.is(Kind::kRange) ||
         value.is(Kind::kSequence) || value.is_undefined() ||
         (value.is(Kind::kFunction) && value.as_function().kind == FunctionKind::kLoop);
}

constexpr Test kTests[] = {
    {"defined", [](const Value& v) { return !v.is_undefined(); }},
    {"undefined", [](const Value& v) { return v.is_undefined(); }},
    {"none", [](const Value& v) { return v.is(Kind::kNone); }},
    {"boolean", [](const Value& v) { return v.is(Kind::kBool); }},
    {"true", [](const Value& v) { return v.is(Kind::kBool) && v.as_bool(); }},
    {"false", [](const Value& v) { return v.is(Kind::kBool) && !v.as_bool(); }},
    {"integer", [](const Value& v) { return v.is(Kind::kInt); }},
    {"float", [](const Value& v) { return v.is(Kind::kFloat); }},
    {"number", [](const Value& v) { return v.is_numeric(); }},
    {"string", [](const Value& v) { return v.is(Kind::kText); }},
    {"mapping", [](const Value& v) { return v.is(Kind::kDict); }},
    {"sequence", is_sequence},
    {"iterable", is_iterable},
    {"callable", [](const Value& v) { return v.is(Kind::kFunction) || v.is_undefined(); }},
    {"escaped", [](const Value& v) { return v.is(Kind::kText) && v.as_text().is_markup(); }},
    {"filter", [](const Value& v) { return v.is(Kind::kText) && has_filter(v.bytes()); }},
    {"test", [](const Value& v) { return v.is(Kind::kText) && has_test(v.bytes()); }},
};

struct ComparisonName {
  std::string_view name;
  Comparison comparison;
};
constexpr ComparisonName kComparisons[] = {
    {"eq", Comparison::kEqual},      {"equalto", Comparison::kEqual},   {"==", Comparison::kEqual},
    {"ne", Comparison::kNotEqual},   {"!=", Comparison::kNotEqual},     {"lt", Comparison::kLess},
    {"lessthan", Comparison::kLess}, {"<", Comparison::kLess},          {"le", Comparison::kLessEqual},
    {"<=", Comparison::kLessEqual},  {"gt", Comparison::kGreater},      {"greaterthan", Comparison::kGreater},
    {">", Comparison::kGreater},     {"ge", Comparison::kGreaterEqual}, {">=", Comparison::kGreaterEqual},
    {"in", Comparison::kIn},
};
constexpr std::string_view kOthers[] = {"odd", "even", "divisibleby", "lower", "upper", "sameas"};

const Test* find_check(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kTests), std::end(kTests), [&](const Test& t) { return t.name == name; });
  return found == std::end(kTests) ? nullptr : found;
}

std::optional<Comparison> find_comparison(std::string_view name) {
  for (const ComparisonName& row : kComparisons)
    if (row.name == name) return row.comparison;
  return std::nullopt;
}

Result<int64_t> remainder(Interpreter& interpreter, const Value& value, const Value& by) {
  TESSERA_TRY(const Value result, interpreter.binary("%", value, by));
  if (result.is(Kind::kFloat)) return result.as_number() == 0 ? 0 : result.as_number() == 1 ? 1 : 2;
  if (!result.is_integral()) return 2;
  return result.as_integer();
}

// Whether two values are one object. For strings and numbers Python's answer depends on where they were made; equal
// ones of one type count as the same here.
Result<bool> same_object(Interpreter& interpreter, const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  if (a.is(Kind::kNone)) return true;
  if (a.is_numeric() || a.is(Kind::kText)) return equal(a, b, interpreter.budget());
  return a.object() == b.object();
}

}  // namespace

bool has_test(std::string_view name) {
  return find_check(name) != nullptr || find_comparison(name) ||
         std::find(std::begin(kOthers), std::end(kOthers), name) != std::end(kOthers);
}

Result<bool> apply_test(Interpreter& interpreter, const std::string& name, const Value& input,
                        const Arguments& arguments) {
  const auto count = [&](size_t expected) -> Status {
    if (arguments.positional.size() + arguments.keywords.size() == expected) return {};
    return fail(ErrorCode::kBadData, "the test '{}' takes {} argument(s)", name, expected);
  };
  if (const Test* test = find_check(name)) {
    TESSERA_TRY_STATUS(count(0));
    return test->check(input);
  }
  if (const auto comparison = find_comparison(name)) {
    TESSERA_TRY_STATUS(count(1));
    if (arguments.positional.empty())
      return fail(ErrorCode::kBadData, "the test '{}' takes no keywords", name);
    return interpreter.holds(*comparison, input, arguments.positional[0]);
  }
  if (name == "odd" || name == "even") {
    TESSERA_TRY_STATUS(count(0));
    TESSERA_TRY(const int64_t rest, remainder(interpreter, input, Value::integer(2)));
    return rest == (name == "odd" ? 1 : 0);
  }
  if (name == "lower" || name == "upper") {
    TESSERA_TRY_STATUS(count(0));
    TESSERA_TRY(const MarkedText text, interpreter.text_of(input));
    TESSERA_TRY(const Value result,
                call_text_method(interpreter, text, name == "lower" ? "islower" : "isupper", {}));
    return truth(result);
  }
  if (name == "divisibleby") {
    TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {"num"}, name));
    TESSERA_TRY(const int64_t rest, remainder(interpreter, input, bound[0]));
    return rest == 0;
  }
  if (name == "sameas") {
    TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {"other"}, name));
    return same_object(interpreter, input, bound[0]);
  }
  return fail(ErrorCode::kUnsupported, "the test '{}' is not supported", name);
}

}  // namespace tessera::jinja
