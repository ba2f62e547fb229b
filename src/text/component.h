// What the loaders of tokenizer.json components share: typed, checked access to one JSON object. Every member
// that a loader does not know is an error that names it, because an option that is not understood changes ids.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace tessera {

class ComponentReader {
 public:
  // `where` names the object in messages ("tokenizer.json: pre_tokenizer"); it and `object` must outlive this.
  ComponentReader(const Json& object, std::string_view where) : object_(object), where_(where) {}

  [[nodiscard]] const Json& object() const { return object_; }
  [[nodiscard]] std::string_view where() const { return where_; }

  // An error unless the object has no members besides "type" and the given ones.
  [[nodiscard]] Status only(std::initializer_list<std::string_view> members) const;

  [[nodiscard]] Result<std::string> text(std::string_view key) const;
  [[nodiscard]] Result<bool> flag(std::string_view key) const;
  [[nodiscard]] Result<int64_t> integer(std::string_view key) const;
  [[nodiscard]] Result<const Json*> array(std::string_view key) const;
  [[nodiscard]] Result<char32_t> character(std::string_view key) const;  // a string of one character

  // The default when the member is absent or null.
  [[nodiscard]] Result<bool> flag_or(std::string_view key, bool fallback) const;
  [[nodiscard]] Result<std::optional<std::string>> optional_text(std::string_view key) const;

  [[nodiscard]] Failure error(std::string_view message) const;

 private:
  const Json& object_;
  std::string_view where_;
};

// The "type" of a component. kBadData when `value` is no object or has no type.
[[nodiscard]] Result<std::string> component_type(const Json& value, std::string_view where);

// {"String": s} or {"Regex": r}: the pattern of Split and Replace.
struct TextPattern {
  std::string text;
  bool is_regex = false;
};
[[nodiscard]] Result<TextPattern> read_pattern(const ComponentReader& reader, std::string_view key);

}  // namespace tessera
