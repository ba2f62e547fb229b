// Filters that yield texts and numbers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "text/jinja/filters.h"
#include "text/jinja/methods.h"
#include "text/jinja/number_text.h"
#include "text/unicode.h"

namespace tessera::jinja {
namespace {

using V = Result<Value>;

// The text of the input, and no arguments.
Result<MarkedText> only_text(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {}, "the filter"));
  (void)bound;
  return interpreter.text_of(input);
}

template <LetterCase to>
V letters(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  TESSERA_TRY(const MarkedText text, only_text(interpreter, input, arguments));
  return interpreter.make_text(change_case(text, to));
}

// Words start behind white space, '-' and opening brackets.
V title(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  TESSERA_TRY(const MarkedText text, only_text(interpreter, input, arguments));
  MarkedText out;
  size_t start = 0;
  const auto flush = [&](size_t end) {
    out.append(change_case(text.part(start, end), LetterCase::kCapitalize));
  };
  for (size_t at = 0; at < text.size();) {
    const unicode::Character c = unicode::decode(text.bytes(), at);
    const bool breaks = is_python_space(c.code) ||
                        (c.code < 0x80 &&
                         std::string_view("-({[<").find(static_cast<char>(c.code)) != std::string_view::npos);
    at += c.length;
    if (!breaks) continue;
    flush(at - c.length);
    out.append(text, at - c.length, at);
    start = at;
  }
  flush(text.size());
  return interpreter.make_text(std::move(out));
}

V trim(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {"chars"}, "trim"));
  TESSERA_TRY(const MarkedText text, interpreter.text_of(input));
  if (!bound.present(0) || bound[0].is(Kind::kNone))
    return interpreter.make_text(strip(text, StripSide::kBoth));
  TESSERA_TRY(const MarkedText characters, bound.text(0, ""));
  return interpreter.make_text(strip(text, StripSide::kBoth, &characters.bytes()));
}

V replace_filter(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  TESSERA_TRY(const BoundArguments bound,
              BoundArguments::bind(arguments, {"old", "new", "count"}, "replace"));
  TESSERA_TRY(const MarkedText text, interpreter.text_of(input));
  TESSERA_TRY(const MarkedText from, interpreter.text_of(bound[0]));
  TESSERA_TRY(const MarkedText to, interpreter.text_of(bound[1]));
  const bool all = !bound.present(2) || bound[2].is(Kind::kNone);
  TESSERA_TRY(const int64_t count, all ? Result<int64_t>(-1) : bound.integer(2, -1));
  TESSERA_TRY_STATUS(interpreter.budget().spend_bytes(text.size() + (text.size() + 1) * to.size() /
                                                                        std::max<size_t>(1, from.size())));
  return interpreter.make_text(replace(text, from.bytes(), to, count));
}

V safe(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  TESSERA_TRY(MarkedText text, only_text(interpreter, input, arguments));
  text.set_markup(true);
  return interpreter.make_text(std::move(text));
}

V string(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  TESSERA_TRY(MarkedText text, only_text(interpreter, input, arguments));
  return interpreter.make_text(std::move(text));
}

V escape(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  TESSERA_TRY(const MarkedText text, only_text(interpreter, input, arguments));
  return interpreter.make_text(escape_html(text));
}

V force_escape(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  TESSERA_TRY(MarkedText text, only_text(interpreter, input, arguments));
  text.set_markup(false);
  return interpreter.make_text(escape_html(text));
}

V indent(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  TESSERA_TRY(const BoundArguments bound,
              BoundArguments::bind(arguments, {"width", "first", "blank"}, "indent"));
  if (!input.is(Kind::kText))
    return fail(ErrorCode::kBadData, "indent: expected a string, found a value of type '{}'",
                type_name(input));
  MarkedText by;
  if (bound.present(0) && bound[0].is(Kind::kText)) {
    by = bound[0].as_text();
  } else {
    TESSERA_TRY(const int64_t width, bound.integer(0, 4));
    TESSERA_TRY_STATUS(interpreter.budget().spend_bytes(static_cast<uint64_t>(std::max<int64_t>(width, 0))));
    by = MarkedText(std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' '));
  }
  MarkedText text = input.as_text();
  text.append("\n", Origin::kTemplate);
  const std::vector<MarkedText> lines = split_lines(text);
  TESSERA_TRY_STATUS(interpreter.budget().spend_bytes(lines.size() * (by.size() + 64)));
  const bool blank = bound.flag(2, false);
  MarkedText out;
  if (bound.flag(1, false)) out.append(by);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) {
      out.append("\n", Origin::kTemplate);
      if (blank || !lines[i].empty()) out.append(by);
    }
    out.append(lines[i]);
  }
  out.set_markup(input.as_text().is_markup());
  return interpreter.make_text(std::move(out));
}

