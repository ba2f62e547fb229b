#include "model/config_reader.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "model/config_keys.h"

namespace tessera {
namespace {

constexpr int64_t kLargestSize = int64_t{1} << 31;

// null, false, 0, 1, "", [], {} change nothing wherever a key may stand; a row of the table adds its own.
bool is_neutral(const Json& value, const ConfigKey& key) {
  if (value.is_null() || (value.is_boolean() && !value.get<bool>()) || value.empty()) return true;
  if (value.is_string() && value.get_ref<const std::string&>().empty()) return true;
  if (value.is_number() && (value.get<double>() == 0.0 || value.get<double>() == 1.0)) return true;
  if (value.is_object() && key.name.substr(0, 5) == "rope_") {  // a scaling that scales nothing
    const Json* type = json_find(value, "rope_type");
    if (type == nullptr) type = json_find(value, "type");
    if (type != nullptr && type->is_string() && type->get_ref<const std::string&>() == "default") return true;
  }
  const std::string text = dump_json(value);
  std::string_view words = key.neutral;
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == text) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

std::string shown(const Json& value) {
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    const auto number = value.get<double>();
    return std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity";
  }
  std::string text = dump_json(value);
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  return text;
}

}  // namespace

void ConfigReader::keep(Error error) {
  if (!error_) error_ = std::move(error);
}

const Json* ConfigReader::raw(std::string_view key) {
  CHECK(find_config_key(key) != nullptr && find_config_key(key)->name == key,
        "config key {} is not in the table", key);
  read_.emplace(key);
  const Json* value = json_find(config_.values(), key);
  return value != nullptr && !value->is_null() ? value : nullptr;
}

bool ConfigReader::has(std::string_view key) {
  return raw(key) != nullptr;
}

bool ConfigReader::has_tensor(std::string_view name) const {
  return checkpoint_ != nullptr && checkpoint_->find(name) != nullptr;
}

void ConfigReader::fall_back(std::initializer_list<std::pair<std::string_view, int64_t>> sizes) {
  if (is_gguf()) return;
  for (const auto& [key, size] : sizes) fallbacks_.emplace(key, size);
}

void ConfigReader::refuse(std::string_view key, std::string_view found, std::string_view expected) {
  keep(Error{ErrorCode::kUnsupported, fmt::format("{}: {}: expected {}, found {}", config_.file(),
                                                  config_.original_name(key), expected, found)});
}

void ConfigReader::require(bool condition, std::string_view key, std::string_view expected) {
  if (condition) return;
  const Json* value = raw(key);
  refuse(key, value != nullptr ? shown(*value) : "nothing", expected);
}

int64_t ConfigReader::size(std::string_view key) {
  if (!has(key) && (!fallbacks_.contains(key) || config_.values().contains(key))) {
    keep(Error{ErrorCode::kBadData,
               fmt::format("{}: {} is missing", config_.file(), config_.original_name(key))});
    return 1;
  }
  return size_or(key, 1);
}

int64_t ConfigReader::size_or(std::string_view key, int64_t fallback) {
  const int64_t value = count_or(key, fallback);
  if (value < 1) {
    refuse(key, std::to_string(value), "a positive integer");
    return 1;
  }
  return value;
}

int64_t ConfigReader::count_or(std::string_view key, int64_t fallback) {
  const Json* value = raw(key);
  if (value == nullptr) {
    if (const auto it = fallbacks_.find(key); it != fallbacks_.end() && !config_.values().contains(key))
      fallback = it->second;
    const size_t noted = defaults_.size();
    note_default(key, fallback);
    if (fallback > 0 && defaults_.size() > noted) default_sizes_.push_back(defaults_.back());
    return fallback;
  }
  if (value->is_array() && layer_ >= 0) {
    if (static_cast<size_t>(layer_) >= value->size()) {
      refuse(key, shown(*value), fmt::format("an entry for layer {}", layer_));
      return fallback;
    }
    value = &(*value)[static_cast<size_t>(layer_)];
  }
  // A list of equal numbers (one per layer; 0: that layer has none) is that number.
  if (value->is_array() && !value->empty()) {
    const Json* only = &value->front();
    for (const Json& item : *value) {
      if (*only != 0 && item != 0 && item != *only) {
        refuse(key, shown(*value), "one number for all layers");
        return fallback;
      }
      if (*only == 0) only = &item;
    }
    value = only;
  }
  const Json holder = Json{{"v", *value}};
  const auto number = json_integer(holder, "v", "");
  if (!number || *number < 0 || *number >= kLargestSize) {
    refuse(key, shown(*value), "an integer from 0 to 2147483647");
    return fallback;
  }
  return *number;
}

int64_t ConfigReader::nullable_count_or(std::string_view key, int64_t fallback) {
  const Json* value = json_find(config_.values(), key);
  if (value != nullptr && value->is_null()) {
    (void)raw(key);
    return 0;
  }
  return count_or(key, is_gguf() ? 0 : fallback);
}

