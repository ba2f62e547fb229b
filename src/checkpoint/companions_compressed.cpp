// compressed-tensors: the config lists groups of settings (bits, type, symmetric or not, group), the tensors show which one
// each matrix has.
//   integers   X.weight_packed [N, K * bits / 32] int32, codes along K from the lowest bits up, stored + 2^(bits - 1);
//              X.weight_scale [N, groups]; asymmetric: X.weight_zero_point [N * bits / 32, groups], packed along N; with an order
//              of activations X.weight_g_idx [K]; X.weight_shape [2]: N, K
//   int8       X.weight int8, X.weight_scale [N, 1] or one
//   float8     X.weight E4M3, X.weight_scale [N, 1], one, or per block
//   float4     X.weight_packed [N, K / 2] uint8, X.weight_scale [N, K / group]: E8M0 (uint8), or E4M3 with one
//              X.weight_global_scale for the matrix, by which it is divided
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/checked_math.h"
#include "base/json.h"
#include "checkpoint/companions.h"
#include "checkpoint/printable.h"
#include "formats/grouped.h"

namespace tessera {
namespace {

struct Setting {
  int64_t bits = 0;
  bool is_float = false;
  int64_t group = 0;  // 0: one scale per row or matrix
  int64_t block_rows = 0;
  int64_t block_columns = 0;
};

constexpr int64_t kLargestGroup = 65535;

Result<Setting> read_setting(const Json& weights, const std::string& where) {
  Setting setting;
  TESSERA_TRY(setting.bits, json_integer(weights, "num_bits", where));
  TESSERA_TRY(const std::string type, json_string(weights, "type", where));
  setting.is_float = type == "float";
  if (type != "int" && type != "float")
    return fail(ErrorCode::kUnsupported, "{}: type: expected int or float, found {}", where, printable(type));
  const bool known = setting.is_float ? setting.bits == 4 || setting.bits == 8
                                      : setting.bits == 2 || setting.bits == 4 || setting.bits == 8;
  if (!known)
    return fail(ErrorCode::kUnsupported, "{}: num_bits: expected {} for {}, found {}", where,
                setting.is_float ? "4 or 8" : "2, 4 or 8", type, setting.bits);
  if (const Json* group = json_find(weights, "group_size"); group != nullptr && !group->is_null()) {
    TESSERA_TRY(setting.group, json_integer(weights, "group_size", where));
    if (setting.group == -1) setting.group = 0;
    if (setting.group < 0 || setting.group > kLargestGroup || setting.group % 8 != 0)
      return fail(ErrorCode::kUnsupported, "{}: group_size: expected a multiple of 8 up to {}, found {}",
                  where, kLargestGroup, setting.group);
  }
  if (const Json* block = json_find(weights, "block_structure"); block != nullptr && !block->is_null()) {
    if (!block->is_array() || block->size() != 2 || !(*block)[0].is_number_integer() ||
        !(*block)[1].is_number_integer())
      return fail(ErrorCode::kBadData, "{}: block_structure: expected two numbers, found {}", where,
                  dump_json(*block));
    setting.block_rows = (*block)[0].get<int64_t>();
    setting.block_columns = (*block)[1].get<int64_t>();
    if (setting.block_rows < 1 || setting.block_columns < 1 || setting.block_rows > kLargestGroup ||
        setting.block_columns > kLargestGroup)
      return fail(ErrorCode::kBadData, "{}: block_structure: expected numbers from 1 to {}, found {}", where,
                  kLargestGroup, dump_json(*block));
  }
  return setting;
}

class Compressed {
 public:
  Compressed(CompanionTable& table, std::string where) : table_(table), where_(std::move(where)) {}

