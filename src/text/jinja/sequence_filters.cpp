// Filters over lists and dicts.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "text/jinja/filters.h"
#include "text/jinja/methods.h"
#include "text/jinja/number_text.h"
#include "text/jinja/tests.h"

namespace tessera::jinja {
namespace {

using V = Result<Value>;

V default_filter(Interpreter&, const Value& input, const Arguments& arguments) {
  TESSERA_TRY(const BoundArguments bound,
              BoundArguments::bind(arguments, {"default_value", "boolean"}, "default"));
  if (input.is_undefined() || (bound.flag(1, false) && !truth(input)))
    return bound.present(0) ? bound[0] : Value::text("");
  return input;
}

V length_filter(Interpreter& interpreter, const Value& input, const Arguments&) {
  TESSERA_TRY(const int64_t count, interpreter.length(input));
  return Value::integer(count);
}

V list(Interpreter& interpreter, const Value& input, const Arguments&) {
  TESSERA_TRY(std::vector<Value> items, interpreter.iterate(input));
  return interpreter.make_list(std::move(items));
}

V items_filter(Interpreter& interpreter, const Value& input, const Arguments&) {
  std::vector<Value> pairs;
  if (!input.is_undefined()) {
    if (!input.is(Kind::kDict)) return fail(ErrorCode::kBadData, "can only get item pairs from a mapping");
    for (const auto& [key, value] : input.as_dict().items) {
      TESSERA_TRY(Value pair, interpreter.make_list({key, value}, SequenceKind::kTuple));
      pairs.push_back(std::move(pair));
    }
  }
  return interpreter.make_list(std::move(pairs), SequenceKind::kIterator);
}

V first(Interpreter& interpreter, const Value& input, const Arguments&) {
  TESSERA_TRY(const std::vector<Value> items, interpreter.iterate(input));
  return items.empty() ? Value::undefined("No first item, sequence was empty.") : items.front();
}

V last(Interpreter& interpreter, const Value& input, const Arguments&) {
  if (input.is(Kind::kSequence) && input.as_sequence().kind == SequenceKind::kIterator)
    return fail(ErrorCode::kBadData, "'generator' object is not reversible");
  TESSERA_TRY(const std::vector<Value> items, interpreter.iterate(input));
  return items.empty() ? Value::undefined("No last item, sequence was empty.") : items.back();
}

V reverse(Interpreter& interpreter, const Value& input, const Arguments&) {
  TESSERA_TRY(std::vector<Value> items, interpreter.iterate(input));
  std::reverse(items.begin(), items.end());
  if (!input.is(Kind::kText)) return interpreter.make_list(std::move(items), SequenceKind::kIterator);
  MarkedText out;
  for (const Value& item : items) out.append(item.as_text());
  return interpreter.make_text(std::move(out));
}

V join(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {"d", "attribute"}, "join"));
  TESSERA_TRY(std::vector<Value> items, interpreter.iterate(input));
  MarkedText separator;
  if (bound.present(0)) {
    TESSERA_TRY(separator, interpreter.text_of(bound[0]));
  }
  MarkedText out;
  bool between = false;
  for (Value& item : items) {
    if (bound.present(1) && !bound[1].is(Kind::kNone)) {
      TESSERA_TRY(item, attribute_path(interpreter, item, bound[1]));
    }
    TESSERA_TRY(const MarkedText text, interpreter.text_of(item));
    TESSERA_TRY_STATUS(interpreter.budget().spend_bytes(text.size() + separator.size()));
    if (std::exchange(between, true))
      out.append(interpreter.autoescape() ? escape_html(separator) : separator);
    out.append(interpreter.autoescape() ? escape_html(text) : text);
  }
  out.set_markup(interpreter.autoescape());
  return interpreter.make_text(std::move(out));
}

