// See methods.h.
#include "text/jinja/methods.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "text/unicode.h"

namespace tessera::jinja {
namespace {

using V = Result<Value>;

constexpr std::string_view kDictMethods[] = {"copy", "get", "items", "keys", "values"};
constexpr std::string_view kListMethods[] = {"clear", "copy", "count", "index", "pop"};
constexpr std::string_view kTupleMethods[] = {"count", "index"};
// Methods of str, list, dict, int and float that are not here or that the sandbox forbids.
constexpr std::string_view kMissing[] = {
    "encode", "translate",  "maketrans", "format_map",       "expandtabs",  "fromkeys",   "hex",
    "append", "extend",     "insert",    "remove",           "sort",        "setdefault", "popitem",
    "update", "bit_length", "to_bytes",  "as_integer_ratio", "isidentifier"};

template <size_t n>
bool among(const std::string_view (&names)[n], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

enum class End : uint8_t { kLeft, kRight };

// The byte range that start and end arguments (from `first` on) select, as Python's slices do.
Result<std::pair<size_t, size_t>> part_of(const MarkedText& text, const BoundArguments& bound, size_t first) {
  const auto count = static_cast<int64_t>(text.length());
  const auto place = [&](size_t index, int64_t fallback) -> Result<int64_t> {
    if (!bound.present(index) || bound[index].is(Kind::kNone)) return fallback;
    TESSERA_TRY(int64_t at, bound.integer(index, fallback));
    if (at < 0) at = std::max<int64_t>(0, at < -count ? 0 : at + count);
    return at;
  };
  TESSERA_TRY(const int64_t begin, place(first, 0));
  TESSERA_TRY(const int64_t end, place(first + 1, count));
  if (begin > count || begin > end) return std::pair<size_t, size_t>{1, 0};  // nothing is found there
  return std::pair{text.byte_of(static_cast<size_t>(begin)),
                   text.byte_of(static_cast<size_t>(std::min(end, count)))};
}

V find(const MarkedText& self, const std::string& name, const Arguments& arguments) {
  TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {"sub", "start", "end"}, name));
  TESSERA_TRY(const MarkedText wanted, bound.text(0, ""));
  TESSERA_TRY(const auto range, part_of(self, bound, 1));
  size_t found = std::string::npos;
  if (range.first <= range.second) {
    const std::string_view part =
        std::string_view(self.bytes()).substr(range.first, range.second - range.first);
    found = name[0] == 'r' ? part.rfind(wanted.bytes()) : part.find(wanted.bytes());
  }
  if (found == std::string::npos) {
    if (name.ends_with("index")) return fail(ErrorCode::kBadData, "substring not found");
    return Value::integer(-1);
  }
  return Value::integer(static_cast<int64_t>(
      unicode::count_characters(std::string_view(self.bytes()).substr(0, range.first + found))));
}

V count(const MarkedText& self, const Arguments& arguments) {
  TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {"sub", "start", "end"}, "count"));
  TESSERA_TRY(const MarkedText wanted, bound.text(0, ""));
  TESSERA_TRY(const auto range, part_of(self, bound, 1));
  if (range.first > range.second) return Value::integer(0);
  const std::string_view part =
      std::string_view(self.bytes()).substr(range.first, range.second - range.first);
  if (wanted.empty()) return Value::integer(static_cast<int64_t>(unicode::count_characters(part)) + 1);
  int64_t total = 0;
  for (size_t at = part.find(wanted.bytes()); at != std::string_view::npos;
       at = part.find(wanted.bytes(), at + wanted.size()))
    ++total;
  return Value::integer(total);
}

V affix(const MarkedText& self, const std::string& name, const Arguments& arguments) {
  TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {"affix", "start", "end"}, name));
  TESSERA_TRY(const auto range, part_of(self, bound, 1));
  std::vector<Value> choices = {bound[0]};
  if (bound[0].is(Kind::kSequence)) choices = bound[0].as_sequence().items;
  for (const Value& choice : choices) {
    if (!choice.is(Kind::kText))
      return fail(ErrorCode::kBadData, "{}: expected a string or a tuple of strings, found '{}'", name,
                  type_name(choice));
    if (range.first > range.second) continue;
    const std::string_view part =
        std::string_view(self.bytes()).substr(range.first, range.second - range.first);
    if (name == "startswith" ? part.starts_with(choice.bytes()) : part.ends_with(choice.bytes()))
      return Value::boolean(true);
  }
  return Value::boolean(false);
}

