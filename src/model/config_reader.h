// ConfigReader: how an architecture reads its Config. Errors are sticky: the first one is kept, reads go on
// with harmless values, and finish() returns it, so that an architecture's file stays a plain list of facts.
// Every key read is remembered; finish() refuses significant keys that were not read and are not neutral, and
// collects the unknown ones.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/config.h"
#include "model/norm.h"

namespace tessera {

class ConfigReader {
 public:
  // With the checkpoint, so that the tensor list can answer what the config does not say.
  explicit ConfigReader(const Config& config, const Checkpoint* checkpoint = nullptr)
      : config_(config), checkpoint_(checkpoint) {}

  [[nodiscard]] const Config& config() const { return config_; }
  [[nodiscard]] bool is_gguf() const { return config_.source() == ConfigSource::kGguf; }
  [[nodiscard]] bool has(std::string_view key);  // present and not null
  // The checkpoint holds a tensor of exactly this name; false where only a config is read.
  [[nodiscard]] bool has_tensor(std::string_view name) const;
  // The published default of the config class for a size that must otherwise be given: published configs
  // leave out what equals it. (GGUF files never do.)
  void fall_back(std::initializer_list<std::pair<std::string_view, int64_t>> sizes);

  // A list that has one number per layer is, from here on, its entry for this layer; -1: such a list must hold
  // one number throughout.
  void at_layer(int64_t layer) { layer_ = layer; }

  // A positive integer below 2^31. Reads after an error return 1, so that they divide.
  int64_t size(std::string_view key);
  int64_t size_or(std::string_view key, int64_t fallback);
  // An integer >= 0 (0 is allowed: "no window"); null counts as absent.
  int64_t count_or(std::string_view key, int64_t fallback);
  // The same, where an explicit null means 0 ("sliding_window": null) and only a missing key the class's
  // default.
  int64_t nullable_count_or(std::string_view key, int64_t fallback);
  // A finite number.
  double number(std::string_view key);
  double number_or(std::string_view key, double fallback);
  // The same, where an explicit null means 0 ("softcapping": null) and only a missing key the class's default.
  double nullable_number_or(std::string_view key, double fallback);
  bool flag_or(std::string_view key, bool fallback);
  std::string text_or(std::string_view key, std::string_view fallback);
  std::vector<std::string> texts(std::string_view key);  // empty when absent
  std::vector<double> numbers(
      std::string_view key);  // a list, or one number as a list of one; empty when absent
  std::vector<int32_t> ids(std::string_view key);  // token ids: one or a list, null entries dropped

  // true: required, false: absent; key not there: `fallback`, or if-present in a GGUF file (which does not
  // say).
  Presence presence_or(std::string_view key, bool fallback);

  template <class E>
  E choice(std::string_view key, std::string_view fallback,
           std::initializer_list<std::pair<std::string_view, E>> allowed) {
    const std::string value = text_or(key, fallback);
    for (const auto& [name, result] : allowed)
      if (name == value) return result;
    std::string names;
    for (const auto& [name, result] : allowed) {
      if (!names.empty()) names += ", ";
      names += name;
    }
    refuse(key, value, names);
    return allowed.begin()->second;
  }

  // "file: key: expected one of ..., found ..." as the sticky error.
  void refuse(std::string_view key, std::string_view found, std::string_view expected);
  // refuse() unless the condition holds.
  void require(bool condition, std::string_view key, std::string_view expected);
  [[nodiscard]] bool failed() const { return error_.has_value(); }

  // The raw value; nullptr when absent or null. Counts as read.
  const Json* raw(std::string_view key);
  // A reader's own sub-object (rope_scaling): marks the key read and reads inside with the same rules.
  [[nodiscard]] const Json* object(std::string_view key);
  double number_in(const Json& object, std::string_view where, std::string_view key,
                   std::optional<double> fallback);

  // Defaults that were taken because the file does not say, "key = value".
  [[nodiscard]] const std::vector<std::string>& defaults() const { return defaults_; }

  // Those of them that are sizes: what a wrong shape may come from.
  [[nodiscard]] const std::vector<std::string>& default_sizes() const { return default_sizes_; }

  // The sticky error, or the refusal of an unread significant key; otherwise the unknown keys (for one
  // warning).
  [[nodiscard]] Result<std::vector<std::string>> finish();

 private:
  void keep(Error error);
  template <class T>
  void note_default(std::string_view key, const T& value) {
    std::string text = fmt::format("{} = {}", config_.original_name(key), value);
    if (std::find(defaults_.begin(), defaults_.end(), text) == defaults_.end())
      defaults_.push_back(std::move(text));
  }
  const Config& config_;
  const Checkpoint* checkpoint_;
  std::map<std::string, int64_t, std::less<>> fallbacks_;
  std::set<std::string, std::less<>> read_;
  std::vector<std::string> defaults_;
  std::vector<std::string> default_sizes_;
  std::optional<Error> error_;
  int64_t layer_ = -1;
};

}  // namespace tessera