V attr(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {"name"}, "attr"));
  TESSERA_TRY(const MarkedText name, interpreter.text_of(bound[0]));
  if (input.is(Kind::kDict) && !has_method(input, name.bytes()))
    return Value::undefined(fmt::format("'dict object' has no attribute '{}'", name.bytes()));
  return interpreter.attribute(input, name.bytes());
}

V map(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  std::vector<Value> items;
  if (truth(input)) {
    TESSERA_TRY(items, interpreter.iterate(input));
  }
  Arguments rest = arguments;
  if (rest.positional.empty()) {
    const Value path = rest.take_keyword("attribute");
    const Value fallback = rest.take_keyword("default");
    if (path.is_undefined()) return fail(ErrorCode::kBadData, "map requires a filter argument");
    if (!rest.keywords.empty())
      return fail(ErrorCode::kBadData, "map: unexpected keyword argument '{}'", rest.keywords[0].first);
    for (Value& item : items) {
      TESSERA_TRY(item, attribute_path(interpreter, item, path));
      if (item.is_undefined() && !fallback.is_undefined() && !fallback.is(Kind::kNone)) item = fallback;
    }
  } else {
    TESSERA_TRY(const MarkedText name, interpreter.text_of(rest.positional[0]));
    rest.positional.erase(rest.positional.begin());
    for (Value& item : items) {
      TESSERA_TRY(item, apply_filter(interpreter, name.bytes(), item, rest));
    }
  }
  return interpreter.make_list(std::move(items), SequenceKind::kIterator);
}

enum class Keep : uint8_t { kMatching, kOthers };
enum class By : uint8_t { kItem, kAttribute };

template <Keep keep, By by>
V select(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  std::vector<Value> items;
  if (truth(input)) {
    TESSERA_TRY(items, interpreter.iterate(input));
  }
  Arguments rest = arguments;
  Value path;
  if (by == By::kAttribute) {
    if (rest.positional.empty()) return fail(ErrorCode::kBadData, "missing parameter for attribute name");
    path = rest.positional[0];
    rest.positional.erase(rest.positional.begin());
  }
  std::string test;
  if (!rest.positional.empty()) {
    TESSERA_TRY(const MarkedText name, interpreter.text_of(rest.positional[0]));
    test = name.bytes();
    rest.positional.erase(rest.positional.begin());
  }
  std::vector<Value> kept;
  for (Value& item : items) {
    Value subject = item;
    if (by == By::kAttribute) {
      TESSERA_TRY(subject, attribute_path(interpreter, item, path));
    }
    bool matches = truth(subject);
    if (!test.empty()) {
      TESSERA_TRY(matches, apply_test(interpreter, test, subject, rest));
    }
    if (matches == (keep == Keep::kMatching)) kept.push_back(std::move(item));
  }
  return interpreter.make_list(std::move(kept), SequenceKind::kIterator);
}

// What sorting, grouping and comparing look at: the value behind the path, letters folded unless asked not to.
Result<Value> sort_key(Interpreter& interpreter, const Value& item, const Value* path, bool case_sensitive) {
  Value key = item;
  if (path != nullptr && !path->is(Kind::kNone)) {
    TESSERA_TRY(key, attribute_path(interpreter, item, *path));
  }
  if (!case_sensitive && key.is(Kind::kText))
    return interpreter.make_text(change_case(key.as_text(), LetterCase::kLower));
  return key;
}

struct Keyed {
  std::vector<Value> keys;
  Value item;
};

Status sort_keyed(Interpreter& interpreter, std::vector<Keyed>& rows, bool reversed) {
  std::optional<Error> error;
  TESSERA_TRY_STATUS(interpreter.budget().spend_steps(rows.size() * 24));
  // Python's reverse keeps the order of equal elements.
  std::stable_sort(rows.begin(), rows.end(), [&](const Keyed& a, const Keyed& b) {
    for (size_t i = 0; i < a.keys.size() && !error; ++i) {
      const Result<int> order = compare(a.keys[i], b.keys[i], "<", interpreter.budget());
      if (!order) {
        error = order.error();
        return false;
      }
      if (*order != 0) return reversed ? *order > 0 : *order < 0;
    }
    return false;
  });
  if (error) return Failure(*error);
  return {};
}