V split(Interpreter& interpreter, const MarkedText& self, End end, const Arguments& arguments) {
  TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {"sep", "maxsplit"}, "split"));
  TESSERA_TRY(int64_t limit, bound.integer(1, -1));
  if (limit < 0) limit = std::numeric_limits<int64_t>::max();
  const std::string& bytes = self.bytes();
  std::vector<std::pair<size_t, size_t>> parts;  // in the order they are found
  if (!bound.present(0) || bound[0].is(Kind::kNone)) {
    const auto space_at = [&](size_t at) { return is_python_space(unicode::decode(bytes, at).code); };
    const auto space_before = [&](size_t at) {
      return is_python_space(unicode::decode_before(bytes, at).code);
    };
    if (end == End::kLeft) {
      size_t at = 0;
      const auto skip = [&] {
        while (at < bytes.size() && space_at(at)) at += unicode::sequence_length(bytes[at]);
      };
      for (skip(); at < bytes.size(); skip()) {
        const size_t start = at;
        if (limit-- == 0) {
          parts.emplace_back(start, bytes.size());
          break;
        }
        while (at < bytes.size() && !space_at(at)) at += unicode::sequence_length(bytes[at]);
        parts.emplace_back(start, at);
      }
    } else {
      size_t at = bytes.size();
      const auto skip = [&] {
        while (at > 0 && space_before(at)) at -= unicode::decode_before(bytes, at).length;
      };
      for (skip(); at > 0; skip()) {
        const size_t stop = at;
        if (limit-- == 0) {
          parts.emplace_back(0, stop);
          break;
        }
        while (at > 0 && !space_before(at)) at -= unicode::decode_before(bytes, at).length;
        parts.emplace_back(at, stop);
      }
    }
  } else {
    TESSERA_TRY(const MarkedText separator, bound.text(0, ""));
    if (separator.empty()) return fail(ErrorCode::kBadData, "empty separator");
    const std::string& wanted = separator.bytes();
    if (end == End::kLeft) {
      size_t start = 0;
      for (size_t at = bytes.find(wanted); at != std::string::npos && limit-- > 0;
           at = bytes.find(wanted, start)) {
        parts.emplace_back(start, at);
        start = at + wanted.size();
      }
      parts.emplace_back(start, bytes.size());
    } else {
      size_t stop = bytes.size();
      while (limit-- > 0 && stop >= wanted.size()) {
        const size_t at = bytes.rfind(wanted, stop - wanted.size());
        if (at == std::string::npos) break;
        parts.emplace_back(at + wanted.size(), stop);
        stop = at;
      }
      parts.emplace_back(0, stop);
    }
  }
  if (end == End::kRight) std::reverse(parts.begin(), parts.end());
  TESSERA_TRY_STATUS(interpreter.budget().spend_bytes(bytes.size() + parts.size() * 160));
  std::vector<Value> out;
  for (const auto& [start, stop] : parts) out.push_back(Value::text(self.part(start, stop)));
  return interpreter.make_list(std::move(out));
}

V partition(Interpreter& interpreter, const MarkedText& self, End end, const Arguments& arguments) {
  TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {"sep"}, "partition"));
  TESSERA_TRY(const MarkedText separator, bound.text(0, ""));
  if (separator.empty()) return fail(ErrorCode::kBadData, "empty separator");
  const size_t at =
      end == End::kLeft ? self.bytes().find(separator.bytes()) : self.bytes().rfind(separator.bytes());
  TESSERA_TRY_STATUS(interpreter.budget().spend_bytes(self.size()));
  const Value whole = Value::text(self);
  const Value nothing = Value::text("");
  if (at == std::string::npos)
    return interpreter.make_list(end == End::kLeft ? std::vector<Value>{whole, nothing, nothing}
                                                   : std::vector<Value>{nothing, nothing, whole},
                                 SequenceKind::kTuple);
  const size_t behind = at + separator.size();
  return interpreter.make_list({Value::text(self.part(0, at)), Value::text(self.part(at, behind)),
                                Value::text(self.part(behind, self.size()))},
                               SequenceKind::kTuple);
}

