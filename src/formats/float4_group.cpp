// 4-bit floating-point codes (E2M1), two a byte, the first in the low half, with a scale per group of a row: E8M0 per 32
// (MXFP4 as HuggingFace, compressed-tensors and MLX lay it out) or E4M3 per 16 (NVFP4, where plane 2 may hold one float32
// factor for the whole matrix). OCP Microscaling Formats 1.0, section 5:
//   value = code * scale [* factor]
#include "formats/grouped.h"

namespace tessera {

void decode_float4_group(const GroupedRow& row, int64_t first, int64_t count, float* values) {
  const Format& format = row.format;
  const float factor = row.planes[2] == nullptr ? 1.0F : load<float>(row.planes[2]);
  for_codes(4, row.planes[0], first, count, [&](int64_t k, int code) {
    const float level = 0.5F * static_cast<float>(kTwiceE2M1[static_cast<size_t>(code)]);
    values[k - first] = level * (load_scale(format.element, row.planes[1], group_of(format, k)) * factor);
  });
}

}  // namespace tessera