V sort(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  TESSERA_TRY(const BoundArguments bound,
              BoundArguments::bind(arguments, {"reverse", "case_sensitive", "attribute"}, "sort"));
  TESSERA_TRY(const std::vector<Value> items, interpreter.iterate(input));
  std::vector<Value> paths;
  if (bound.present(2) && bound[2].is(Kind::kText)) {
    const std::string& text = bound[2].bytes();
    for (size_t start = 0; start <= text.size();) {
      const size_t comma = std::min(text.find(',', start), text.size());
      paths.push_back(Value::text(text.substr(start, comma - start)));
      start = comma + 1;
    }
  } else {
    paths.push_back(bound.present(2) ? bound[2] : Value::none());
  }
  std::vector<Keyed> rows;
  for (const Value& item : items) {
    Keyed row{{}, item};
    for (const Value& path : paths) {
      TESSERA_TRY(Value key, sort_key(interpreter, item, &path, bound.flag(1, false)));
      row.keys.push_back(std::move(key));
    }
    rows.push_back(std::move(row));
  }
  TESSERA_TRY_STATUS(sort_keyed(interpreter, rows, bound.flag(0, false)));
  std::vector<Value> out;
  for (Keyed& row : rows) out.push_back(std::move(row.item));
  return interpreter.make_list(std::move(out));
}

V dictsort(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  TESSERA_TRY(const BoundArguments bound,
              BoundArguments::bind(arguments, {"case_sensitive", "by", "reverse"}, "dictsort"));
  TESSERA_TRY(const MarkedText by, bound.text(1, "key"));
  if (by.bytes() != "key" && by.bytes() != "value")
    return fail(ErrorCode::kBadData, "dictsort: you can only sort by either \"key\" or \"value\"");
  if (!input.is(Kind::kDict)) return fail(ErrorCode::kBadData, "dictsort: expected a dict");
  std::vector<Keyed> rows;
  for (const auto& [key, value] : input.as_dict().items) {
    TESSERA_TRY(Value order,
                sort_key(interpreter, by.bytes() == "key" ? key : value, nullptr, bound.flag(0, false)));
    TESSERA_TRY(Value pair, interpreter.make_list({key, value}, SequenceKind::kTuple));
    rows.push_back({{std::move(order)}, std::move(pair)});
  }
  TESSERA_TRY_STATUS(sort_keyed(interpreter, rows, bound.flag(2, false)));
  std::vector<Value> out;
  for (Keyed& row : rows) out.push_back(std::move(row.item));
  return interpreter.make_list(std::move(out));
}

V groupby(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  TESSERA_TRY(const BoundArguments bound,
              BoundArguments::bind(arguments, {"attribute", "default", "case_sensitive"}, "groupby"));
  TESSERA_TRY(const std::vector<Value> items, interpreter.iterate(input));
  const auto key_of = [&](const Value& item, bool case_sensitive) -> Result<Value> {
    TESSERA_TRY(Value key, attribute_path(interpreter, item, bound[0]));
    if (key.is_undefined() && bound.present(1)) key = bound[1];
    return sort_key(interpreter, key, nullptr, case_sensitive);
  };
  std::vector<Keyed> rows;
  for (const Value& item : items) {
    TESSERA_TRY(Value key, key_of(item, bound.flag(2, false)));
    rows.push_back({{std::move(key)}, item});
  }
  TESSERA_TRY_STATUS(sort_keyed(interpreter, rows, false));
  std::vector<Value> out;
  for (size_t i = 0; i < rows.size();) {
    std::vector<Value> members;
    size_t end = i;
    for (; end < rows.size(); ++end) {
      TESSERA_TRY(const bool same, equal(rows[i].keys[0], rows[end].keys[0], interpreter.budget()));
      if (!same) break;
      members.push_back(rows[end].item);
    }
    TESSERA_TRY(Value key, key_of(rows[i].item, true));
    TESSERA_TRY(Value group, interpreter.make_list(std::move(members)));
    TESSERA_TRY(Value pair, interpreter.make_list({std::move(key), std::move(group)}, SequenceKind::kTuple));
    out.push_back(std::move(pair));
    i = end;
  }
  return interpreter.make_list(std::move(out));
}

