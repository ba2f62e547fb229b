// Blocks of 32 values with one float16 scale d, and for the _1 kinds a float16 minimum m:
//   Q4_0  d, 16 bytes                         value = (q - 8) * d    q of values j and j + 16: low and high half of byte j
//   Q4_1  d, m, 16 bytes                      value = q * d + m
//   Q5_0  d, 4 bytes of top bits, 16 bytes    value = (q - 16) * d   top bit of value j: bit j of the 32-bit word
//   Q5_1  d, m, 4 bytes, 16 bytes             value = q * d + m
//   Q8_0  d, 32 signed bytes                  value = q * d
#include <algorithm>
#include <cmath>

#include "formats/block_codecs.h"

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
int nearest_code(float value, float scale, int lowest, int highest) {
  if (scale == 0) return 0;
  const float code = std::round(value / scale);
  return static_cast<int>(std::clamp(code, static_cast<float>(lowest), static_cast<float>(highest)));
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

void encode_q4_0(const float* values, int64_t count, std::byte* blocks) {
  for (int64_t i = 0; i < count; i += kSmallBlock, blocks += kQ4_0Bytes, values += kSmallBlock) {
    float extreme = 0;  // the value of largest magnitude, with its sign: it becomes code 0
    for (int j = 0; j < kSmallBlock; ++j)
      if (std::fabs(values[j]) > std::fabs(extreme)) extreme = values[j];
    const float scale = extreme / -8;
    store_half(blocks, scale);
    const float stored = load_half(blocks);
    for (int j = 0; j < kHalfBlock; ++j) {
      const int low = nearest_code(values[j], stored, -8, 7) + 8;
      const int high = nearest_code(values[j + kHalfBlock], stored, -8, 7) + 8;
      blocks[2 + j] = static_cast<std::byte>(low | high << 4);
    }
  }
}

void encode_q8_0(const float* values, int64_t count, std::byte* blocks) {
  for (int64_t i = 0; i < count; i += kSmallBlock, blocks += kQ8_0Bytes, values += kSmallBlock) {
    float largest = 0;
    for (int j = 0; j < kSmallBlock; ++j) largest = std::max(largest, std::fabs(values[j]));
    store_half(blocks, largest / 127);
    const float stored = load_half(blocks);
    for (int j = 0; j < kSmallBlock; ++j)
      blocks[2 + j] = static_cast<std::byte>(nearest_code(values[j], stored, -127, 127));
  }
}

}  // namespace tessera
