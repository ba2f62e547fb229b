// The filters of Jinja 3.1 as transformers has them (tojson its own).
#pragma once

#include <string_view>

#include "base/result.h"
#include "text/jinja/interpreter.h"

namespace tessera::jinja {

[[nodiscard]] bool has_filter(std::string_view name);
[[nodiscard]] Result<Value> apply_filter(Interpreter& interpreter, const std::string& name,
                                         const Value& input, const Arguments& arguments);

// A row of a table of filters.
struct Filter {
  std::string_view name;
  Result<Value> (*run)(Interpreter& interpreter, const Value& input, const Arguments& arguments);
};
[[nodiscard]] const Filter* find_text_filter(std::string_view name);      // text_filters.cpp
[[nodiscard]] const Filter* find_sequence_filter(std::string_view name);  // sequence_filters.cpp

// The value behind a path such as "function.name" or 0, as the parameter attribute of filters has it.
[[nodiscard]] Result<Value> attribute_path(Interpreter& interpreter, const Value& object, const Value& path);

// json.dumps(value, ensure_ascii, indent, separators, sort_keys).
[[nodiscard]] Result<Value> filter_tojson(Interpreter& interpreter, const Value& input,
                                          const Arguments& arguments);

}  // namespace tessera::jinja
