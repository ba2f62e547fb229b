// The dimensions of published models, by name: what random models and plans are made from without a file.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/config.h"

namespace tessera {

struct Preset {
  std::string_view name;    // "qwen3-4b"
  std::string_view config;  // a config.json
};
[[nodiscard]] std::span<const Preset> presets();
[[nodiscard]] std::vector<std::string> preset_names();

// The config of a preset, or of a config.json at that path; an unknown name is an error that lists the presets.
[[nodiscard]] Result<Config> preset_config(const std::string& name_or_path);

}  // namespace tessera
