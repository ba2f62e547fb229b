// FP8 checkpoints: codes of E4M3 in X.weight and scales in X.weight_scale_inv (one per block of 128 x 128, as the config says) or
// X.weight_scale (one per matrix, expert or row). Scales of blocks are spread over the rows, because a row is what everything
// else reads: that adds 4 bytes per 128 codes.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/checked_math.h"
#include "base/json.h"
#include "checkpoint/companions.h"
#include "checkpoint/printable.h"
#include "formats/grouped.h"

namespace tessera {
namespace {

constexpr int64_t kLargestGroup = 65535;  // what Format::group holds

Format float8(DType scales, int64_t group) {
  return Format::grouped(FormatKind::kFloat8Group, scales, 8, group);
}

}  // namespace

Status fold_float8_scale(CompanionTable& table, TensorEntry& entry, TensorEntry& scale, int64_t block_rows,
                         int64_t block_columns) {
  TESSERA_TRY_STATUS(table.check_element(entry, {DType::kF8E4M3}));
  TESSERA_TRY_STATUS(table.check_element(scale, {DType::kF32, DType::kBF16, DType::kF16, DType::kF8E8M0}));
  if (entry.shape.rank() < 2 || entry.shape.elements() == 0)
    return table.bad(entry, "a matrix", "shape " + entry.shape.to_string());
  const int64_t columns = entry.shape.columns();
  const int64_t rows = entry.shape[entry.shape.rank() - 2];
  const int64_t all_rows = entry.shape.rows();
  const int64_t matrices = all_rows / rows;
  const DType element = scale.format.element;
  const int64_t count = scale.shape.elements();
  const Shape per_row = with_columns(entry.shape, 1);
  const Shape without_last(per_row.dims().first(static_cast<size_t>(per_row.rank() - 1)));
  if (scale.shape == per_row || scale.shape == without_last) {
    entry.format = float8(element, 0);
    entry.companions[0] = {scale.bytes.data(), dtype_size(element)};
  } else if (count == 1) {
    entry.format = float8(element, 0);
    entry.companions[0] = {scale.bytes.data(), 0};
  } else if (block_rows == 0 && matrices > 1 && count == matrices) {
    auto* spread = reinterpret_cast<float*>(table.allocate(static_cast<uint64_t>(all_rows) * sizeof(float)));
    for (int64_t row = 0; row < all_rows; ++row)
      spread[row] = load_scale(element, scale.bytes.data(), row / rows);
    entry.format = float8(DType::kF32, 0);
    entry.companions[0] = {reinterpret_cast<const std::byte*>(spread), sizeof(float)};
  } else {
    if (block_rows == 0)
      return table.bad(scale,
                       fmt::format("one scale, {} or {}", without_last.to_string(), per_row.to_string()),
                       "shape " + scale.shape.to_string());
    const int64_t down = ceil_divide(rows, block_rows);
    const int64_t across = ceil_divide(columns, block_columns);
    std::vector<int64_t> dims(entry.shape.dims().begin(), entry.shape.dims().end());
    dims[dims.size() - 2] = down;
    dims.back() = across;
    TESSERA_TRY_STATUS(table.check_shape(scale, Shape(dims)));
    auto* spread = reinterpret_cast<float*>(
        table.allocate(static_cast<uint64_t>(all_rows) * static_cast<uint64_t>(across) * sizeof(float)));
    for (int64_t row = 0; row < all_rows; ++row) {
      const int64_t block = row / rows * down + row % rows / block_rows;
      for (int64_t i = 0; i < across; ++i)
        spread[row * across + i] = load_scale(element, scale.bytes.data(), block * across + i);
    }
    entry.format = float8(DType::kF32, block_columns);
    entry.companions[0] = {reinterpret_cast<const std::byte*>(spread),
                           across * static_cast<int64_t>(sizeof(float))};
  }
  table.take(scale);
  return {};
}

Status fold_float8(CompanionTable& table, const Json& config, const std::string& path) {
  const std::string where = path + ": quantization_config";
  if (const Json* fmt_key = json_find(config, "fmt"); fmt_key != nullptr && *fmt_key != "e4m3")
    return fail(ErrorCode::kUnsupported, "{}: fmt: expected e4m3, found {}", where, dump_json(*fmt_key));
  int64_t block_rows = 0;
  int64_t block_columns = 0;
  if (const Json* block = json_find(config, "weight_block_size"); block != nullptr && !block->is_null()) {
    const bool pair = block->is_array() && block->size() == 2 && (*block)[0].is_number_integer() &&
                      (*block)[1].is_number_integer();
    if (pair) {
      block_rows = (*block)[0].get<int64_t>();
      block_columns = (*block)[1].get<int64_t>();
    }
    if (block_rows < 1 || block_columns < 1 || block_rows > kLargestGroup || block_columns > kLargestGroup)
      return fail(ErrorCode::kBadData, "{}: weight_block_size: expected two numbers from 1 to {}, found {}",
                  where, kLargestGroup, dump_json(*block));
  }
  for (const std::string_view ending : {"_scale_inv", "_scale"}) {
    for (const std::string& name : table.stems(ending)) {
      TensorEntry* weight = table.find(name);
      if (weight == nullptr || weight->format != Format::plain(DType::kF8E4M3)) continue;
      TESSERA_TRY_STATUS(fold_float8_scale(table, *weight, *table.find(name + std::string(ending)),
                                           block_rows, block_columns));
    }
  }
  for (const TensorEntry& entry : table.tensors())
    if (entry.format == Format::plain(DType::kF8E4M3))
      return table.bad(entry,
                       fmt::format("a tensor {}_scale_inv or {}_scale beside it", printable(entry.name),
                                   printable(entry.name)),
                       "none");
  return {};
}

}  // namespace tessera