V truncate(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  TESSERA_TRY(const BoundArguments bound,
              BoundArguments::bind(arguments, {"length", "killwords", "end", "leeway"}, "truncate"));
  if (!input.is(Kind::kText)) return fail(ErrorCode::kBadData, "truncate: expected a string");
  const MarkedText& text = input.as_text();
  TESSERA_TRY(const int64_t length, bound.integer(0, 255));
  TESSERA_TRY(const MarkedText end, bound.text(2, "..."));
  TESSERA_TRY(const int64_t leeway, bound.present(3) && !bound[3].is(Kind::kNone) ? bound.integer(3, 5) : 5);
  const auto end_length = static_cast<int64_t>(end.length());
  if (length < end_length || leeway < 0)
    return fail(ErrorCode::kBadData, "truncate: length or leeway is too small");
  if (static_cast<int64_t>(text.length()) - leeway <= length) return input;
  MarkedText out = text.part(0, text.byte_of(static_cast<size_t>(length - end_length)));
  if (!bound.flag(1, false)) {
    const size_t space = out.bytes().rfind(' ');
    if (space != std::string::npos) out = out.part(0, space);
  }
  out.append(end);
  return interpreter.make_text(std::move(out));
}

V center(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {"width"}, "center"));
  TESSERA_TRY(const MarkedText text, interpreter.text_of(input));
  TESSERA_TRY(const int64_t width, bound.integer(0, 80));
  return call_text_method(interpreter, text, "center", {{Value::integer(width)}, {}});
}

V format(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  TESSERA_TRY(const MarkedText text, interpreter.text_of(input));
  if (!arguments.keywords.empty()) {
    if (!arguments.positional.empty())
      return fail(ErrorCode::kBadData, "format: positional and keyword arguments at the same time");
    auto dict = std::make_shared<Dict>();
    for (const auto& [name, value] : arguments.keywords) dict->set(Value::text(name), value);
    TESSERA_TRY(const Value values, interpreter.checked_dict(std::move(dict)));
    return percent_format(interpreter, text, values);
  }
  TESSERA_TRY(const Value values, interpreter.make_list(arguments.positional, SequenceKind::kTuple));
  return percent_format(interpreter, text, values);
}

V striptags(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  TESSERA_TRY(const MarkedText text, only_text(interpreter, input, arguments));
  MarkedText kept;
  const std::string& bytes = text.bytes();
  size_t done = 0;
  while (done < bytes.size()) {
    const size_t open = bytes.find('<', done);
    if (open == std::string::npos) break;
    const bool comment = bytes.compare(open, 4, "<!--") == 0;
    const size_t close = comment ? bytes.find("-->", open + 4) : bytes.find('>', open + 1);
    if (close == std::string::npos) break;
    kept.append(text, done, open);
    done = close + (comment ? 3 : 1);
  }
  kept.append(text, done, bytes.size());
  for (const auto& [entity, character] : {std::pair{"&lt;", "<"},
                                          {"&gt;", ">"},
                                          {"&#34;", "\""},
                                          {"&#39;", "'"},
                                          {"&quot;", "\""},
                                          {"&amp;", "&"}})
    kept = replace(kept, entity, MarkedText(character, Origin::kData));
  MarkedText out;
  bool gap = false;
  for (size_t at = 0; at < kept.size();) {
    const unicode::Character c = unicode::decode(kept.bytes(), at);
    if (is_python_space(c.code)) {
      gap = !out.empty();
    } else {
      if (gap) out.append(" ", Origin::kTemplate);
      gap = false;
      out.append(kept, at, at + c.length);
    }
    at += c.length;
  }
  return interpreter.make_text(std::move(out));
}

