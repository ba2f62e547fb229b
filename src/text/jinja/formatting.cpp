// String formatting: "..." % values and "...".format(values), with the conversions and specifications of Python.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "text/jinja/methods.h"
#include "text/jinja/number_text.h"
#include "text/unicode.h"

namespace tessera::jinja {
namespace {

constexpr int64_t kMaxWidth = 100000;

struct Specification {
  std::string fill = " ";
  char align = 0;  // < > ^ =, 0: as the type has it
  char sign = '-';
  bool alternate = false;
  char grouping = 0;
  int64_t width = 0;
  int64_t precision = -1;
  char type = 0;
};

std::string grouped(const std::string& digits, char separator) {
  if (separator == 0) return digits;
  size_t whole = digits.find_first_not_of("0123456789");
  if (whole == std::string::npos) whole = digits.size();
  std::string out;
  for (size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % 3 == 0) out += separator;
    out += digits[i];
  }
  return out + digits.substr(whole);
}

// sign, prefix, digits and fill put together.
MarkedText padded(const std::string& sign, MarkedText body, const Specification& spec, char align) {
  const auto room = spec.width - static_cast<int64_t>(body.length() + sign.size());
  const auto fill = [&](MarkedText& out, int64_t count) {
    for (int64_t i = 0; i < count; ++i) out.append(spec.fill, Origin::kTemplate);
  };
  const int64_t left = room <= 0 || align == '<' || align == '=' ? 0 : align == '^' ? room / 2 : room;
  MarkedText out;
  fill(out, left);
  out.append(sign, Origin::kTemplate);
  if (align == '=') fill(out, room);
  out.append(body);
  if (align != '=') fill(out, room - left);
  return out;
}

Result<MarkedText> format_number(const Value& value, Specification spec) {
  const char align = spec.align == 0 ? '>' : spec.align;
  std::string digits;
  bool negative = false;
  std::string prefix;
  const bool is_integer = value.is_integral() && spec.type != 'f' && spec.type != 'F' && spec.type != 'e' &&
                          spec.type != 'E' && spec.type != 'g' && spec.type != 'G' && spec.type != '%';
  if (is_integer) {
    const int64_t number = value.as_integer();
    negative = number < 0;
    const uint64_t magnitude = negative ? ~static_cast<uint64_t>(number) + 1 : static_cast<uint64_t>(number);
    if (spec.type == 'c') {
      if (number < 0 || number > 0x10ffff || (number >= 0xd800 && number < 0xe000))
        return fail(ErrorCode::kBadData, "%c: not a character");
      return padded("", MarkedText(unicode::encode(static_cast<char32_t>(number)), value.origin()), spec,
                    spec.align == 0 ? '<' : align);
    }
    const unsigned base = spec.type == 'x' || spec.type == 'X' ? 16
                          : spec.type == 'o'                   ? 8
                          : spec.type == 'b'                   ? 2
                                                               : 10;
    digits = digits_of(magnitude, base, spec.type == 'X');
    if (static_cast<int64_t>(digits.size()) < spec.precision)
      digits.insert(0, static_cast<size_t>(spec.precision) - digits.size(), '0');
    if (spec.alternate && base != 10) prefix = std::string("0") + spec.type;
  } else {
    double number = value.as_number();
    negative = std::signbit(number) && !std::isnan(number);
    number = std::fabs(number);
    const auto precision = static_cast<int>(spec.precision < 0 ? 6 : spec.precision);
    if (spec.type == '%')
      digits = format_float(number * 100, 'f', precision, spec.alternate) + "%";
    else if (spec.type == 0 && spec.precision < 0)
      digits = python_float(number);
    else if (spec.type == 0 || spec.type == 'n')
      digits = format_float(number, 'g', precision, spec.alternate);
    else
      digits = format_float(number, spec.type,
                            spec.type == 'g' || spec.type == 'G' ? std::max(precision, 1) : precision,
                            spec.alternate);
  }
  digits = grouped(digits, spec.grouping);
  const std::string sign = (negative ? "-" : spec.sign == '+' ? "+" : spec.sign == ' ' ? " " : "") + prefix;
  return padded(sign, MarkedText(digits, value.origin()), spec, align);
}

MarkedText format_text(MarkedText text, const Specification& spec) {
  if (spec.precision >= 0 && static_cast<int64_t>(text.length()) > spec.precision)
    text = text.part(0, text.byte_of(static_cast<size_t>(spec.precision)));
  text.set_markup(false);
  return padded("", std::move(text), spec, spec.align == 0 ? '<' : spec.align);
}

Result<MarkedText> repr_of(Interpreter& interpreter, const Value& value) {
  MarkedText out;
  TESSERA_TRY_STATUS(append_repr(out, value, interpreter.budget()));
  return out;
}

// Reads digits from `i` on.
int64_t read_number(const std::string& text, size_t& i) {
  int64_t number = -1;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i)
    number = std::min<int64_t>(std::max<int64_t>(number, 0) * 10 + (text[i] - '0'), kMaxWidth + 1);
  return number;
}

