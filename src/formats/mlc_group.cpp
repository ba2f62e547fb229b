// MLC group quantisation (q4f16_1, q4f32_1): codes along K, lowest bits first, eight 4-bit codes a 32-bit word; a scale per 32
// columns. The middle code is one below half of the range, so that codes are symmetric:
//   value = (code - (2^(bits - 1) - 1)) * scale
#include "formats/grouped.h"

namespace tessera {

void decode_mlc_group(const GroupedRow& row, int64_t first, int64_t count, float* values) {
  const Format& format = row.format;
  const int middle = (1 << (format.bits - 1)) - 1;
  for_codes(format.bits, row.planes[0], first, count, [&](int64_t k, int code) {
    values[k - first] =
        static_cast<float>(code - middle) * load_scale(format.element, row.planes[1], group_of(format, k));
  });
}

}  // namespace tessera
