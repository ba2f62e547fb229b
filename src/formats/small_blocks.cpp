// Blocks of 32 values with one float16 scale d, and for the _1 kinds a float16 minimum m:
//   Q4_0  d, 16 bytes                         value = (q - 8) * d    q of values j and j + 16: low and high half of byte j
//   Q4_1  d, m, 16 bytes                      value = q * d + m
//   Q5_0  d, 4 bytes of top bits, 16 bytes    value = (q - 16) * d   top bit of value j: bit j of the 32-bit word
//   Q5_1  d, m, 4 bytes, 16 bytes             value = q * d + m
//   Q8_0  d, 32 signed bytes                  value = q * d
#include <algorithm>
#include <cmath>

#include "formats/encode_block.h"

namespace tessera {
namespace {

constexpr int kHalfBlock = kSmallBlock / 2;

// Sixteen bytes of two 4-bit codes, and the fifth bits where the format has them.
struct Codes {
  const std::byte* packed;
  uint32_t top_bits = 0;

  [[nodiscard]] int at(int index) const {
    const int byte = load_u8(packed + index % kHalfBlock);
    const int low = index < kHalfBlock ? byte & 15 : byte >> 4;
    return low | static_cast<int>(top_bits >> index & 1u) << 4;
  }
};

// round(value / scale), clamped; halves away from zero.
int8_t nearest_code(float value, float scale, const LinearLevels& levels) {
  if (scale == 0) return 0;
  return static_cast<int8_t>(std::clamp(std::round(value / scale), levels.low(), levels.high()));
}

// The value of largest magnitude, with its sign; the first of several.
float extreme_value(const WeightedValues& block) {
  float extreme = 0;
  for (int j = 0; j < block.count; ++j)
    if (std::fabs(block.values[j]) > std::fabs(extreme)) extreme = block.values[j];
  return extreme;
}

using SmallCodes = std::array<int8_t, kSmallBlock>;

// Low four bits of code + shift, two codes a byte.
void pack_codes(const SmallCodes& codes, int shift, std::byte* out) {
  for (size_t j = 0; j < kHalfBlock; ++j)
    out[j] = static_cast<std::byte>(((codes[j] + shift) & 15) | ((codes[j + kHalfBlock] + shift) & 15) << 4);
}

uint32_t top_bits(const SmallCodes& codes, int shift) {
  uint32_t bits = 0;
  for (size_t j = 0; j < codes.size(); ++j) bits |= static_cast<uint32_t>((codes[j] + shift) >> 4 & 1) << j;
  return bits;
}

struct AffineCodes {
  Affine map;  // as float16 stores it
  SmallCodes codes;
};

AffineCodes search_stored_affine(const WeightedValues& block, int highest) {
  AffineCodes result;
  const Affine map = search_affine(block, highest, OffsetRange::kAny);
  result.map = {as_half(map.scale), as_half(map.offset)};
  choose_affine_codes(block, highest, result.map, result.codes.data());
  return result;
}

}  // namespace

void decode_q4_0(const std::byte* blocks, int64_t count, float* values) {
  for (int64_t i = 0; i < count; i += kSmallBlock, blocks += kQ4_0Bytes, values += kSmallBlock) {
    const float scale = load_half(blocks);
    const Codes codes{blocks + 2};
    for (int j = 0; j < kSmallBlock; ++j) values[j] = static_cast<float>(codes.at(j) - 8) * scale;
  }
}

void decode_q4_1(const std::byte* blocks, int64_t count, float* values) {
  for (int64_t i = 0; i < count; i += kSmallBlock, blocks += kQ4_1Bytes, values += kSmallBlock) {
    const float scale = load_half(blocks);
    const float minimum = load_half(blocks + 2);
    const Codes codes{blocks + 4};
    for (int j = 0; j < kSmallBlock; ++j) values[j] = static_cast<float>(codes.at(j)) * scale + minimum;
  }
}

void decode_q5_0(const std::byte* blocks, int64_t count, float* values) {
  for (int64_t i = 0; i < count; i += kSmallBlock, blocks += kQ5_0Bytes, values += kSmallBlock) {
    const float scale = load_half(blocks);
    const Codes codes{blocks + 6, load<uint32_t>(blocks + 2)};
    for (int j = 0; j < kSmallBlock; ++j) values[j] = static_cast<float>(codes.at(j) - 16) * scale;
  }
}

void decode_q5_1(const std::byte* blocks, int64_t count, float* values) {
  for (int64_t i = 0; i < count; i += kSmallBlock, blocks += kQ5_1Bytes, values += kSmallBlock) {
    const float scale = load_half(blocks);
    const float minimum = load_half(blocks + 2);
    const Codes codes{blocks + 8, load<uint32_t>(blocks + 4)};
    for (int j = 0; j < kSmallBlock; ++j) values[j] = static_cast<float>(codes.at(j)) * scale + minimum;
  }
}

void decode_q8_0(const std::byte* blocks, int64_t count, float* values) {
  for (int64_t i = 0; i < count; i += kSmallBlock, blocks += kQ8_0Bytes, values += kSmallBlock) {
    const float scale = load_half(blocks);
    for (int j = 0; j < kSmallBlock; ++j) values[j] = static_cast<float>(load_i8(blocks + 2 + j)) * scale;
  }
}

void encode_q4_0(const float* values, const float* importance, int64_t count, std::byte* blocks) {
  encode_blocks(values, importance, count, kSmallBlock, kQ4_0Bytes, blocks,
                [&](const WeightedValues& block, std::byte* out) {
                  constexpr LinearLevels kLevels{-8, 7};
                  std::array<int8_t, kSmallBlock> codes;
                  if (importance == nullptr) {
                    // The plain rule, which other programs follow to the bit: the value of largest magnitude becomes code 0.
                    const float scale = extreme_value(block) / -8;
                    for (int j = 0; j < kSmallBlock; ++j)
                      codes[static_cast<size_t>(j)] = nearest_code(block.values[j], scale, kLevels);
                    store_half(out, scale);
                  } else {
                    const float scale = as_half(search_scale(block, kLevels));
                    choose_codes(block, kLevels, scale, codes.data());
                    store_half(out, scale);
                  }
                  pack_codes(codes, 8, out + 2);
                });
}

void encode_q4_1(const float* values, const float* importance, int64_t count, std::byte* blocks) {
  encode_blocks(values, importance, count, kSmallBlock, kQ4_1Bytes, blocks,
                [](const WeightedValues& block, std::byte* out) {
                  const AffineCodes result = search_stored_affine(block, 15);
                  store_half(out, result.map.scale);
                  store_half(out + 2, result.map.offset);
                  pack_codes(result.codes, 0, out + 4);
                });
}

void encode_q5_0(const float* values, const float* importance, int64_t count, std::byte* blocks) {
  encode_blocks(values, importance, count, kSmallBlock, kQ5_0Bytes, blocks,
                [](const WeightedValues& block, std::byte* out) {
                  constexpr LinearLevels kLevels{-16, 15};
                  std::array<int8_t, kSmallBlock> codes;
                  const float scale = as_half(search_scale(block, kLevels));
                  choose_codes(block, kLevels, scale, codes.data());
                  store_half(out, scale);
                  store(out + 2, top_bits(codes, 16));
                  pack_codes(codes, 16, out + 6);
                });
}

void encode_q5_1(const float* values, const float* importance, int64_t count, std::byte* blocks) {
  encode_blocks(values, importance, count, kSmallBlock, kQ5_1Bytes, blocks,
                [](const WeightedValues& block, std::byte* out) {
                  const AffineCodes result = search_stored_affine(block, 31);
                  store_half(out, result.map.scale);
                  store_half(out + 2, result.map.offset);
                  store(out + 4, top_bits(result.codes, 0));
                  pack_codes(result.codes, 0, out + 8);
                });
}

void encode_q8_0(const float* values, const float* importance, int64_t count, std::byte* blocks) {
  encode_blocks(
      values, importance, count, kSmallBlock, kQ8_0Bytes, blocks,
      [](const WeightedValues& block, std::byte* out) {
        store_half(out, std::fabs(extreme_value(block)) / 127);
        const float stored = load_half(out);
        for (int j = 0; j < kSmallBlock; ++j)
          out[2 + j] = static_cast<std::byte>(nearest_code(block.values[j], stored, LinearLevels{-127, 127}));
      });
}

}  // namespace tessera