Result<Specification> parse_specification(const std::string& text) {
  Specification spec;
  size_t i = 0;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  if (!text.empty()) {
    const size_t first = unicode::sequence_length(text[0]);
    if (first < text.size() && is_align(text[first])) {
      spec.fill = text.substr(0, first);
      spec.align = text[first];
      i = first + 1;
    } else if (is_align(text[0])) {
      spec.align = text[0];
      i = 1;
    }
  }
  if (i < text.size() && (text[i] == '+' || text[i] == '-' || text[i] == ' ')) spec.sign = text[i++];
  if (i < text.size() && text[i] == '#') {
    spec.alternate = true;
    ++i;
  }
  if (i < text.size() && text[i] == '0') {
    if (spec.align == 0) {
      spec.fill = "0";
      spec.align = '=';
    }
    ++i;
  }
  spec.width = std::max<int64_t>(0, read_number(text, i));
  if (i < text.size() && (text[i] == ',' || text[i] == '_')) spec.grouping = text[i++];
  if (i < text.size() && text[i] == '.') {
    ++i;
    spec.precision = read_number(text, i);
    if (spec.precision < 0) return fail(ErrorCode::kBadData, "format specifier missing precision");
  }
  if (i < text.size()) spec.type = text[i++];
  if (i != text.size()) return fail(ErrorCode::kBadData, "invalid format specifier '{}'", text);
  if (spec.width > kMaxWidth || spec.precision > kMaxWidth)
    return fail(ErrorCode::kResourceLimit, "a format of more than {} characters", kMaxWidth);
  return spec;
}

Result<MarkedText> apply_specification(Interpreter& interpreter, const Value& value,
                                       const std::string& text) {
  if (text.empty()) return interpreter.text_of(value);
  TESSERA_TRY(Specification spec, parse_specification(text));
  TESSERA_TRY_STATUS(interpreter.budget().spend_bytes(
      static_cast<uint64_t>(spec.width + std::max<int64_t>(0, spec.precision))));
  if (value.is(Kind::kText)) {
    if ((spec.type != 0 && spec.type != 's') || spec.align == '=')
      return fail(ErrorCode::kBadData, "unknown format code '{}' for a string", text);
    return format_text(value.as_text(), spec);
  }
  if (!value.is_numeric())
    return fail(ErrorCode::kBadData, "unsupported format string for '{}'", type_name(value));
  if (spec.type == 'd' || spec.type == 'n') {
    if (!value.is_integral()) return fail(ErrorCode::kBadData, "unknown format code 'd' for a float");
    spec.type = 0;
  }
  constexpr std::string_view kIntegerTypes = "bcoxX";
  constexpr std::string_view kFloatTypes = "eEfFgG%";
  if (spec.type != 0 && kFloatTypes.find(spec.type) == std::string_view::npos &&
      (!value.is_integral() || kIntegerTypes.find(spec.type) == std::string_view::npos))
    return fail(ErrorCode::kBadData, "unknown format code '{}'", spec.type);
  return format_number(value, spec);
}

}  // namespace

