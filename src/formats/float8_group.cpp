// 8-bit floating-point codes (E4M3, formats/float8.h), one a byte, with a scale per block of a row: blocks of 128 x 128 in the
// FP8 checkpoints of one family, one scale per row or per matrix in others, E8M0 scales per 32 in the microscaling format:
//   value = code * scale
#include "formats/grouped.h"

namespace tessera {

void decode_float8_group(const GroupedRow& row, int64_t first, int64_t count, float* values) {
  const Format& format = row.format;
  for (int64_t k = first; k < first + count; ++k)
    values[k - first] = float8_e4m3_to_float(load<uint8_t>(row.planes[0] + k)) *
                        load_scale(format.element, row.planes[1], group_of(format, k));
}

}  // namespace tessera