  Status fold(const Json& config) {
    TESSERA_TRY_STATUS(read_settings(config));
    for (const std::string& stem : table_.stems(".weight_packed")) {
      const TensorEntry& packed = *table_.find(stem + ".weight_packed");
      TESSERA_TRY_STATUS(table_.check_element(packed, {DType::kI32, DType::kU8}));
      if (packed.format.element == DType::kI32)
        TESSERA_TRY_STATUS(fold_integers(stem));
      else
        TESSERA_TRY_STATUS(fold_float4(stem));
    }
    for (const std::string& stem : table_.stems(".weight_scale")) {
      TensorEntry* weight = table_.find(stem + ".weight");
      TensorEntry& scale = *table_.find(stem + ".weight_scale");
      if (weight == nullptr) continue;
      if (weight->format == Format::plain(DType::kF8E4M3)) {
        const Setting* setting = find_setting(8, true);
        if (setting == nullptr) return not_declared(*weight, "8-bit floats");
        TESSERA_TRY_STATUS(
            fold_float8_scale(table_, *weight, scale, setting->block_rows, setting->block_columns));
      } else {
        TESSERA_TRY_STATUS(fold_int8(stem, *weight, scale));
      }
    }
    return {};
  }

 private:
  Status read_settings(const Json& config) {
    for (const char* key : {"transform_config", "sparsity_config"}) {
      const Json* other = json_find(config, key);
      if (other == nullptr || !other->is_object() || other->empty()) continue;
      const Json* format = json_find(*other, "format");
      if (format != nullptr && *format == "dense") continue;
      return fail(ErrorCode::kUnsupported, "{}: {}: expected none, found {}", where_, key, dump_json(*other));
    }
    const Json* groups = json_find(config, "config_groups");
    if (groups == nullptr || !groups->is_object())
      return fail(ErrorCode::kBadData, "{}: config_groups: expected an object, found {}", where_,
                  groups == nullptr ? "none" : json_type_name(*groups));
    for (const auto& [name, group] : groups->items()) {
      const Json* weights = json_find(group, "weights");
      if (weights == nullptr || !weights->is_object()) continue;
      TESSERA_TRY(const Setting setting,
                  read_setting(*weights, fmt::format("{}: {}: weights", where_, printable(name))));
      settings_.push_back(setting);
    }
    return {};
  }

  [[nodiscard]] const Setting* find_setting(int64_t bits, bool is_float) const {
    for (const Setting& setting : settings_)
      if (setting.bits == bits && setting.is_float == is_float) return &setting;
    return nullptr;
  }
  [[nodiscard]] Failure not_declared(const TensorEntry& entry, std::string_view what) const {
    return table_.bad(entry, "what config_groups declares", what);
  }

  // N and K of packed integers, and the setting that gives so many words.
  Result<const Setting*> integer_setting(const std::string& stem, const TensorEntry& packed,
                                         int64_t& columns) {
    TensorEntry* shape = table_.find(stem + ".weight_shape");
    columns = 0;
    if (shape != nullptr) {
      TESSERA_TRY_STATUS(table_.check_element(*shape, {DType::kI64, DType::kI32}));
      TESSERA_TRY_STATUS(table_.check_shape(*shape, Shape{2}));
      const bool wide = shape->format.element == DType::kI64;
      const int64_t rows = wide ? load<int64_t>(shape->bytes.data()) : load<int32_t>(shape->bytes.data());
      columns = wide ? load<int64_t>(shape->bytes.data() + 8) : load<int32_t>(shape->bytes.data() + 4);
      if (rows != packed.shape[0] || columns < 1 || columns > packed.shape[1] * 32)
        return table_.bad(packed, fmt::format("words for [{}, {}]", rows, columns), packed.shape.to_string());
      table_.take(*shape);
    }
    const Setting* found = nullptr;
    for (const Setting& setting : settings_) {
      if (setting.is_float) continue;
      const bool fits = shape == nullptr || ceil_divide(columns * setting.bits, 32) == packed.shape[1];
      if (!fits) continue;
      if (shape == nullptr && found != nullptr && found->bits != setting.bits)
        return table_.bad(packed, fmt::format("a tensor {}.weight_shape beside it", printable(stem)), "none");
      // Of two settings with as many bits, the one whose groups the scales have.
      const TensorEntry* scale = table_.find(stem + ".weight_scale");
      const int64_t width = shape == nullptr ? packed.shape[1] * 32 / setting.bits : columns;
      const int64_t expected = setting.group == 0 ? 1 : ceil_divide(width, setting.group);
      if (found == nullptr || (scale != nullptr && scale->shape.columns() == expected)) found = &setting;
    }
    if (found == nullptr)
      return not_declared(packed, fmt::format("integers in words of shape {}", packed.shape.to_string()));
    if (shape == nullptr) columns = packed.shape[1] * 32 / found->bits;
    return found;
  }

