// Integer codes with a scale per group, as AWQ, GPTQ and compressed-tensors mean them once their words are laid along K (which
// compressed-tensors does, and the readers of the other two do). Codes are packed along K, lowest bits first.
//   offset    value = (code - 2^(bits - 1)) * scale
//   zero      value = (code - zero) * scale; zeros: uint16, one per group (up to 2^bits: GPTQ adds one to what it stores)
//   index     the same, and plane 2 names the group of each column (int32, one list for all rows); plane 1 holds
//             scale and zero of each group as two float32
//   int8      value = code * scale; codes are signed bytes
#include "formats/grouped.h"

namespace tessera {

void decode_offset_group(const GroupedRow& row, int64_t first, int64_t count, float* values) {
  const Format& format = row.format;
  const int middle = 1 << (format.bits - 1);
  for_codes(format.bits, row.planes[0], first, count, [&](int64_t k, int code) {
    values[k - first] =
        static_cast<float>(code - middle) * load_scale(format.element, row.planes[1], group_of(format, k));
  });
}

void decode_zero_group(const GroupedRow& row, int64_t first, int64_t count, float* values) {
  const Format& format = row.format;
  for_codes(format.bits, row.planes[0], first, count, [&](int64_t k, int code) {
    const int64_t group = group_of(format, k);
    const int zero = load<uint16_t>(row.planes[2] + 2 * group);
    values[k - first] = static_cast<float>(code - zero) * load_scale(format.element, row.planes[1], group);
  });
}

void decode_index_group(const GroupedRow& row, int64_t first, int64_t count, float* values) {
  for_codes(row.format.bits, row.planes[0], first, count, [&](int64_t k, int code) {
    const int64_t group = load<int32_t>(row.planes[2] + 4 * k);
    const auto scale = load<float>(row.planes[1] + 8 * group);
    const auto zero = load<float>(row.planes[1] + 8 * group + 4);
    values[k - first] = (static_cast<float>(code) - zero) * scale;
  });
}

void decode_int8_group(const GroupedRow& row, int64_t first, int64_t count, float* values) {
  const Format& format = row.format;
  for (int64_t k = first; k < first + count; ++k)
    values[k - first] = static_cast<float>(load_i8(row.planes[0] + k)) *
                        load_scale(format.element, row.planes[1], group_of(format, k));
}

}  // namespace tessera
