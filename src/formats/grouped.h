// What the grouped formats share: codes packed along K, lowest bits first, and a scale of some element type per group. A row
// is read through pointers to its part of each plane; columns are counted from the row's start, because groups are.
#pragma once

#include <array>
#include <bit>

#include "formats/block_codecs.h"
#include "formats/codebooks.h"
#include "formats/float8.h"
#include "tensor/format.h"

namespace tessera {

struct GroupedRow {
  Format format;
  std::array<const std::byte*, 3> planes;
};

[[nodiscard]] constexpr int64_t group_of(const Format& format, int64_t column) {
  return format.group == 0 ? 0 : column / format.group;
}
// Groups of a row of `columns`; a last one may be cut short.
[[nodiscard]] constexpr int64_t group_count(const Format& format, int64_t columns) {
  return format.group == 0 ? 1 : (columns + format.group - 1) / format.group;
}

// 2^(bits - 127) (OCP Microscaling Formats 1.0, section 5.4.1); 255 is NaN.
[[nodiscard]] constexpr float e8m0_to_float(uint8_t bits) {
  if (bits == 255) return std::numeric_limits<float>::quiet_NaN();
  return std::bit_cast<float>(bits == 0 ? 0x00400000u : static_cast<uint32_t>(bits) << 23);
}

// One scale; `element` is a floating type of one, two or four bytes.
[[nodiscard]] inline float load_scale(DType element, const std::byte* plane, int64_t index) {
  switch (element) {
    case DType::kF16:
      return load_half(plane + 2 * index);
    case DType::kBF16:
      return to_float(BFloat16{load<uint16_t>(plane + 2 * index)});
    case DType::kF8E8M0:
      return e8m0_to_float(load<uint8_t>(plane + index));
    case DType::kF8E4M3:
      return float8_e4m3_to_float(load<uint8_t>(plane + index));
    default:
      return load<float>(plane + 4 * index);
  }
}

// Calls use(k, code) for columns [first, first + count), both multiples of 8 (any for 8 bits).
template <class Use>
void for_codes(int bits, const std::byte* codes, int64_t first, int64_t count, Use use) {
  if (bits == 8) {
    for (int64_t k = first; k < first + count; ++k) use(k, load_u8(codes + k));
    return;
  }
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  for (int64_t k = first; k < first + count; k += 8) {
    uint64_t eight = 0;
    std::memcpy(&eight, codes + k / 8 * bits, static_cast<size_t>(bits));
    for (int i = 0; i < 8; ++i, eight >>= bits) use(k + i, static_cast<int>(eight & mask));
  }
}

// mlx_affine.cpp, mlc_group.cpp, integer_group.cpp, float8_group.cpp, float4_group.cpp: columns [first, first + count) of a row.
void decode_mlx_affine(const GroupedRow& row, int64_t first, int64_t count, float* values);
void decode_mlc_group(const GroupedRow& row, int64_t first, int64_t count, float* values);
void decode_offset_group(const GroupedRow& row, int64_t first, int64_t count, float* values);
void decode_zero_group(const GroupedRow& row, int64_t first, int64_t count, float* values);
void decode_index_group(const GroupedRow& row, int64_t first, int64_t count, float* values);
void decode_int8_group(const GroupedRow& row, int64_t first, int64_t count, float* values);
void decode_float8_group(const GroupedRow& row, int64_t first, int64_t count, float* values);
void decode_float4_group(const GroupedRow& row, int64_t first, int64_t count, float* values);

}  // namespace tessera