Result<Value> percent_format(Interpreter& interpreter, const MarkedText& format, const Value& values) {
  std::vector<Value> items = {values};
  if (values.is(Kind::kSequence) && values.as_sequence().kind == SequenceKind::kTuple)
    items = values.as_sequence().items;
  size_t used = 0;
  bool mapped = false;
  const auto take = [&]() -> Result<Value> {
    if (used >= items.size()) return fail(ErrorCode::kBadData, "not enough arguments for format string");
    return items[used++];
  };
  const std::string& text = format.bytes();
  MarkedText out;
  for (size_t i = 0; i < text.size();) {
    const size_t percent = std::min(text.find('%', i), text.size());
    out.append(format, i, percent);
    if (percent == text.size()) break;
    i = percent + 1;
    Specification spec;
    std::optional<Value> value;
    if (i < text.size() && text[i] == '(') {
      const size_t close = text.find(')', i);
      if (close == std::string::npos) return fail(ErrorCode::kBadData, "incomplete format key");
      if (!values.is(Kind::kDict)) return fail(ErrorCode::kBadData, "format requires a mapping");
      const Value* found = values.as_dict().find(text.substr(i + 1, close - i - 1));
      if (found == nullptr)
        return fail(ErrorCode::kBadData, "the key '{}' is missing", text.substr(i + 1, close - i - 1));
      value = *found;
      mapped = true;
      i = close + 1;
    }
    for (; i < text.size() && std::string_view("-+ #0").find(text[i]) != std::string_view::npos; ++i) {
      if (text[i] == '-') spec.align = '<';
      if (text[i] == '+' || (text[i] == ' ' && spec.sign != '+')) spec.sign = text[i];
      if (text[i] == '#') spec.alternate = true;
      if (text[i] == '0') spec.fill = "0";
    }
    const auto number = [&]() -> Result<int64_t> {
      if (i >= text.size() || text[i] != '*') return read_number(text, i);
      ++i;
      TESSERA_TRY(const Value star, take());
      if (!star.is_integral()) return fail(ErrorCode::kBadData, "* wants int");
      return star.as_integer();
    };
    TESSERA_TRY(spec.width, number());
    if (spec.width < -1) {
      spec.align = '<';
      spec.width = -spec.width;
    }
    spec.width = std::max<int64_t>(0, spec.width);
    if (i < text.size() && text[i] == '.') {
      ++i;
      TESSERA_TRY(spec.precision, number());
      spec.precision = std::max<int64_t>(0, spec.precision);
    }
    if (spec.width > kMaxWidth || spec.precision > kMaxWidth)
      return fail(ErrorCode::kResourceLimit, "a format of more than {} characters", kMaxWidth);
    TESSERA_TRY_STATUS(interpreter.budget().spend_bytes(static_cast<uint64_t>(spec.width + 16)));
    while (i < text.size() && (text[i] == 'h' || text[i] == 'l' || text[i] == 'L')) ++i;
    if (i >= text.size()) return fail(ErrorCode::kBadData, "incomplete format");
    const char type = text[i++];
    if (type == '%') {
      out.append("%", Origin::kTemplate);
      continue;
    }
    if (!value) {
      TESSERA_TRY(value, take());
    }
    if (type == 's' || type == 'r' || type == 'a') {
      spec.fill = " ";
      if (spec.align == 0) spec.align = '>';
      TESSERA_TRY(MarkedText piece, type == 's' ? interpreter.text_of(*value) : repr_of(interpreter, *value));
      if (format.is_markup()) piece = escape_html(piece);
      TESSERA_TRY_STATUS(interpreter.budget().spend_bytes(piece.size()));
      out.append(format_text(std::move(piece), spec));
      continue;
    }
    if (spec.fill == "0") {
      if (spec.align == '<')
        spec.fill = " ";
      else
        spec.align = '=';
    }
    Value operand = *value;
    if (operand.is_undefined()) return undefined_error(operand);
    if (type == 'c' && operand.is(Kind::kText) && operand.as_text().length() == 1) {
      out.append(format_text(operand.as_text(), spec));
      continue;
    }
    if (!operand.is_numeric())
      return fail(ErrorCode::kBadData, "%{} format: a number is required, not {}", type, type_name(operand));
    spec.type = type == 'i' || type == 'u' || type == 'd' ? 0 : type;
    if (std::string_view("diuxXoc").find(type) != std::string_view::npos) {
      if (operand.is(Kind::kFloat)) {
        if (type != 'd' && type != 'i' && type != 'u')
          return fail(ErrorCode::kBadData, "%{} format: an integer is required, not float", type);
        if (!(std::fabs(operand.as_number()) < 9.2e18))
          return fail(ErrorCode::kUnsupported, "an integer beyond 64 bits is not supported");
        operand = Value::integer(static_cast<int64_t>(operand.as_number()), operand.origin());
      }
    } else if (std::string_view("eEfFgG").find(type) == std::string_view::npos) {
      return fail(ErrorCode::kBadData, "unsupported format character '{}'", type);
    }
    TESSERA_TRY(const MarkedText piece, format_number(operand, spec));
    out.append(piece);
  }
  if (!mapped && used < items.size() && !values.is(Kind::kDict))
    return fail(ErrorCode::kBadData, "not all arguments converted during string formatting");
  out.set_markup(format.is_markup());
  return interpreter.make_text(std::move(out));
}