V unique(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  TESSERA_TRY(const BoundArguments bound,
              BoundArguments::bind(arguments, {"case_sensitive", "attribute"}, "unique"));
  TESSERA_TRY(const std::vector<Value> items, interpreter.iterate(input));
  Dict seen;
  std::vector<Value> out;
  for (const Value& item : items) {
    TESSERA_TRY(Value key,
                sort_key(interpreter, item, bound.present(1) ? &bound[1] : nullptr, bound.flag(0, false)));
    if (!is_hashable(key)) return fail(ErrorCode::kBadData, "unhashable type: '{}'", type_name(key));
    TESSERA_TRY_STATUS(interpreter.budget().spend_steps(key.is(Kind::kText) ? 1 : 1 + out.size()));
    if (seen.find(key) != nullptr) continue;
    seen.set(std::move(key), Value::none());
    out.push_back(item);
  }
  return interpreter.make_list(std::move(out), SequenceKind::kIterator);
}

template <int sign>
V extreme(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  TESSERA_TRY(const BoundArguments bound,
              BoundArguments::bind(arguments, {"case_sensitive", "attribute"}, "min or max"));
  TESSERA_TRY(const std::vector<Value> items, interpreter.iterate(input));
  if (items.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  const Value* path = bound.present(1) ? &bound[1] : nullptr;
  Value best = items[0];
  TESSERA_TRY(Value best_key, sort_key(interpreter, best, path, bound.flag(0, false)));
  for (size_t i = 1; i < items.size(); ++i) {
    TESSERA_TRY(Value key, sort_key(interpreter, items[i], path, bound.flag(0, false)));
    TESSERA_TRY(const int order, compare(key, best_key, sign < 0 ? "<" : ">", interpreter.budget()));
    if (order * sign <= 0) continue;
    best = items[i];
    best_key = std::move(key);
  }
  return best;
}

V sum(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {"attribute", "start"}, "sum"));
  TESSERA_TRY(const std::vector<Value> items, interpreter.iterate(input));
  Value total = bound.present(1) ? bound[1] : Value::integer(0);
  if (total.is(Kind::kText)) return fail(ErrorCode::kBadData, "sum() can't sum strings");
  for (const Value& item : items) {
    Value value = item;
    if (bound.present(0) && !bound[0].is(Kind::kNone)) {
      TESSERA_TRY(value, attribute_path(interpreter, item, bound[0]));
    }
    TESSERA_TRY(total, interpreter.binary("+", total, value));
  }
  return total;
}

V batch(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  TESSERA_TRY(const BoundArguments bound,
              BoundArguments::bind(arguments, {"linecount", "fill_with"}, "batch"));
  TESSERA_TRY(const std::vector<Value> items, interpreter.iterate(input));
  TESSERA_TRY(const int64_t size, bound.integer(0, 0));
  if (size <= 0) return fail(ErrorCode::kBadData, "batch: expected a positive size");
  std::vector<Value> out;
  for (size_t i = 0; i < items.size();) {
    const size_t end = std::min(items.size(), i + static_cast<size_t>(size));
    std::vector<Value> row(items.begin() + static_cast<ptrdiff_t>(i),
                           items.begin() + static_cast<ptrdiff_t>(end));
    if (bound.present(1) && !bound[1].is(Kind::kNone)) {
      TESSERA_TRY_STATUS(interpreter.budget().spend_bytes(static_cast<uint64_t>(size) * sizeof(Value)));
      row.resize(static_cast<size_t>(size), bound[1]);
    }
    TESSERA_TRY(Value value, interpreter.make_list(std::move(row)));
    out.push_back(std::move(value));
    i = end;
  }
  return interpreter.make_list(std::move(out), SequenceKind::kIterator);
}

