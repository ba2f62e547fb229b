// See component.h.
#include "text/component.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "text/unicode.h"

namespace tessera {

Status ComponentReader::only(std::initializer_list<std::string_view> members) const {
  for (const auto& item : object_.items()) {
    const std::string& key = item.key();
    if (key != "type" && std::find(members.begin(), members.end(), key) == members.end())
      return fail(ErrorCode::kUnsupported, "{}: unknown option \"{}\"", where_, key);
  }
  return {};
}

Result<std::string> ComponentReader::text(std::string_view key) const {
  return json_string(object_, key, where_);
}
Result<bool> ComponentReader::flag(std::string_view key) const {
  return json_bool(object_, key, where_);
}
Result<int64_t> ComponentReader::integer(std::string_view key) const {
  return json_integer(object_, key, where_);
}

Result<const Json*> ComponentReader::array(std::string_view key) const {
  const Json* found = json_find(object_, key);
  if (found == nullptr) return fail(ErrorCode::kNotFound, "{}: {} is missing", where_, key);
  if (!found->is_array())
    return fail(ErrorCode::kBadData, "{}: {}: expected array, found {}", where_, key, json_type_name(*found));
  return found;
}

Result<char32_t> ComponentReader::character(std::string_view key) const {
  TESSERA_TRY(const std::string value, text(key));
  if (unicode::count_characters(value) != 1)
    return fail(ErrorCode::kBadData, "{}: {}: expected one character, found \"{}\"", where_, key, value);
  return unicode::decode(value, 0).code;
}

Result<bool> ComponentReader::flag_or(std::string_view key, bool fallback) const {
  const Json* found = json_find(object_, key);
  if (found == nullptr || found->is_null()) return fallback;
  return flag(key);
}

Result<std::optional<std::string>> ComponentReader::optional_text(std::string_view key) const {
  const Json* found = json_find(object_, key);
  if (found == nullptr || found->is_null()) return std::optional<std::string>();
  TESSERA_TRY(std::string value, text(key));
  return std::optional<std::string>(std::move(value));
}

Failure ComponentReader::error(std::string_view message) const {
  return fail(ErrorCode::kBadData, "{}: {}", where_, message);
}

Result<std::string> component_type(const Json& value, std::string_view where) {
  if (!value.is_object())
    return fail(ErrorCode::kBadData, "{}: expected object, found {}", where, json_type_name(value));
  return json_string(value, "type", where);
}

Result<TextPattern> read_pattern(const ComponentReader& reader, std::string_view key) {
  const Json* found = json_find(reader.object(), key);
  if (found == nullptr || !found->is_object() || found->size() != 1)
    return reader.error(fmt::format("{}: expected {{\"String\": ...}} or {{\"Regex\": ...}}", key));
  const auto first = found->begin();
  if ((first.key() != "String" && first.key() != "Regex") || !first->is_string())
    return reader.error(fmt::format("{}: expected {{\"String\": ...}} or {{\"Regex\": ...}}", key));
  return TextPattern{first->get<std::string>(), first.key() == "Regex"};
}

}  // namespace tessera
