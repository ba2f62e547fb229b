// Super-blocks of 256 values -1, 0, 1 under one float16 scale d; value = (t - 1) * d.
//   TQ1_0  48 bytes of five base-3 digits, 4 bytes of four digits, d. A byte is the fraction digits / 3^5
//          scaled to 256, rounded up: multiplying by 3^n modulo 256 drops the first n digits, and times 3
//          divided by 256 gives the next one. Digit n of bytes 0 to 31 are values 32 n .. 32 n + 31; then
//          16 bytes give 80 values, the last 4 bytes 16.
//   TQ2_0  64 bytes of four 2-bit codes, d. Bits 2 n of bytes 0 to 31 are values 32 n ..; the second 32
//          bytes likewise.
#include <array>

#include "formats/block_codecs.h"

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

}  // namespace tessera
