// Arithmetic: the binary operators of Python on numbers, texts and lists.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/checked_math.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/methods.h"

namespace tessera::jinja {
namespace {

constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();

Origin joined(const Value& a, const Value& b) {
  return a.origin() == Origin::kData || b.origin() == Origin::kData ? Origin::kData : Origin::kTemplate;
}

Failure wrong_operands(std::string_view operation, const Value& left, const Value& right) {
  if (left.is_undefined()) return undefined_error(left);
  if (right.is_undefined()) return undefined_error(right);
  return fail(ErrorCode::kBadData, "unsupported operand type(s) for {}: '{}' and '{}'", operation,
              type_name(left), type_name(right));
}

Failure too_large() {
  return fail(ErrorCode::kUnsupported, "an integer beyond 64 bits is not supported");
}

Result<Value> integer_power(const Value& left, const Value& right) {
  int64_t base = left.as_integer();
  int64_t exponent = right.as_integer();
  if (exponent < 0) {
    if (base == 0) return fail(ErrorCode::kBadData, "0 cannot be raised to a negative power");
    return Value::number(std::pow(static_cast<double>(base), static_cast<double>(exponent)),
                         joined(left, right));
  }
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) return too_large();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return too_large();
  }
  return Value::integer(result, joined(left, right));
}

Result<Value> integer_operation(const std::string& operation, const Value& left, const Value& right) {
  const int64_t a = left.as_integer();
  const int64_t b = right.as_integer();
  const Origin origin = joined(left, right);
  int64_t result = 0;
  if (operation == "+") {
    if (__builtin_add_overflow(a, b, &result)) return too_large();
  } else if (operation == "-") {
    if (__builtin_sub_overflow(a, b, &result)) return too_large();
  } else if (operation == "*") {
    if (__builtin_mul_overflow(a, b, &result)) return too_large();
  } else if (operation == "**") {
    return integer_power(left, right);
  } else {
    if (b == 0) return fail(ErrorCode::kBadData, "division by zero");
    if (operation == "/") return Value::number(static_cast<double>(a) / static_cast<double>(b), origin);
    if (b == -1) {
      if (operation == "%") return Value::integer(0, origin);
      if (a == std::numeric_limits<int64_t>::min()) return too_large();
      return Value::integer(-a, origin);
    }
    const int64_t remainder = a % b;
    const bool adjust = remainder != 0 && (remainder < 0) != (b < 0);
    result = operation == "%" ? remainder + (adjust ? b : 0) : a / b - (adjust ? 1 : 0);
  }
  return Value::integer(result, origin);
}

Result<Value> float_operation(const std::string& operation, const Value& left, const Value& right) {
  const double a = left.as_number();
  const double b = right.as_number();
  double result = 0;
  if (operation == "+") {
    result = a + b;
  } else if (operation == "-") {
    result = a - b;
  } else if (operation == "*") {
    result = a * b;
  } else if (operation == "**") {
    if (a == 0 && b < 0) return fail(ErrorCode::kBadData, "0.0 cannot be raised to a negative power");
    if (a < 0 && b != std::floor(b))
      return fail(ErrorCode::kUnsupported, "complex numbers are not supported");
    result = std::pow(a, b);
  } else {
    if (b == 0) return fail(ErrorCode::kBadData, "division by zero");
    if (operation == "/") {
      result = a / b;
    } else {
      double remainder = std::fmod(a, b);
      if (remainder != 0 && (remainder < 0) != (b < 0)) remainder += b;
      if (operation == "%") {
        result = remainder == 0 ? std::copysign(0.0, b) : remainder;
      } else {
        const double quotient = (a - remainder) / b;
        result = std::floor(quotient);
        if (quotient - result > 0.5) result += 1;
      }
    }
  }
  return Value::number(result, joined(left, right));
}

}  // namespace

Result<Value> Interpreter::binary(const std::string& operation, const Value& left, const Value& right) {
  if (left.is_numeric() && right.is_numeric())
    return left.is_integral() && right.is_integral() ? integer_operation(operation, left, right)
                                                     : float_operation(operation, left, right);
  if (operation == "%" && left.is(Kind::kText)) return percent_format(*this, left.as_text(), right);
  if (operation == "+" && left.is(Kind::kText) && right.is(Kind::kText)) {
    const bool markup = left.as_text().is_markup() || right.as_text().is_markup();
    MarkedText out;
    out.append(markup ? escape_html(left.as_text()) : left.as_text());
    out.append(markup ? escape_html(right.as_text()) : right.as_text());
    out.set_markup(markup);
    return make_text(std::move(out));
  }
  if (operation == "+" && left.is(Kind::kSequence) && right.is(Kind::kSequence)) {
    const Sequence& a = left.as_sequence();
    const Sequence& b = right.as_sequence();
    if (a.kind == b.kind && (a.kind == SequenceKind::kList || a.kind == SequenceKind::kTuple)) {
      TESSERA_TRY_STATUS(budget_.spend_bytes((a.items.size() + b.items.size()) * sizeof(Value)));
      std::vector<Value> items = a.items;
      items.insert(items.end(), b.items.begin(), b.items.end());
      return make_list(std::move(items), a.kind);
    }
  }
  if (operation == "*" && (left.is_integral() || right.is_integral())) {
    const Value& object = left.is_integral() ? right : left;
    const auto count =
        static_cast<uint64_t>(std::max<int64_t>(0, (left.is_integral() ? left : right).as_integer()));
    if (object.is(Kind::kText)) {
      const uint64_t bytes = checked_multiply(object.as_text().size(), count).value_or(kHuge);
      TESSERA_TRY_STATUS(budget_.spend_bytes(bytes));
      MarkedText out;
      for (uint64_t i = 0; i < (bytes == 0 ? 0 : count); ++i) out.append(object.as_text());
      out.set_markup(object.as_text().is_markup());
      return Value::text(std::move(out));
    }
    if (object.is(Kind::kSequence) && (object.as_sequence().kind == SequenceKind::kList ||
                                       object.as_sequence().kind == SequenceKind::kTuple)) {
      const Sequence& sequence = object.as_sequence();
      const uint64_t values = checked_multiply(sequence.items.size(), count).value_or(kHuge);
      const uint64_t bytes = checked_multiply(values, sizeof(Value)).value_or(kHuge);
      TESSERA_TRY_STATUS(budget_.spend_bytes(bytes));
      std::vector<Value> items;
      items.reserve(values);
      for (uint64_t i = 0; i < (values == 0 ? 0 : count); ++i)
        items.insert(items.end(), sequence.items.begin(), sequence.items.end());
      return make_list(std::move(items), sequence.kind);
    }
  }
  return wrong_operands(operation, left, right);
}

}  // namespace tessera::jinja