V justify(Interpreter& interpreter, const MarkedText& self, const std::string& name,
          const Arguments& arguments) {
  TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {"width", "fillchar"}, name));
  TESSERA_TRY(const int64_t width, bound.integer(0, 0));
  TESSERA_TRY(const MarkedText fill, bound.text(1, name == "zfill" ? "0" : " "));
  if (fill.length() != 1) return fail(ErrorCode::kBadData, "{}: the fill must be one character", name);
  const auto room = std::max<int64_t>(0, width - static_cast<int64_t>(self.length()));
  TESSERA_TRY_STATUS(interpreter.budget().spend_bytes(static_cast<uint64_t>(room) * fill.size()));
  int64_t left = 0;
  if (name == "center")
    left = room / 2 + (room & width & 1);
  else if (name != "ljust")
    left = room;
  size_t sign = 0;
  MarkedText out;
  if (name == "zfill" && !self.empty() && (self.bytes()[0] == '-' || self.bytes()[0] == '+')) {
    sign = 1;
    out.append(self, 0, 1);
  }
  for (int64_t i = 0; i < left; ++i) out.append(fill);
  out.append(self, sign, self.size());
  for (int64_t i = left; i < room; ++i) out.append(fill);
  return interpreter.make_text(std::move(out));
}

bool letter(char32_t code) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return true;
    default:
      return false;
  }
}

bool decimal(char32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code)) == UTF8PROC_CATEGORY_ND;
}
// Superscripts and circled digits are digits too.
bool digit(char32_t code) {
  return decimal(code) || code == 0xb2 || code == 0xb3 || code == 0xb9 || code == 0x2070 ||
         (code >= 0x2074 && code <= 0x2079) || (code >= 0x2080 && code <= 0x2089) ||
         (code >= 0x2460 && code <= 0x2468);
}
bool printable(char32_t code) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    case UTF8PROC_CATEGORY_ZS:
      return code == ' ';
    default:
      return true;
  }
}

std::optional<bool> character_class(const MarkedText& self, const std::string& name) {
  const auto all = [&](auto check, bool of_nothing = false) {
    if (self.empty()) return of_nothing;
    for (size_t at = 0; at < self.size();) {
      const unicode::Character c = unicode::decode(self.bytes(), at);
      if (!check(c.code)) return false;
      at += c.length;
    }
    return true;
  };
  if (name == "isalpha") return all(letter);
  if (name == "isdecimal") return all(decimal);
  if (name == "isdigit") return all(digit);
  if (name == "isnumeric") return all([](char32_t c) { return digit(c) || unicode::is_numeric(c); });
  if (name == "isalnum")
    return all([](char32_t c) { return letter(c) || digit(c) || unicode::is_numeric(c); });
  if (name == "isspace") return all(is_python_space);
  if (name == "isprintable") return all(printable, true);
  if (name == "isascii") return all([](char32_t c) { return c < 0x80; }, true);
  if (name != "islower" && name != "isupper" && name != "istitle") return std::nullopt;
  bool cased = false;
  bool in_word = false;
  for (size_t at = 0; at < self.size();) {
    const unicode::Character c = unicode::decode(self.bytes(), at);
    at += c.length;
    const auto code = static_cast<utf8proc_int32_t>(c.code);
    const utf8proc_category_t category = utf8proc_category(code);
    const bool upper = category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LT;
    const bool lower = category == UTF8PROC_CATEGORY_LL;
    if (name == "islower" && upper) return false;
    if (name == "isupper" && (lower || category == UTF8PROC_CATEGORY_LT)) return false;
    if (name == "istitle" && ((upper && in_word) || (lower && !in_word))) return false;
    in_word = upper || lower;
    cased |= in_word;
  }
  return cased;
}

struct CaseName {
  std::string_view name;
  LetterCase to;
};
constexpr CaseName kCases[] = {{"upper", LetterCase::kUpper},           {"lower", LetterCase::kLower},
                               {"capitalize", LetterCase::kCapitalize}, {"title", LetterCase::kTitle},
                               {"swapcase", LetterCase::kSwap},         {"casefold", LetterCase::kFold}};