Result<Value> brace_format(Interpreter& interpreter, const MarkedText& format, const Arguments& arguments) {
  const std::string& text = format.bytes();
  MarkedText out;
  size_t next = 0;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c != '{' && c != '}') {
      const size_t end = std::min(text.find_first_of("{}", i), text.size());
      out.append(format, i, end);
      i = end;
      continue;
    }
    if (i + 1 < text.size() && text[i + 1] == c) {
      out.append(format, i, i + 1);
      i += 2;
      continue;
    }
    const size_t close = c == '{' ? text.find('}', i) : std::string::npos;
    if (close == std::string::npos)
      return fail(ErrorCode::kBadData, "single '{}' encountered in format string", c);
    std::string field = text.substr(i + 1, close - i - 1);
    if (field.find('{') != std::string::npos)
      return fail(ErrorCode::kUnsupported, "a field inside of a format specifier is not supported");
    i = close + 1;
    std::string specification;
    if (const size_t colon = field.find(':'); colon != std::string::npos) {
      specification = field.substr(colon + 1);
      field.resize(colon);
    }
    char conversion = 0;
    if (const size_t mark = field.find('!'); mark != std::string::npos) {
      if (mark + 2 != field.size())
        return fail(ErrorCode::kBadData, "expected one conversion character behind '!'");
      conversion = field[mark + 1];
      field.resize(mark);
    }
    const std::string name = field.substr(0, field.find_first_of(".["));
    std::string path = field.substr(name.size());
    Value value;
    if (name.empty() || name.find_first_not_of("0123456789") == std::string::npos) {
      const auto index =
          name.empty() ? static_cast<int64_t>(next++) : parse_python_integer(name, 10).value_or(-1);
      if (index < 0 || index >= static_cast<int64_t>(arguments.positional.size()))
        return fail(ErrorCode::kBadData, "replacement index {} out of range for positional args tuple",
                    index);
      value = arguments.positional[static_cast<size_t>(index)];
    } else {
      const auto found = std::find_if(arguments.keywords.begin(), arguments.keywords.end(),
                                      [&](const auto& keyword) { return keyword.first == name; });
      if (found == arguments.keywords.end())
        return fail(ErrorCode::kBadData, "the key '{}' is missing", name);
      value = found->second;
    }
    while (!path.empty()) {
      if (path[0] == '.') {
        const size_t end = std::min(path.find_first_of(".[", 1), path.size());
        TESSERA_TRY(value, interpreter.attribute(value, path.substr(1, end - 1)));
        path.erase(0, end);
      } else {
        const size_t end = path.find(']');
        if (path[0] != '[' || end == std::string::npos)
          return fail(ErrorCode::kBadData, "expected ']' in a format string");
        const std::string key = path.substr(1, end - 1);
        const auto index = key.find_first_not_of("0123456789") == std::string::npos
                               ? parse_python_integer(key, 10)
                               : std::nullopt;
        TESSERA_TRY(value, interpreter.item(value, index ? Value::integer(*index) : Value::text(key)));
        path.erase(0, end + 1);
      }
    }
    if (conversion == 'r') {
      TESSERA_TRY(MarkedText piece, repr_of(interpreter, value));
      value = Value::text(std::move(piece));
    } else if (conversion == 's') {
      TESSERA_TRY(MarkedText piece, interpreter.text_of(value));
      value = Value::text(std::move(piece));
    } else if (conversion != 0) {
      return fail(ErrorCode::kUnsupported, "the conversion '!{}' is not supported", conversion);
    }
    TESSERA_TRY(const MarkedText piece, apply_specification(interpreter, value, specification));
    TESSERA_TRY_STATUS(interpreter.budget().spend_bytes(piece.size()));
    out.append(format.is_markup() ? escape_html(piece) : piece);
  }
  out.set_markup(format.is_markup());
  return interpreter.make_text(std::move(out));
}

}  // namespace tessera::jinja
