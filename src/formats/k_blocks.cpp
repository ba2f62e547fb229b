// Super-blocks of 256 values with small integer scales under one or two float16 scales:
//   Q2_K  16 scale bytes (low half: scale, high half: minimum, per 16 values), 64 bytes of 2-bit codes,
//         d, dmin
//         value = (d * scale) * q - dmin * minimum
//   Q3_K  32 bytes of top bits, 64 bytes of 2-bit codes, 12 bytes of sixteen 6-bit scales, d
//         value = (d * (scale - 32)) * (q - 4), q of 3 bits
//   Q4_K  d, dmin, 12 bytes of eight 6-bit scales and minima (per 32 values), 128 bytes of 4-bit codes
//         value = (d * scale) * q - dmin * minimum
//   Q5_K  as Q4_K, with 32 bytes of top bits before the codes
//   Q6_K  128 bytes of low halves, 64 bytes of top bit pairs, 16 signed scale bytes, d
//         value = (d * scale) * (q - 32), q of 6 bits
#include <array>

#include "formats/block_codecs.h"

namespace tessera {
namespace {

// The sixteen 6-bit scales of Q3_K in 12 bytes: the low four bits of scale j lie in half j / 8 of byte j % 8,
// its top two in bits 2 * (j / 4) of byte 8 + j % 4.
int q3_k_scale(const std::byte* packed, int index) {
  const int low = load_u8(packed + index % 8) >> (index / 8 * 4) & 15;
  const int high = load_u8(packed + 8 + index % 4) >> (index / 4 * 2) & 3;
  return (low | high << 4) - 32;
}

struct ScaleMinimum {
  int scale;
  int minimum;
};

// The eight 6-bit pairs of Q4_K and Q5_K in 12 bytes: pairs 0 to 3 are the low six bits of bytes j and j + 4;
// pairs 4 to 7 take their low halves from byte j + 4 and their top two bits from the tops of bytes j - 4 and
// j.
ScaleMinimum q4_k_scale(const std::byte* packed, int index) {
  if (index < 4) return {load_u8(packed + index) & 63, load_u8(packed + index + 4) & 63};
  const int low = load_u8(packed + index + 4);
  return {(low & 15) | load_u8(packed + index - 4) >> 6 << 4, low >> 4 | load_u8(packed + index) >> 6 << 4};
}

}  // namespace

void decode_q2_k(const std::byte* blocks, int64_t count, float* values) {
  for (int64_t i = 0; i < count; i += kSuperBlock, blocks += kQ2KBytes) {
    const float d = load_half(blocks + 80);
    const float dmin = load_half(blocks + 82);
    for (int group = 0; group < 16; ++group) {
      const int packed = load_u8(blocks + group);
      const float scale = d * static_cast<float>(packed & 15);
      const float minimum = dmin * static_cast<float>(packed >> 4);
      const std::byte* codes = blocks + 16 + group / 8 * 32 + group % 2 * 16;
      const int shift = group % 8 / 2 * 2;
      for (int j = 0; j < 16; ++j)
        *values++ = scale * static_cast<float>(load_u8(codes + j) >> shift & 3) - minimum;
    }
  }
}

void decode_q3_k(const std::byte* blocks, int64_t count, float* values) {
  for (int64_t i = 0; i < count; i += kSuperBlock, blocks += kQ3KBytes) {
    const float d = load_half(blocks + 108);
    for (int group = 0; group < 16; ++group) {
      const float scale = d * static_cast<float>(q3_k_scale(blocks + 96, group));
      const std::byte* top_bits = blocks + group % 2 * 16;
      const std::byte* codes = blocks + 32 + group / 8 * 32 + group % 2 * 16;
      const int shift = group % 8 / 2 * 2;
      for (int j = 0; j < 16; ++j) {
        const int low = load_u8(codes + j) >> shift & 3;
        const int top = load_u8(top_bits + j) >> (group / 2) & 1;
        *values++ = scale * static_cast<float>(low + 4 * top - 4);
      }
    }
  }
}

void decode_q4_k(const std::byte* blocks, int64_t count, float* values) {
  for (int64_t i = 0; i < count; i += kSuperBlock, blocks += kQ4KBytes) {
    const float d = load_half(blocks);
    const float dmin = load_half(blocks + 2);
    for (int group = 0; group < 8; ++group) {
      const ScaleMinimum packed = q4_k_scale(blocks + 4, group);
      const float scale = d * static_cast<float>(packed.scale);
      const float minimum = dmin * static_cast<float>(packed.minimum);
      const std::byte* codes = blocks + 16 + group / 2 * 32;
      const int shift = group % 2 * 4;
      for (int j = 0; j < 32; ++j)
        *values++ = scale * static_cast<float>(load_u8(codes + j) >> shift & 15) - minimum;
    }
  }
}

void decode_q5_k(const std::byte* blocks, int64_t count, float* values) {
  for (int64_t i = 0; i < count; i += kSuperBlock, blocks += kQ5KBytes) {
    const float d = load_half(blocks);
    const float dmin = load_half(blocks + 2);
    for (int group = 0; group < 8; ++group) {
      const ScaleMinimum packed = q4_k_scale(blocks + 4, group);
      const float scale = d * static_cast<float>(packed.scale);
      const float minimum = dmin * static_cast<float>(packed.minimum);
      const std::byte* top_bits = blocks + 16;
      const std::byte* codes = blocks + 48 + group / 2 * 32;
      const int shift = group % 2 * 4;
      for (int j = 0; j < 32; ++j) {
        const int low = load_u8(codes + j) >> shift & 15;
        const int top = load_u8(top_bits + j) >> group & 1;
        *values++ = scale * static_cast<float>(low + 16 * top) - minimum;
      }
    }
  }
}

void decode_q6_k(const std::byte* blocks, int64_t count, float* values) {
  for (int64_t i = 0; i < count; i += kSuperBlock, blocks += kQ6KBytes) {
    const float d = load_half(blocks + 208);
    for (int group = 0; group < 16; ++group) {  // 16 values each
      const float scale = d * static_cast<float>(load_i8(blocks + 192 + group));
      const int half = group / 8;         // 128 values each
      const int quarter = group % 8 / 2;  // 32 values each
      const std::byte* low_bits = blocks + half * 64 + quarter % 2 * 32 + group % 2 * 16;
      const std::byte* top_bits = blocks + 128 + half * 32 + group % 2 * 16;
      for (int j = 0; j < 16; ++j) {
        const int low = load_u8(low_bits + j) >> (quarter / 2 * 4) & 15;
        const int top = load_u8(top_bits + j) >> (quarter * 2) & 3;
        *values++ = scale * static_cast<float>((low | top << 4) - 32);
      }
    }
  }
}

}  // namespace tessera