constexpr std::string_view kTextMethods[] = {
    "capitalize", "casefold",    "center",     "count",        "endswith",     "find",    "format",
    "index",      "isalnum",     "isalpha",    "isascii",      "isdecimal",    "isdigit", "islower",
    "isnumeric",  "isprintable", "isspace",    "istitle",      "isupper",      "join",    "ljust",
    "lower",      "lstrip",      "partition",  "removeprefix", "removesuffix", "replace", "rfind",
    "rindex",     "rjust",       "rpartition", "rsplit",       "rstrip",       "split",   "splitlines",
    "startswith", "strip",       "swapcase",   "title",        "upper",        "zfill"};

V dict_method(Interpreter& interpreter, const Dict& dict, const std::string& name,
              const Arguments& arguments) {
  if (name == "get") {
    TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {"key", "default"}, name));
    if (!is_hashable(bound[0]))
      return fail(ErrorCode::kBadData, "unhashable type: '{}'", type_name(bound[0]));
    if (const Value* found = dict.find(bound[0])) return *found;
    return bound.present(1) ? bound[1] : Value::none();
  }
  TESSERA_TRY(const BoundArguments none, BoundArguments::bind(arguments, {}, name));
  (void)none;
  if (name == "copy") {
    auto copy = std::make_shared<Dict>();
    for (const auto& [key, value] : dict.items) copy->set(key, value);
    return interpreter.checked_dict(std::move(copy));
  }
  std::vector<Value> out;
  TESSERA_TRY_STATUS(interpreter.budget().spend_steps(dict.items.size()));
  for (const auto& [key, value] : dict.items) {
    if (name == "items") {
      TESSERA_TRY(Value pair, interpreter.make_list({key, value}, SequenceKind::kTuple));
      out.push_back(std::move(pair));
    } else {
      out.push_back(name == "keys" ? key : value);
    }
  }
  return interpreter.make_list(std::move(out), name == "items"  ? SequenceKind::kItems
                                               : name == "keys" ? SequenceKind::kKeys
                                                                : SequenceKind::kValues);
}

V list_method(Interpreter& interpreter, const Value& self, const std::string& name,
              const Arguments& arguments) {
  const Sequence& list = self.as_sequence();
  TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {"value"}, name));
  if (name == "copy") return interpreter.make_list(list.items, list.kind);
  if (name == "clear") {
    list.items.clear();
    return Value::none();
  }
  if (name == "pop") {
    const auto size = static_cast<int64_t>(list.items.size());
    TESSERA_TRY(int64_t index, bound.integer(0, -1));
    if (index < 0) index += size;
    if (index < 0 || index >= size) return fail(ErrorCode::kBadData, "pop index out of range");
    Value value = list.items[static_cast<size_t>(index)];
    list.items.erase(list.items.begin() + static_cast<ptrdiff_t>(index));
    return value;
  }
  int64_t matches = 0;
  for (size_t i = 0; i < list.items.size(); ++i) {
    TESSERA_TRY(const bool same, equal(list.items[i], bound[0], interpreter.budget()));
    if (same && name == "index") return Value::integer(static_cast<int64_t>(i));
    matches += same ? 1 : 0;
  }
  if (name == "index") return fail(ErrorCode::kBadData, "the value is not in the list");
  return Value::integer(matches);
}

}  // namespace

bool has_text_method(std::string_view name) {
  return among(kTextMethods, name);
}

bool is_missing_method(std::string_view name) {
  return among(kMissing, name);
}

bool has_method(const Value& object, std::string_view name) {
  switch (object.kind()) {
    case Kind::kText:
      return has_text_method(name);
    case Kind::kDict:
      return among(kDictMethods, name);
    case Kind::kSequence:
      if (object.as_sequence().kind == SequenceKind::kList) return among(kListMethods, name);
      return object.as_sequence().kind == SequenceKind::kTuple && among(kTupleMethods, name);
    default:
      return false;
  }
}

Result<Value> join_texts(Interpreter& interpreter, const MarkedText& separator,
                         const std::vector<Value>& items) {
  MarkedText out;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].is(Kind::kText))
      return fail(ErrorCode::kBadData, "sequence item {}: expected str instance, {} found", i,
                  type_name(items[i]));
    TESSERA_TRY_STATUS(interpreter.budget().spend_bytes(items[i].as_text().size() + separator.size()));
    if (i > 0) out.append(separator);
    out.append(separator.is_markup() ? escape_html(items[i].as_text()) : items[i].as_text());
  }
  out.set_markup(separator.is_markup());
  return interpreter.make_text(std::move(out));
}

