// MLX affine: codes of 2, 3, 4, 5, 6 or 8 bits in one continuous stream along K, lowest bits first (3, 5 and 6 bits cross the
// 32-bit words they are stored in); per group of 32, 64 or 128 a scale and a bias of float16, bfloat16 or float32:
//   value = scale * code + bias
#include "formats/grouped.h"

namespace tessera {

void decode_mlx_affine(const GroupedRow& row, int64_t first, int64_t count, float* values) {
  const Format& format = row.format;
  for_codes(format.bits, row.planes[0], first, count, [&](int64_t k, int code) {
    const int64_t group = group_of(format, k);
    const float product = load_scale(format.element, row.planes[1], group) * static_cast<float>(code);
    values[k - first] = product + load_scale(format.element, row.planes[2], group);
  });
}

}  // namespace tessera