  Status fold_integers(const std::string& stem) {
    TensorEntry& packed = *table_.find(stem + ".weight_packed");
    if (packed.shape.rank() != 2 || packed.shape.elements() == 0)
      return table_.bad(packed, "a matrix", "shape " + packed.shape.to_string());
    int64_t columns = 0;
    TESSERA_TRY(const Setting* const setting, integer_setting(stem, packed, columns));
    const int64_t bits = setting->bits;
    if (columns * bits % 32 != 0)
      return table_.bad(packed, fmt::format("rows of a multiple of {} codes", 32 / bits),
                        fmt::format("{} codes", columns));
    TESSERA_TRY(TensorEntry* const scale, table_.require(stem + ".weight_scale", packed));
    TESSERA_TRY_STATUS(table_.check_element(*scale, {DType::kF16, DType::kBF16, DType::kF32}));
    const int64_t rows = packed.shape[0];
    const DType element = scale->format.element;
    if (setting->group != 0 && columns % setting->group != 0)
      return table_.bad(packed, fmt::format("rows of a multiple of {} codes (group_size)", setting->group),
                        fmt::format("{} codes", columns));
    const int64_t groups = setting->group == 0 ? 1 : columns / setting->group;
    const bool single = setting->group == 0 && scale->shape.elements() == 1;
    if (!single) TESSERA_TRY_STATUS(table_.check_shape(*scale, Shape{rows, groups}));
    const Plane scales{scale->bytes.data(), single ? 0 : groups * dtype_size(element)};
    TensorEntry* const zeros = table_.find(stem + ".weight_zero_point");
    TensorEntry* const list = table_.find(stem + ".weight_g_idx");
    std::vector<int> zero_values;
    if (zeros != nullptr) {
      TESSERA_TRY_STATUS(table_.check_element(*zeros, {DType::kI32}));
      TESSERA_TRY_STATUS(
          table_.check_shape(*zeros, Shape{ceil_divide(rows * bits, 32), single ? 1 : groups}));
      const int64_t per_word = 32 / bits;
      for (int64_t n = 0; n < rows; ++n)
        for (int64_t g = 0; g < groups; ++g) {
          const auto word = load<uint32_t>(zeros->bytes.data() + (n / per_word * groups + g) * 4);
          zero_values.push_back(static_cast<int>(word >> (n % per_word * bits) & ((1u << bits) - 1)));
        }
    }
    const int middle = 1 << (bits - 1);
    const int width = static_cast<int>(bits);
    if (list != nullptr) {
      TESSERA_TRY_STATUS(table_.check_element(*list, {DType::kI32}));
      TESSERA_TRY_STATUS(table_.check_shape(*list, Shape{columns}));
      for (int64_t k = 0; k < columns; ++k)
        if (const auto group = load<int32_t>(list->bytes.data() + 4 * k); group < 0 || group >= groups)
          return table_.bad(*list, fmt::format("groups from 0 to {}", groups - 1),
                            fmt::format("{} at input {}", group, k));
      std::byte* pairs = table_.allocate(static_cast<uint64_t>(rows * groups) * 8);
      for (int64_t i = 0; i < rows * groups; ++i) {
        store(pairs + 8 * i, load_scale(element, scales.row(i / groups), i % groups));
        store(pairs + 8 * i + 4,
              static_cast<float>(zeros == nullptr ? middle : zero_values[static_cast<size_t>(i)]));
      }
      packed.companions = {Plane{pairs, groups * 8}, Plane{list->bytes.data(), 0}};
      packed.format = Format::grouped(FormatKind::kIndexGroup, DType::kF32, width, setting->group);
      table_.take(*list);
    } else if (zeros != nullptr) {
      std::byte* laid = table_.allocate(static_cast<uint64_t>(rows * groups) * 2);
      for (int64_t i = 0; i < rows * groups; ++i)
        store(laid + 2 * i, static_cast<uint16_t>(zero_values[static_cast<size_t>(i)]));
      packed.companions = {scales, Plane{laid, groups * 2}};
      packed.format = Format::grouped(FormatKind::kZeroGroup, element, width, setting->group);
    } else {
      packed.companions = {scales, Plane{}};
      packed.format = Format::grouped(FormatKind::kOffsetGroup, element, width, setting->group);
    }
    if (zeros != nullptr) table_.take(*zeros);
    table_.take(*scale);
    packed.shape = Shape{rows, columns};
    table_.rename(packed, stem + ".weight");
    return {};
  }

