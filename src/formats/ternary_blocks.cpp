// Super-blocks of 256 values -1, 0, 1 under one float16 scale d; value = (t - 1) * d.
//   TQ1_0  48 bytes of five base-3 digits, 4 bytes of four digits, d. A byte is the fraction digits / 3^5
//          scaled to 256, rounded up: multiplying by 3^n modulo 256 drops the first n digits, and times 3
//          divided by 256 gives the next one. Digit n of bytes 0 to 31 are values 32 n .. 32 n + 31; then
//          16 bytes give 80 values, the last 4 bytes 16.
//   TQ2_0  64 bytes of four 2-bit codes, d. Bits 2 n of bytes 0 to 31 are values 32 n ..; the second 32
//          bytes likewise.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "formats/encode_block.h"

namespace tessera {
namespace {

constexpr std::array<int, 5> kPowersOfThree = {1, 3, 9, 27, 81};

float* decode_digits(const std::byte* bytes, int byte_count, int digits, float scale, float* values) {
  for (int digit = 0; digit < digits; ++digit) {
    for (int j = 0; j < byte_count; ++j) {
      const int rest = load_u8(bytes + j) * kPowersOfThree[static_cast<size_t>(digit)] & 255;
      *values++ = static_cast<float>((rest * 3 >> 8) - 1) * scale;
    }
  }
  return values;
}

void pack_digits(const int8_t* digits, int byte_count, int digit_count, std::byte* out) {
  for (int j = 0; j < byte_count; ++j) {
    int number = 0;
    for (int digit = 0; digit < 5; ++digit)
      number = number * 3 + (digit < digit_count ? digits[digit * byte_count + j] : 0);
    out[j] = static_cast<std::byte>((number * 256 + 242) / 243);
  }
}

struct TernaryBlock {
  float scale = 0;  // a float16
  std::array<int8_t, kSuperBlock> digits{};
};

// The closest ternary block: of all choices of which values are not zero, the best one of each size takes the largest
// magnitudes; with the sum S of their weighted magnitudes and W of their weights it lowers the error by S^2 / W, at the scale
// S / W. A block that is ternary already is met exactly.
TernaryBlock search_ternary(const WeightedValues& block) {
  std::array<int, kSuperBlock> order;
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return std::fabs(block.values[a]) > std::fabs(block.values[b]); });
  double sum = 0;
  double weight = 0;
  double best_gain = 0;
  double best_scale = 0;
  for (const int i : order) {
    sum += static_cast<double>(block.weights[i]) * std::fabs(block.values[i]);
    weight += block.weights[i];
    if (weight > 0 && sum * sum / weight > best_gain) {
      best_gain = sum * sum / weight;
      best_scale = sum / weight;
    }
  }
  TernaryBlock result;
  result.scale = as_half(static_cast<float>(best_scale));
  for (int i = 0; i < kSuperBlock; ++i) {
    const bool zero = result.scale == 0 || 2 * std::fabs(block.values[i]) <= result.scale;
    result.digits[static_cast<size_t>(i)] = static_cast<int8_t>(zero ? 1 : block.values[i] < 0 ? 0 : 2);
  }
  return result;
}

}  // namespace

void decode_tq1_0(const std::byte* blocks, int64_t count, float* values) {
  for (int64_t i = 0; i < count; i += kSuperBlock, blocks += kTQ1_0Bytes) {
    const float scale = load_half(blocks + 52);
    values = decode_digits(blocks, 32, 5, scale, values);
    values = decode_digits(blocks + 32, 16, 5, scale, values);
    values = decode_digits(blocks + 48, 4, 4, scale, values);
  }
}

void decode_tq2_0(const std::byte* blocks, int64_t count, float* values) {
  for (int64_t i = 0; i < count; i += kSuperBlock, blocks += kTQ2_0Bytes) {
    const float scale = load_half(blocks + 64);
    for (int group = 0; group < 8; ++group)
      for (int j = 0; j < 32; ++j)
        *values++ =
            static_cast<float>((load_u8(blocks + group / 4 * 32 + j) >> (group % 4 * 2) & 3) - 1) * scale;
  }
}

void encode_tq1_0(const float* values, const float* importance, int64_t count, std::byte* blocks) {
  encode_blocks(values, importance, count, kSuperBlock, kTQ1_0Bytes, blocks,
                [](const WeightedValues& block, std::byte* out) {
                  const TernaryBlock result = search_ternary(block);
                  const int8_t* digits = result.digits.data();
                  pack_digits(digits, 32, 5, out);
                  pack_digits(digits + 160, 16, 5, out + 32);
                  pack_digits(digits + 240, 4, 4, out + 48);
                  store_half(out + 52, result.scale);
                });
}

void encode_tq2_0(const float* values, const float* importance, int64_t count, std::byte* blocks) {
  encode_blocks(values, importance, count, kSuperBlock, kTQ2_0Bytes, blocks,
                [](const WeightedValues& block, std::byte* out) {
                  const TernaryBlock result = search_ternary(block);
                  std::memset(out, 0, kTQ2_0Bytes);
                  for (size_t i = 0; i < kSuperBlock; ++i)
                    out[i / 128 * 32 + i % 32] |=
                        static_cast<std::byte>(result.digits[i] << (i % 128 / 32 * 2));
                  store_half(out + 64, result.scale);
                });
}

}  // namespace tessera