Result<Value> call_text_method(Interpreter& interpreter, const MarkedText& self, const std::string& name,
                               const Arguments& arguments) {
  TESSERA_TRY_STATUS(interpreter.budget().spend_steps(1 + self.size() / 64));
  if (const std::optional<bool> result = character_class(self, name)) return Value::boolean(*result);
  for (const CaseName& row : kCases)
    if (row.name == name) return interpreter.make_text(change_case(self, row.to));
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {"chars"}, name));
    const StripSide side = name[0] == 'l'   ? StripSide::kLeft
                           : name[0] == 'r' ? StripSide::kRight
                                            : StripSide::kBoth;
    if (!bound.present(0) || bound[0].is(Kind::kNone)) return interpreter.make_text(strip(self, side));
    TESSERA_TRY(const MarkedText characters, bound.text(0, ""));
    return interpreter.make_text(strip(self, side, &characters.bytes()));
  }
  if (name == "split") return split(interpreter, self, End::kLeft, arguments);
  if (name == "rsplit") return split(interpreter, self, End::kRight, arguments);
  if (name == "partition") return partition(interpreter, self, End::kLeft, arguments);
  if (name == "rpartition") return partition(interpreter, self, End::kRight, arguments);
  if (name == "find" || name == "rfind" || name == "index" || name == "rindex")
    return find(self, name, arguments);
  if (name == "count") return count(self, arguments);
  if (name == "startswith" || name == "endswith") return affix(self, name, arguments);
  if (name == "center" || name == "ljust" || name == "rjust" || name == "zfill")
    return justify(interpreter, self, name, arguments);
  if (name == "format") return brace_format(interpreter, self, arguments);
  if (name == "join") {
    TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {"iterable"}, name));
    TESSERA_TRY(const std::vector<Value> items, interpreter.iterate(bound[0]));
    return join_texts(interpreter, self, items);
  }
  if (name == "replace") {
    TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {"old", "new", "count"}, name));
    TESSERA_TRY(const MarkedText from, bound.text(0, ""));
    TESSERA_TRY(const MarkedText to, bound.text(1, ""));
    TESSERA_TRY(const int64_t limit, bound.integer(2, -1));
    TESSERA_TRY_STATUS(interpreter.budget().spend_bytes(self.size() + (self.size() + 1) * to.size() /
                                                                          std::max<size_t>(1, from.size())));
    return interpreter.make_text(replace(self, from.bytes(), self.is_markup() ? escape_html(to) : to, limit));
  }
  if (name == "removeprefix" || name == "removesuffix") {
    TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {"affix"}, name));
    TESSERA_TRY(const MarkedText affix_text, bound.text(0, ""));
    const std::string& bytes = self.bytes();
    if (name == "removeprefix" && bytes.starts_with(affix_text.bytes()))
      return interpreter.make_text(self.part(affix_text.size(), self.size()));
    if (name == "removesuffix" && bytes.ends_with(affix_text.bytes()))
      return interpreter.make_text(self.part(0, self.size() - affix_text.size()));
    return interpreter.make_text(self);
  }
  if (name == "splitlines") {
    TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {"keepends"}, name));
    std::vector<MarkedText> lines = split_lines(self, bound.flag(0, false));
    TESSERA_TRY_STATUS(interpreter.budget().spend_bytes(self.size() + lines.size() * 160));
    std::vector<Value> out;
    for (MarkedText& line : lines) out.push_back(Value::text(std::move(line)));
    return interpreter.make_list(std::move(out));
  }
  return fail(ErrorCode::kUnsupported, "the method '{}' is not supported", name);
}

Result<Value> call_method(Interpreter& interpreter, const MethodFunction& method,
                          const Arguments& arguments) {
  switch (method.self.kind()) {
    case Kind::kText:
      return call_text_method(interpreter, method.self.as_text(), method.name, arguments);
    case Kind::kDict:
      return dict_method(interpreter, method.self.as_dict(), method.name, arguments);
    default:
      return list_method(interpreter, method.self, method.name, arguments);
  }
}

}  // namespace tessera::jinja