  Status fold_float4(const std::string& stem) {
    TensorEntry& packed = *table_.find(stem + ".weight_packed");
    const Setting* setting = find_setting(4, true);
    if (setting == nullptr) return not_declared(packed, "4-bit floats");
    TESSERA_TRY(TensorEntry* const scale, table_.require(stem + ".weight_scale", packed));
    TESSERA_TRY_STATUS(table_.check_element(*scale, {DType::kF8E4M3, DType::kU8, DType::kF8E8M0}));
    const bool e4m3 = scale->format.element == DType::kF8E4M3;
    const int64_t group = e4m3 ? 16 : 32;
    if (packed.shape.rank() < 2 || packed.shape.elements() == 0 || packed.shape.columns() * 2 % group != 0)
      return table_.bad(packed, fmt::format("rows of a multiple of {} codes", group),
                        "shape " + packed.shape.to_string());
    const int64_t columns = packed.shape.columns() * 2;
    TESSERA_TRY_STATUS(table_.check_shape(*scale, with_columns(packed.shape, columns / group)));
    packed.format =
        Format::grouped(FormatKind::kFloat4Group, e4m3 ? DType::kF8E4M3 : DType::kF8E8M0, 4, group);
    packed.companions[0] = {scale->bytes.data(), columns / group};
    if (e4m3) {
      TESSERA_TRY(TensorEntry* const whole, table_.require(stem + ".weight_global_scale", packed));
      TESSERA_TRY_STATUS(table_.check_element(*whole, {DType::kF32}));
      if (whole->shape.elements() != 1)
        return table_.bad(*whole, "one value", "shape " + whole->shape.to_string());
      std::byte* factor = table_.allocate(sizeof(float));
      store(factor, 1.0F / load<float>(whole->bytes.data()));
      packed.companions[1] = {factor, 0};
      table_.take(*whole);
    }
    packed.shape = with_columns(packed.shape, columns);
    table_.take(*scale);
    table_.rename(packed, stem + ".weight");
    return {};
  }

  Status fold_int8(const std::string& stem, TensorEntry& weight, TensorEntry& scale) {
    TESSERA_TRY_STATUS(table_.check_element(weight, {DType::kI8}));
    TESSERA_TRY_STATUS(table_.check_element(scale, {DType::kF16, DType::kBF16, DType::kF32}));
    const Setting* setting = find_setting(8, false);
    if (setting == nullptr) return not_declared(weight, "8-bit integers");
    if (const TensorEntry* zero = table_.find(stem + ".weight_zero_point"))
      return table_.bad(*zero, "none beside unpacked integers", "it");
    const int64_t columns = weight.shape.columns();
    if (weight.shape.rank() < 2 || (setting->group != 0 && columns % setting->group != 0))
      return table_.bad(weight, fmt::format("rows of a multiple of {} codes (group_size)", setting->group),
                        "shape " + weight.shape.to_string());
    const int64_t groups = setting->group == 0 ? 1 : columns / setting->group;
    const bool single = setting->group == 0 && scale.shape.elements() == 1;
    if (!single) TESSERA_TRY_STATUS(table_.check_shape(scale, with_columns(weight.shape, groups)));
    const DType element = scale.format.element;
    weight.format = Format::grouped(FormatKind::kInt8Group, element, 8, setting->group);
    weight.companions[0] = {scale.bytes.data(), single ? 0 : groups * dtype_size(element)};
    table_.take(scale);
    return {};
  }

  CompanionTable& table_;
  const std::string where_;
  std::vector<Setting> settings_;
};

}  // namespace

Status fold_compressed(CompanionTable& table, const Json& config, const std::string& path) {
  return Compressed(table, path + ": quantization_config").fold(config);
}

}  // namespace tessera
