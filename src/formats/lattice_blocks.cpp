// Super-blocks of 256 values whose codes index tables of lattice points (lattice_points.h), eight values at
// a time; d is a float16:
//   IQ2_XXS  d; per 32 values 8 bytes: four point bytes, then 32 bits of four 7-bit sign groups and a
//            4-bit scale on top
//            value = (d * (0.5 + scale) * 0.25) * level * sign
//   IQ2_XS   d; 32 words of 9-bit point and 7-bit signs; 8 bytes of 4-bit scales (per 16 values)
//   IQ2_S    d; 32 point bytes, 32 sign bytes, 8 bytes of top two point bits, 8 bytes of 4-bit scales (per
//            16 values)
//   IQ3_XXS  d; 64 point bytes (four values each); per 32 values 32 bits of four 7-bit sign groups and a
//            4-bit scale on top
//            value = (d * (0.5 + scale) * 0.5) * level * sign
//   IQ3_S    d; 64 point bytes, 8 bytes of ninth point bits, 32 sign bytes, 4 bytes of 4-bit scales (per 32
//            values)
//            value = (d * (1 + 2 * scale)) * level * sign
//   IQ1_S    d; 32 point bytes; per 32 values 16 bits: four 3-bit point tops, 3-bit scale, sign of the shift
//            value = (d * (2 * scale + 1)) * (level + shift), shift = +-1/8
//   IQ1_M    32 point bytes; 16 bytes of halves: 3-bit point top and sign of the shift; 4 words of four
//            3-bit scales (per 16 values), whose top halves together are the float16 d
#include "formats/block_codecs.h"
#include "formats/lattice_points.h"

