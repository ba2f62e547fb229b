// MLX: X.weight holds 32-bit words of codes, X.scales (and X.biases) what a group of columns needs. The config gives bits, group
// and mode for the whole checkpoint, and under a module's path others for that module, or false: not quantised. Modes: affine,
// and the block-scaled floats mxfp4, mxfp8 and nvfp4, whose words hold E2M1 or E4M3 codes and whose scales are single bytes.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "checkpoint/companions.h"
#include "checkpoint/printable.h"
#include "formats/format_info.h"

namespace tessera {
namespace {

struct Setting {
  std::string mode = "affine";
  int64_t bits = 4;
  int64_t group = 64;
  bool quantised = true;
};

Status read_setting(const Json& json, const std::string& where, Setting& setting) {
  if (json_find(json, "mode") != nullptr) {
    TESSERA_TRY(setting.mode, json_string(json, "mode", where));
  }
  // What the modes mean where the config does not repeat it.
  if (setting.mode == "mxfp4" || setting.mode == "mxfp8") setting.group = 32;
  if (setting.mode == "nvfp4") setting.group = 16;
  if (setting.mode == "mxfp8") setting.bits = 8;
  if (json_find(json, "bits") != nullptr) {
    TESSERA_TRY(setting.bits, json_integer(json, "bits", where));
  }
  if (json_find(json, "group_size") != nullptr) {
    TESSERA_TRY(setting.group, json_integer(json, "group_size", where));
  }
  const int64_t bits = setting.bits;
  const int64_t group = setting.group;
  if (setting.mode == "affine") {
    if (bits < 2 || bits > 8 || bits == 7)
      return fail(ErrorCode::kUnsupported, "{}: bits: expected 2, 3, 4, 5, 6 or 8, found {}", where, bits);
    if (group != 32 && group != 64 && group != 128)
      return fail(ErrorCode::kUnsupported, "{}: group_size: expected 32, 64 or 128, found {}", where, group);
    return {};
  }
  const bool known = setting.mode == "mxfp4" || setting.mode == "mxfp8" || setting.mode == "nvfp4";
  if (!known)
    return fail(ErrorCode::kUnsupported, "{}: mode: expected affine, mxfp4, mxfp8 or nvfp4, found {}", where,
                printable(setting.mode));
  const int64_t right_bits = setting.mode == "mxfp8" ? 8 : 4;
  const int64_t right_group = setting.mode == "nvfp4" ? 16 : 32;
  if (bits != right_bits || group != right_group)
    return fail(ErrorCode::kUnsupported, "{}: mode {}: expected bits {} and group_size {}, found {} and {}",
                where, setting.mode, right_bits, right_group, bits, group);
  return {};
}

// Modules are named with or without the prefixes that wrap a text model.
std::string_view without_prefix(std::string_view name) {
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view prefix : {"language_model.", "model."}) {
      if (!name.starts_with(prefix)) continue;
      name.remove_prefix(prefix.size());
      again = true;
    }
  }
  return name;
}

class Mlx {
 public:
  Mlx(CompanionTable& table, const std::string& path) : table_(table), path_(path) {}

  Status fold(const Json& config) {
    Setting common;
    TESSERA_TRY_STATUS(read_setting(config, path_ + ": quantization", common));
    for (const auto& [key, value] : config.items()) {
      if (value.is_object()) {
        Setting setting = common;
        TESSERA_TRY_STATUS(read_setting(value, path_ + ": quantization: " + printable(key), setting));
        overrides_.insert_or_assign(key, setting);
      } else if (value.is_boolean()) {
        Setting setting = common;
        setting.quantised = value.get<bool>();
        overrides_.insert_or_assign(key, setting);
      }
    }
    for (const auto& [key, setting] : overrides_) short_names_.emplace(without_prefix(key), &setting);
    for (const std::string& stem : table_.stems(".scales")) {
      TensorEntry* weight = table_.find(stem + ".weight");
      TensorEntry* scales = table_.find(stem + ".scales");
      if (weight == nullptr || scales == nullptr || weight->format.is_grouped()) continue;
      TESSERA_TRY_STATUS(fold_one(stem, *weight, *scales, setting_of(stem, common)));
    }
    for (const std::string& stem : table_.stems(".weight")) {
      const TensorEntry* weight = table_.find(stem + ".weight");
      if (weight->format == Format::plain(DType::kU32))
        return table_.bad(*weight, fmt::format("a tensor {}.scales beside it", printable(stem)), "none");
    }
    return {};
  }