V urlencode(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  TESSERA_TRY(const BoundArguments none, BoundArguments::bind(arguments, {}, "urlencode"));
  (void)none;
  const auto quote = [&](const Value& value, bool slash) -> Result<MarkedText> {
    TESSERA_TRY(const MarkedText text, interpreter.text_of(value));
    TESSERA_TRY_STATUS(interpreter.budget().spend_bytes(3 * text.size()));
    MarkedText out;
    for (size_t i = 0; i < text.size(); ++i) {
      const char c = text.bytes()[i];
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                         c == '_' || c == '.' || c == '-' || c == '~' || (slash && c == '/');
      if (plain)
        out.append(text, i, i + 1);
      else if (!slash && c == ' ')
        out.append("+", text.origin_at(i));
      else
        out.append(fmt::format("%{:02X}", static_cast<unsigned char>(c)), text.origin_at(i));
    }
    return out;
  };
  if (input.is(Kind::kText) || !(input.is(Kind::kDict) || input.is(Kind::kSequence))) {
    TESSERA_TRY(MarkedText out, quote(input, true));
    return interpreter.make_text(std::move(out));
  }
  MarkedText out;
  const auto add = [&](const Value& key, const Value& value) -> Status {
    TESSERA_TRY(const MarkedText left, quote(key, false));
    TESSERA_TRY(const MarkedText right, quote(value, false));
    if (!out.empty()) out.append("&", Origin::kTemplate);
    out.append(left);
    out.append("=", Origin::kTemplate);
    out.append(right);
    return {};
  };
  if (input.is(Kind::kDict)) {
    for (const auto& [key, value] : input.as_dict().items) TESSERA_TRY_STATUS(add(key, value));
  } else {
    TESSERA_TRY(const std::vector<Value> pairs, interpreter.iterate(input));
    for (const Value& pair : pairs) {
      TESSERA_TRY(const std::vector<Value> both, interpreter.iterate(pair));
      if (both.size() != 2) return fail(ErrorCode::kBadData, "urlencode: expected pairs");
      TESSERA_TRY_STATUS(add(both[0], both[1]));
    }
  }
  return interpreter.make_text(std::move(out));
}

V wordcount(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  TESSERA_TRY(const MarkedText text, only_text(interpreter, input, arguments));
  int64_t words = 0;
  bool inside = false;
  for (size_t at = 0; at < text.size();) {
    const unicode::Character c = unicode::decode(text.bytes(), at);
    const bool word = unicode::is_word(c.code) && !unicode::is_mark(c.code);
    if (word && !inside) ++words;
    inside = word;
    at += c.length;
  }
  return Value::integer(words);
}

V filesizeformat(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {"binary"}, "filesizeformat"));
  double bytes = 0;
  if (input.is_numeric()) {
    bytes = input.as_number();
  } else {
    const auto parsed = input.is(Kind::kText) ? parse_python_float(input.bytes()) : std::nullopt;
    if (!parsed) return fail(ErrorCode::kBadData, "filesizeformat: expected a number");
    bytes = *parsed;
  }
  const bool binary = bound.flag(0, false);
  const double base = binary ? 1024 : 1000;
  if (bytes == 1) return interpreter.make_text(MarkedText("1 Byte"));
  if (!(bytes >= base))
    return interpreter.make_text(MarkedText(fmt::format("{:.0f} Bytes", std::trunc(bytes))));
  constexpr std::string_view kPrefixes = "kMGTPEZY";
  double unit = base * base;
  size_t i = 0;
  while (i + 1 < kPrefixes.size() && bytes >= unit) {
    unit *= base;
    ++i;
  }
  const char letter = binary && i == 0 ? 'K' : kPrefixes[i];
  return interpreter.make_text(
      MarkedText(format_float(base * bytes / unit, 'f', 1, false) + " " + letter + (binary ? "iB" : "B")));
}

V absolute(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  (void)interpreter;
  if (!arguments.positional.empty() || !input.is_numeric())
    return fail(ErrorCode::kBadData, "abs: expected a number");
  if (input.is(Kind::kFloat)) return Value::number(std::fabs(input.as_number()), input.origin());
  if (input.as_integer() == std::numeric_limits<int64_t>::min())
    return fail(ErrorCode::kUnsupported, "an integer beyond 64 bits is not supported");
  return Value::integer(std::abs(input.as_integer()), input.origin());
}