double ConfigReader::number(std::string_view key) {
  if (!has(key)) {
    keep(Error{ErrorCode::kBadData,
               fmt::format("{}: {} is missing", config_.file(), config_.original_name(key))});
    return 1.0;
  }
  return number_or(key, 1.0);
}

double ConfigReader::number_or(std::string_view key, double fallback) {
  const Json* value = raw(key);
  if (value == nullptr) {
    note_default(key, fallback);
    return fallback;
  }
  if (!value->is_number() || !std::isfinite(value->get<double>())) {
    refuse(key, shown(*value), "a finite number");
    return fallback;
  }
  return value->get<double>();
}

double ConfigReader::nullable_number_or(std::string_view key, double fallback) {
  const Json* value = json_find(config_.values(), key);
  if (value != nullptr && value->is_null()) {
    (void)raw(key);
    return 0.0;
  }
  return number_or(key, is_gguf() ? 0.0 : fallback);
}

bool ConfigReader::flag_or(std::string_view key, bool fallback) {
  const Json* value = raw(key);
  if (value == nullptr) {
    note_default(key, fallback);
    return fallback;
  }
  if (!value->is_boolean()) {
    refuse(key, shown(*value), "true or false");
    return fallback;
  }
  return value->get<bool>();
}

std::string ConfigReader::text_or(std::string_view key, std::string_view fallback) {
  const Json* value = raw(key);
  if (value == nullptr) {
    note_default(key, fallback);
    return std::string(fallback);
  }
  if (!value->is_string()) {
    refuse(key, shown(*value), "a string");
    return std::string(fallback);
  }
  return value->get<std::string>();
}

std::vector<std::string> ConfigReader::texts(std::string_view key) {
  const Json* value = raw(key);
  if (value == nullptr) return {};
  std::vector<std::string> result;
  if (value->is_array())
    for (const Json& item : *value)
      if (item.is_string()) result.push_back(item.get<std::string>());
  if (!value->is_array() || result.size() != value->size()) refuse(key, shown(*value), "a list of strings");
  return result;
}

std::vector<double> ConfigReader::numbers(std::string_view key) {
  const Json* value = raw(key);
  if (value == nullptr) return {};
  std::vector<double> result;
  const Json list = value->is_array() ? *value : Json::array({*value});
  for (const Json& item : list) {
    if (item.is_boolean())
      result.push_back(item.get<bool>() ? 1.0 : 0.0);
    else if (item.is_number() && std::isfinite(item.get<double>()))
      result.push_back(item.get<double>());
    else
      refuse(key, shown(*value), "a list of finite numbers");
  }
  return result;
}

std::vector<int32_t> ConfigReader::ids(std::string_view key) {
  const Json* value = raw(key);
  if (value == nullptr) return {};
  std::vector<int32_t> result;
  const Json list = value->is_array() ? *value : Json::array({*value});
  for (const Json& item : list) {
    if (item.is_null()) continue;
    const Json holder = Json{{"v", item}};
    const auto number = json_integer(holder, "v", "");
    if (number && *number == -1) continue;  // "none" in some files
    if (!number || *number < 0 || *number >= kLargestSize)
      refuse(key, shown(*value), "token ids");
    else
      result.push_back(static_cast<int32_t>(*number));
  }
  return result;
}

Presence ConfigReader::presence_or(std::string_view key, bool fallback) {
  if (raw(key) == nullptr && is_gguf()) return Presence::kIfPresent;
  return flag_or(key, fallback) ? Presence::kRequired : Presence::kAbsent;
}

const Json* ConfigReader::object(std::string_view key) {
  const Json* value = raw(key);
  if (value == nullptr) return nullptr;
  if (!value->is_object()) {
    refuse(key, shown(*value), "an object");
    return nullptr;
  }
  return value;
}

double ConfigReader::number_in(const Json& object, std::string_view where, std::string_view key,
                               std::optional<double> fallback) {
  const Json* value = json_find(object, key);
  const std::string name = fmt::format("{}: {}.{}", config_.file(), where, key);
  if (value == nullptr || value->is_null()) {
    if (!fallback) keep(Error{ErrorCode::kBadData, name + " is missing"});
    return fallback.value_or(1.0);
  }
  if (!value->is_number() || !std::isfinite(value->get<double>())) {
    keep(Error{ErrorCode::kBadData,
               fmt::format("{}: expected a finite number, found {}", name, shown(*value))});
    return fallback.value_or(1.0);
  }
  return value->get<double>();
}

Result<std::vector<std::string>> ConfigReader::finish() {
  if (error_) return Failure(*error_);
  std::vector<std::string> unknown;
  for (const auto& [key, value] : config_.values().items()) {
    if (read_.contains(key)) continue;
    const ConfigKey* known = find_config_key(key);
    if (known != nullptr) {
      if (!is_neutral(value, *known))
        return fail(ErrorCode::kUnsupported,
                    "{}: {} = {} is not understood for architecture {}: it would change the result",
                    config_.file(), config_.original_name(key), shown(value),
                    config_.architecture_names().front());
    } else if (!is_inert_key(key)) {
      unknown.push_back(key);
    }
  }
  return unknown;
}

}  // namespace tessera