 private:
  const Setting& setting_of(const std::string& stem, const Setting& common) const {
    if (const auto it = overrides_.find(stem); it != overrides_.end()) return it->second;
    const auto it = short_names_.find(without_prefix(stem));
    return it != short_names_.end() ? *it->second : common;
  }

  Status fold_one(const std::string& stem, TensorEntry& weight, TensorEntry& scales, const Setting& setting) {
    if (!setting.quantised)
      return table_.bad(scales, fmt::format("none, as quantization.{} is false", printable(stem)), "it");
    TESSERA_TRY_STATUS(table_.check_element(weight, {DType::kU32}));
    const int64_t words = weight.shape.columns();
    const int64_t columns = words * 32 / setting.bits;
    if (weight.shape.rank() < 2 || words == 0 || words * 32 % setting.bits != 0)
      return table_.bad(weight, fmt::format("rows of whole {}-bit codes in 32-bit words", setting.bits),
                        "shape " + weight.shape.to_string());
    if (columns % setting.group != 0)
      return table_.bad(
          weight, fmt::format("rows of a multiple of {} codes", setting.group),
          fmt::format("{} words of 32 bits: {} codes of {} bits", words, columns, setting.bits));
    TESSERA_TRY_STATUS(table_.check_shape(scales, with_columns(weight.shape, columns / setting.group)));
    Format format;
    TensorEntry* biases = table_.find(stem + ".biases");
    if (setting.mode == "affine") {
      TESSERA_TRY_STATUS(table_.check_element(scales, {DType::kBF16, DType::kF16, DType::kF32}));
      TESSERA_TRY(biases, table_.require(stem + ".biases", weight));
      TESSERA_TRY_STATUS(table_.check_shape(*biases, scales.shape));
      TESSERA_TRY_STATUS(table_.check_element(*biases, {scales.format.element}));
      format = Format::grouped(FormatKind::kMlxAffine, scales.format.element, static_cast<int>(setting.bits),
                               setting.group);
    } else {
      TESSERA_TRY_STATUS(table_.check_element(scales, {DType::kU8}));
      if (biases != nullptr) return table_.bad(*biases, "none in mode " + setting.mode, "it");
      const bool float8 = setting.mode == "mxfp8";
      format = Format::grouped(float8 ? FormatKind::kFloat8Group : FormatKind::kFloat4Group,
                               setting.mode == "nvfp4" ? DType::kF8E4M3 : DType::kF8E8M0,
                               static_cast<int>(setting.bits), setting.group);
    }
    weight.shape = with_columns(weight.shape, columns);
    weight.format = format;
    const int64_t stride = columns / setting.group * dtype_size(format.element);
    weight.companions[0] = {scales.bytes.data(), stride};
    table_.take(scales);
    if (biases != nullptr) {
      weight.companions[1] = {biases->bytes.data(), stride};
      table_.take(*biases);
    }
    return {};
  }

  CompanionTable& table_;
  const std::string& path_;
  std::map<std::string, Setting, std::less<>> overrides_;
  std::map<std::string_view, const Setting*> short_names_;
};

}  // namespace

Status fold_mlx(CompanionTable& table, const Json& config, const std::string& path) {
  return Mlx(table, path).fold(config);
}

}  // namespace tessera