Result<std::optional<Value>> to_integer(const Value& value, int base) {
  if (value.is_undefined()) return undefined_error(value);
  if (value.is_integral()) return Value::integer(value.as_integer(), value.origin());
  double real = 0;
  Origin origin = value.origin();
  if (value.is(Kind::kFloat)) {
    real = value.as_number();
  } else if (value.is(Kind::kText)) {
    origin = value.as_text().any_data() ? Origin::kData : Origin::kTemplate;
    if (const auto parsed = parse_python_integer(value.bytes(), base)) return Value::integer(*parsed, origin);
    const auto parsed = parse_python_float(value.bytes());
    if (!parsed) return std::nullopt;
    real = *parsed;
  } else {
    return std::nullopt;
  }
  if (std::isnan(real)) return std::nullopt;
  if (!(real > -9.2e18 && real < 9.2e18))
    return fail(ErrorCode::kUnsupported, "an integer beyond 64 bits is not supported");
  return Value::integer(static_cast<int64_t>(real), origin);
}

V integer(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  (void)interpreter;
  TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {"default", "base"}, "int"));
  TESSERA_TRY(const int64_t base, bound.integer(1, 10));
  TESSERA_TRY(const std::optional<Value> value,
              to_integer(input, static_cast<int>(std::clamp<int64_t>(base, -1, 99))));
  if (value) return *value;
  return bound.present(0) ? bound[0] : Value::integer(0);
}

V real(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  (void)interpreter;
  TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {"default"}, "float"));
  if (input.is_undefined()) return undefined_error(input);
  if (input.is_numeric()) return Value::number(input.as_number(), input.origin());
  if (input.is(Kind::kText))
    if (const auto parsed = parse_python_float(input.bytes()))
      return Value::number(*parsed, input.as_text().any_data() ? Origin::kData : Origin::kTemplate);
  return bound.present(0) ? bound[0] : Value::number(0);
}

V round_filter(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  (void)interpreter;
  TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {"precision", "method"}, "round"));
  TESSERA_TRY(const int64_t places, bound.integer(0, 0));
  TESSERA_TRY(const MarkedText method, bound.text(1, "common"));
  if (!input.is_numeric()) return fail(ErrorCode::kBadData, "round: expected a number");
  if (method.bytes() == "common") {
    if (input.is_integral() && places >= 0) return Value::integer(input.as_integer(), input.origin());
    const double rounded = round_half_even(input.as_number(), places);
    if (input.is_integral()) return Value::integer(static_cast<int64_t>(rounded), input.origin());
    return Value::number(rounded, input.origin());
  }
  if (method.bytes() != "ceil" && method.bytes() != "floor")
    return fail(ErrorCode::kBadData, "round: the method must be common, ceil or floor");
  const double scale = std::pow(10.0, static_cast<double>(places));
  const double scaled = input.as_number() * scale;
  return Value::number((method.bytes() == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale,
                       input.origin());
}

constexpr Filter kFilters[] = {
    {"abs", absolute},
    {"capitalize", letters<LetterCase::kCapitalize>},
    {"center", center},
    {"e", escape},
    {"escape", escape},
    {"filesizeformat", filesizeformat},
    {"float", real},
    {"forceescape", force_escape},
    {"format", format},
    {"indent", indent},
    {"int", integer},
    {"lower", letters<LetterCase::kLower>},
    {"replace", replace_filter},
    {"round", round_filter},
    {"safe", safe},
    {"string", string},
    {"striptags", striptags},
    {"title", title},
    {"tojson", filter_tojson},
    {"trim", trim},
    {"truncate", truncate},
    {"upper", letters<LetterCase::kUpper>},
    {"urlencode", urlencode},
    {"wordcount", wordcount},
};

}  // namespace

const Filter* find_text_filter(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kFilters), std::end(kFilters), [&](const Filter& f) { return f.name == name; });
  return found == std::end(kFilters) ? nullptr : found;
}

}  // namespace tessera::jinja
