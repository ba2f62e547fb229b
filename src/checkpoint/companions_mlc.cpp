// MLC: X.q_weight holds 32-bit words of codes along K, X.q_scale a scale per group of 32 columns; the last group may be cut
// short, its words are not. The name of the quantisation says which layout a folder has.
#include <fmt/format.h>

#include "checkpoint/companions.h"
#include "checkpoint/printable.h"

namespace tessera {
namespace {

constexpr int kBits = 4;
constexpr int64_t kGroup = 32;

}  // namespace

Status fold_mlc(CompanionTable& table, const std::string& name, const std::string& path) {
  const bool plain = name == "q0f16" || name == "q0f32" || name == "q0bf16";
  const bool quantised = name == "q4f16_1" || name == "q4f32_1" || name == "q4bf16_1";
  if (!plain && !quantised)
    return fail(ErrorCode::kUnsupported,
                "{}: quantization: expected q4f16_1, q4f32_1, q4bf16_1, q0f16, q0f32 or q0bf16, found {}",
                path, printable(name));
  for (const std::string& stem : table.stems(".q_weight")) {
    TensorEntry& weight = *table.find(stem + ".q_weight");
    if (plain) return table.bad(weight, "no codes, as quantization is " + name, "it");
    TESSERA_TRY_STATUS(table.check_element(weight, {DType::kU32}));
    TESSERA_TRY(TensorEntry* const scale, table.require(stem + ".q_scale", weight));
    TESSERA_TRY_STATUS(table.check_element(*scale, {DType::kF16, DType::kF32, DType::kBF16}));
    if (weight.shape.rank() < 2 || weight.shape.columns() == 0)
      return table.bad(weight, "a matrix", "shape " + weight.shape.to_string());
    const int64_t columns = weight.shape.columns() * (32 / kBits);
    const int64_t groups = (columns + kGroup - 1) / kGroup;
    TESSERA_TRY_STATUS(table.check_shape(*scale, with_columns(weight.shape, groups)));
    weight.shape = with_columns(weight.shape, columns);
    weight.format = Format::grouped(FormatKind::kMlcGroup, scale->format.element, kBits, kGroup);
    weight.companions[0] = {scale->bytes.data(), groups * dtype_size(scale->format.element)};
    table.take(*scale);
    table.rename(weight, stem + ".weight");
  }
  for (const std::string& stem : table.stems(".q_scale"))
    return table.bad(*table.find(stem + ".q_scale"),
                     fmt::format("a tensor {}.q_weight beside it", printable(stem)), "none");
  table.finish();
  return {};
}

}  // namespace tessera
