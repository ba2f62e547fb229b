// See json.h. nlohmann/json is compiled in this file and in few others: it is slow to compile.
#include "base/json.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/mapped_file.h"

namespace tessera {
namespace {

// Deep nesting would overflow the stack of a recursive destructor or writer: counted before parsing.
bool too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxJsonDepth) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

// Finds where the parser stopped, for the message: the SAX interface reports the byte.
class ErrorPosition : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    position_ = position;
    return false;
  }
  [[nodiscard]] std::size_t position() const { return position_; }

 private:
  std::size_t position_ = 0;
};

// Writes the bare words as {"__float__": word}, so that one spelling is left; strings are copied untouched.
std::string without_bare_floats(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 64);
  bool in_string = false;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (in_string) {
      out += c;
      if (c == '\\' && i + 1 < text.size())
        out += text[++i];
      else if (c == '"')
        in_string = false;
      ++i;
      continue;
    }
    if (c == '"') in_string = true;
    bool replaced = false;
    for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
      if (text.substr(i, word.size()) == word) {
        out += R"({"__float__":")";
        out += word;
        out += "\"}";
        i += word.size();
        replaced = true;
        break;
      }
    }
    if (!replaced) {
      out += c;
      ++i;
    }
  }
  return out;
}

void resolve_float_objects(Json& value) {
  if (value.is_object() && value.size() == 1) {
    const auto it = value.find("__float__");
    if (it != value.end() && it->is_string()) {
      const auto& word = it->get_ref<const std::string&>();
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      if (word == "Infinity")
        value = kInfinity;
      else if (word == "-Infinity")
        value = -kInfinity;
      else if (word == "NaN")
        value = std::numeric_limits<double>::quiet_NaN();
      return;
    }
  }
  if (value.is_structured())
    for (auto& child : value) resolve_float_objects(child);
}

Failure wrong_type(std::string_view what, std::string_view key, const char* expected, const Json& found) {
  return fail(ErrorCode::kBadData, "{}: {}: expected {}, found {}", what, key, expected,
              json_type_name(found));
}

Result<const Json*> member(const Json& object, std::string_view key, std::string_view what) {
  const Json* found = json_find(object, key);
  if (found == nullptr) return fail(ErrorCode::kNotFound, "{}: {} is missing", what, key);
  return found;
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view what) {
  if (too_deep(text))
    return fail(ErrorCode::kBadData, "{}: nested deeper than {} levels", what, kMaxJsonDepth);
  Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!value.is_discarded()) return value;
  ErrorPosition handler;
  (void)Json::sax_parse(text, &handler);
  const std::string_view before = text.substr(0, handler.position());
  size_t line = 1;
  size_t column = 1;
  for (const char c : before) {
    if (c == '\n') {
      ++line;
      column = 1;
    } else {
      ++column;
    }
  }
  return fail(ErrorCode::kBadData, "{}: not valid JSON near line {}, column {}", what, line, column);
}

Result<Json> parse_python_json(std::string_view text, std::string_view what) {
  TESSERA_TRY(Json value, parse_json(without_bare_floats(text), what));
  resolve_float_objects(value);
  return value;
}

Result<Json> read_json_file(const std::string& path) {
  TESSERA_TRY(const std::string text, read_file(path));
  return parse_python_json(text, path);
}

const char* json_type_name(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "an array";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::boolean:
      return "a boolean";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return "an integer";
    case Json::value_t::number_float:
      return "a number";
    default:
      return "something else";
  }
}

std::string dump_json(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Result<std::string> json_string(const Json& object, std::string_view key, std::string_view what) {
  TESSERA_TRY(const Json* value, member(object, key, what));
  if (!value->is_string()) return wrong_type(what, key, "a string", *value);
  return value->get_ref<const std::string&>();
}

Result<int64_t> json_integer(const Json& object, std::string_view key, std::string_view what) {
  TESSERA_TRY(const Json* value, member(object, key, what));
  if (value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    return fail(ErrorCode::kBadData, "{}: {}: {} is too large", what, key, value->get<uint64_t>());
  if (value->is_number_integer()) return value->get<int64_t>();
  if (value->is_number_float()) {  // 4096.0 is what some writers make of 4096
    const double number = value->get<double>();
    if (std::nearbyint(number) == number && std::fabs(number) < 0x1p53) return static_cast<int64_t>(number);
  }
  return wrong_type(what, key, "an integer", *value);
}

Result<double> json_number(const Json& object, std::string_view key, std::string_view what) {
  TESSERA_TRY(const Json* value, member(object, key, what));
  if (!value->is_number()) return wrong_type(what, key, "a number", *value);
  return value->get<double>();
}

Result<bool> json_bool(const Json& object, std::string_view key, std::string_view what) {
  TESSERA_TRY(const Json* value, member(object, key, what));
  if (!value->is_boolean()) return wrong_type(what, key, "a boolean", *value);
  return value->get<bool>();
}

const Json* json_find(const Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(std::string(key));
  return it == object.end() ? nullptr : &*it;
}

}  // namespace tessera
