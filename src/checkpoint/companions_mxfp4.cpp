// MXFP4 as HuggingFace publishes it: X_blocks [..., rows, K / 32, 16] with two E2M1 codes a byte, X_scales [..., rows, K / 32]
// with E8M0 exponents. The name stays X_blocks: without companions X is stored the other way around ([in, out]).
#include <fmt/format.h>

#include "checkpoint/companions.h"
#include "checkpoint/printable.h"

namespace tessera {

Status fold_mxfp4(CompanionTable& table) {
  for (const std::string& stem : table.stems("_blocks")) {
    TensorEntry& blocks = *table.find(stem + "_blocks");
    if (blocks.format.is_grouped()) continue;
    TESSERA_TRY(TensorEntry* const scales, table.require(stem + "_scales", blocks));
    TESSERA_TRY_STATUS(table.check_element(blocks, {DType::kU8}));
    TESSERA_TRY_STATUS(table.check_element(*scales, {DType::kU8, DType::kF8E8M0}));
    const int rank = blocks.shape.rank();
    if (rank < 3 || blocks.shape.columns() != 16 || blocks.shape.elements() == 0)
      return table.bad(blocks, "shape [..., rows, groups, 16]", blocks.shape.to_string());
    const Shape groups(blocks.shape.dims().first(static_cast<size_t>(rank - 1)));
    TESSERA_TRY_STATUS(table.check_shape(*scales, groups));
    blocks.shape = with_columns(groups, groups.columns() * 32);
    blocks.format = Format::grouped(FormatKind::kFloat4Group, DType::kF8E8M0, 4, 32);
    blocks.companions[0] = {scales->bytes.data(), groups.columns()};
    table.take(*scales);
  }
  return {};
}

}  // namespace tessera
