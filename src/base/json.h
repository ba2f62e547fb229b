// Reading JSON without exceptions. Parsing never throws; typed access goes through these helpers, which
// return an error naming the key, the expected and the found type. Python writes bare NaN and Infinity into
// config files: parse_python_json reads them.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tessera {

using Json = nlohmann::ordered_json;  // keeps the order of keys: templates and tools depend on it

// Parses one JSON document. `what` (a file name, usually) goes in front of the error, which holds line and
// column. At most kMaxJsonDepth levels of nesting.
[[nodiscard]] Result<Json> parse_json(std::string_view text, std::string_view what);

// The same, and the bare words NaN, Infinity and -Infinity as numbers (as Python's json.dump writes them),
// and
// {"__float__": "Infinity"} (as transformers writes them) as that number.
[[nodiscard]] Result<Json> parse_python_json(std::string_view text, std::string_view what);

[[nodiscard]] Result<Json> read_json_file(const std::string& path);

// "null", "boolean", "integer", "number", "string", "array", "object": for messages.
[[nodiscard]] const char* json_type_name(const Json& value);

// value.dump() with invalid UTF-8 replaced by U+FFFD instead of aborting; indent < 0 is one line.
[[nodiscard]] std::string dump_json(const Json& value, int indent = -1);

// The member `key` of an object; kNotFound if absent, kBadData if it has another type. `what` names the
// object for the message.
[[nodiscard]] Result<std::string> json_string(const Json& object, std::string_view key,
                                              std::string_view what);
[[nodiscard]] Result<int64_t> json_integer(const Json& object, std::string_view key, std::string_view what);
[[nodiscard]] Result<double> json_number(const Json& object, std::string_view key, std::string_view what);
[[nodiscard]] Result<bool> json_bool(const Json& object, std::string_view key, std::string_view what);

// The member `key`, or nullptr when the object has none (or value is no object).
[[nodiscard]] const Json* json_find(const Json& object, std::string_view key);

inline constexpr int kMaxJsonDepth = 200;

}  // namespace tessera