V slice(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  TESSERA_TRY(const BoundArguments bound, BoundArguments::bind(arguments, {"slices", "fill_with"}, "slice"));
  TESSERA_TRY(const std::vector<Value> items, interpreter.iterate(input));
  TESSERA_TRY(const int64_t slices, bound.integer(0, 0));
  if (slices <= 0) return fail(ErrorCode::kBadData, "slice: expected a positive number of slices");
  TESSERA_TRY_STATUS(interpreter.budget().spend_bytes(static_cast<uint64_t>(slices) * 128));
  const size_t count = static_cast<size_t>(slices);
  const size_t each = items.size() / count;
  const size_t longer = items.size() % count;
  std::vector<Value> out;
  size_t start = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t end = start + each + (i < longer ? 1 : 0);
    std::vector<Value> row(items.begin() + static_cast<ptrdiff_t>(start),
                           items.begin() + static_cast<ptrdiff_t>(end));
    if (bound.present(1) && !bound[1].is(Kind::kNone) && i >= longer) row.push_back(bound[1]);
    TESSERA_TRY(Value value, interpreter.make_list(std::move(row)));
    out.push_back(std::move(value));
    start = end;
  }
  return interpreter.make_list(std::move(out), SequenceKind::kIterator);
}

constexpr Filter kFilters[] = {
    {"attr", attr},
    {"batch", batch},
    {"count", length_filter},
    {"d", default_filter},
    {"default", default_filter},
    {"dictsort", dictsort},
    {"first", first},
    {"groupby", groupby},
    {"items", items_filter},
    {"join", join},
    {"last", last},
    {"length", length_filter},
    {"list", list},
    {"map", map},
    {"max", extreme<1>},
    {"min", extreme<-1>},
    {"reject", select<Keep::kOthers, By::kItem>},
    {"rejectattr", select<Keep::kOthers, By::kAttribute>},
    {"reverse", reverse},
    {"select", select<Keep::kMatching, By::kItem>},
    {"selectattr", select<Keep::kMatching, By::kAttribute>},
    {"slice", slice},
    {"sort", sort},
    {"sum", sum},
    {"unique", unique},
};

}  // namespace

const Filter* find_sequence_filter(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kFilters), std::end(kFilters), [&](const Filter& f) { return f.name == name; });
  return found == std::end(kFilters) ? nullptr : found;
}

bool has_filter(std::string_view name) {
  return find_text_filter(name) != nullptr || find_sequence_filter(name) != nullptr;
}

Result<Value> apply_filter(Interpreter& interpreter, const std::string& name, const Value& input,
                           const Arguments& arguments) {
  const Filter* filter = find_text_filter(name);
  if (filter == nullptr) filter = find_sequence_filter(name);
  if (filter == nullptr) return fail(ErrorCode::kUnsupported, "the filter '{}' is not supported", name);
  return filter->run(interpreter, input, arguments);
}

Result<Value> attribute_path(Interpreter& interpreter, const Value& object, const Value& path) {
  if (!path.is(Kind::kText)) return interpreter.item(object, path);
  const std::string& text = path.bytes();
  Value value = object;
  for (size_t start = 0; start <= text.size();) {
    const size_t dot = std::min(text.find('.', start), text.size());
    const std::string part = text.substr(start, dot - start);
    const bool digits = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    const auto index = digits ? parse_python_integer(part, 10) : std::nullopt;
    TESSERA_TRY(value, interpreter.item(value, index ? Value::integer(*index) : Value::text(part)));
    start = dot + 1;
  }
  return value;
}

}  // namespace tessera::jinja