namespace tessera {
namespace {

constexpr float kIQ1Shift = 0.125F;

float* write_iq2(uint16_t point, int signs, float scale, float* values) {
  for (int j = 0; j < 8; ++j) {
    const float value = scale * static_cast<float>(kIQ2Levels[point_level(point, j, 2)]);
    *values++ = signs >> j & 1 ? -value : value;
  }
  return values;
}

// Four values: the low or the high half of eight signs.
float* write_iq3(const int (&levels)[4], int signs, float scale, float* values) {
  for (int j = 0; j < 4; ++j) {
    const float value = scale * static_cast<float>(levels[j]);
    *values++ = signs >> j & 1 ? -value : value;
  }
  return values;
}

float* write_iq3_xxs(uint16_t point, int signs, float scale, float* values) {
  int levels[4];
  for (int j = 0; j < 4; ++j) levels[j] = kIQ3XXSLevels[point_level(point, j, 3)];
  return write_iq3(levels, signs, scale, values);
}

float* write_iq3_s(uint16_t point, int signs, float scale, float* values) {
  int levels[4];
  for (int j = 0; j < 4; ++j) levels[j] = 2 * static_cast<int>(point_level(point, j, 3)) + 1;
  return write_iq3(levels, signs, scale, values);
}

float* write_iq1(uint16_t point, float shift, float scale, float* values) {
  for (int j = 0; j < 8; ++j)
    *values++ = scale * (static_cast<float>(static_cast<int>(point_level(point, j, 2)) - 1) + shift);
  return values;
}

size_t index_of(int point) {
  return static_cast<size_t>(point);
}

}  // namespace

void decode_iq2_xxs(const std::byte* blocks, int64_t count, float* values) {
  for (int64_t i = 0; i < count; i += kSuperBlock, blocks += kIQ2XXSBytes) {
    const float d = load_half(blocks);
    for (int group = 0; group < 8; ++group) {  // 32 values each
      const std::byte* points = blocks + 2 + group * 8;
      const auto packed = load<uint32_t>(points + 4);
      const float scale = d * (0.5F + static_cast<float>(packed >> 28)) * 0.25F;
      for (int k = 0; k < 4; ++k) {
        const int signs = expand_signs(static_cast<int>(packed >> (7 * k) & 127));
        values = write_iq2(kIQ2XXSCodes[index_of(load_u8(points + k))], signs, scale, values);
      }
    }
  }
}

void decode_iq2_xs(const std::byte* blocks, int64_t count, float* values) {
  for (int64_t i = 0; i < count; i += kSuperBlock, blocks += kIQ2XSBytes) {
    const float d = load_half(blocks);
    for (int k = 0; k < 32; ++k) {  // 8 values each
      const int scale_bits = load_u8(blocks + 66 + k / 4) >> (k / 2 % 2 * 4) & 15;
      const float scale = d * (0.5F + static_cast<float>(scale_bits)) * 0.25F;
      const int word = load<uint16_t>(blocks + 2 + k * 2);
      values = write_iq2(kIQ2XSCodes[index_of(word & 511)], expand_signs(word >> 9), scale, values);
    }
  }
}

void decode_iq2_s(const std::byte* blocks, int64_t count, float* values) {
  for (int64_t i = 0; i < count; i += kSuperBlock, blocks += kIQ2SBytes) {
    const float d = load_half(blocks);
    for (int k = 0; k < 32; ++k) {  // 8 values each
      const int scale_bits = load_u8(blocks + 74 + k / 4) >> (k / 2 % 2 * 4) & 15;
      const float scale = d * (0.5F + static_cast<float>(scale_bits)) * 0.25F;
      const int top = load_u8(blocks + 66 + k / 4) >> (k % 4 * 2) & 3;
      const int point = load_u8(blocks + 2 + k) | top << 8;
      values = write_iq2(kIQ2SCodes[index_of(point)], load_u8(blocks + 34 + k), scale, values);
    }
  }
}

void decode_iq3_xxs(const std::byte* blocks, int64_t count, float* values) {
  for (int64_t i = 0; i < count; i += kSuperBlock, blocks += kIQ3XXSBytes) {
    const float d = load_half(blocks);
    for (int group = 0; group < 8; ++group) {  // 32 values each
      const auto packed = load<uint32_t>(blocks + 66 + group * 4);
      const float scale = d * (0.5F + static_cast<float>(packed >> 28)) * 0.5F;
      for (int k = 0; k < 8; ++k) {  // 4 values each
        const int signs = expand_signs(static_cast<int>(packed >> (k / 2 * 7) & 127)) >> (k % 2 * 4);
        const int point = load_u8(blocks + 2 + group * 8 + k);
        values = write_iq3_xxs(kIQ3XXSCodes[index_of(point)], signs, scale, values);
      }
    }
  }
}

void decode_iq3_s(const std::byte* blocks, int64_t count, float* values) {
  for (int64_t i = 0; i < count; i += kSuperBlock, blocks += kIQ3SBytes) {
    const float d = load_half(blocks);
    for (int k = 0; k < 64; ++k) {  // 4 values each
      const int scale_bits = load_u8(blocks + 106 + k / 16) >> (k / 8 % 2 * 4) & 15;
      const float scale = d * static_cast<float>(1 + 2 * scale_bits);
      const int top = load_u8(blocks + 66 + k / 8) >> (k % 8) & 1;
      const int point = load_u8(blocks + 2 + k) | top << 8;
      const int signs = load_u8(blocks + 74 + k / 2) >> (k % 2 * 4);
      values = write_iq3_s(kIQ3SCodes[index_of(point)], signs, scale, values);
    }
  }
}

void decode_iq1_s(const std::byte* blocks, int64_t count, float* values) {
  for (int64_t i = 0; i < count; i += kSuperBlock, blocks += kIQ1SBytes) {
    const float d = load_half(blocks);
    for (int k = 0; k < 32; ++k) {  // 8 values each
      const int word = load<uint16_t>(blocks + 34 + k / 4 * 2);
      const float scale = d * static_cast<float>(2 * (word >> 12 & 7) + 1);
      const float shift = word & 0x8000 ? -kIQ1Shift : kIQ1Shift;
      const int point = load_u8(blocks + 2 + k) | (word >> (k % 4 * 3) & 7) << 8;
      values = write_iq1(kIQ1Codes[index_of(point)], shift, scale, values);
    }
  }
}

void decode_iq1_m(const std::byte* blocks, int64_t count, float* values) {
  for (int64_t i = 0; i < count; i += kSuperBlock, blocks += kIQ1MBytes) {
    const std::byte* scales = blocks + 48;
    uint16_t d_bits = 0;
    for (int word = 0; word < 4; ++word)
      d_bits = static_cast<uint16_t>(d_bits | load<uint16_t>(scales + word * 2) >> 12 << (4 * word));
    const float d = to_float(Half{d_bits});
    for (int k = 0; k < 32; ++k) {  // 8 values each
      const int scale_bits = load<uint16_t>(scales + k / 8 * 2) >> (k / 2 % 4 * 3) & 7;
      const float scale = d * static_cast<float>(2 * scale_bits + 1);
      const int half = load_u8(blocks + 32 + k / 2) >> (k % 2 * 4) & 15;
      const float shift = half & 8 ? -kIQ1Shift : kIQ1Shift;
      values = write_iq1(kIQ1Codes[index_of(load_u8(blocks + k) | (half & 7) << 8)], shift, scale, values);
    }
  }
}

}  // namespace tessera
