// Blocks whose 4-bit codes index sixteen fixed levels:
//   IQ4_NL  32 values: float16 d, 16 bytes of codes (value j: low half of byte j, value j + 16: its high
//           half)
//           value = d * level
//   IQ4_XS  256 values: float16 d, 16 bits of scale tops, 4 bytes of scale low halves, 128 bytes of codes;
//           a 6-bit scale per 32
//           value = (d * (scale - 32)) * level
//   MXFP4   32 values: one E8M0 exponent byte e, 16 bytes of E2M1 codes (OCP Microscaling Formats 1.0,
//           section 5)
//           value = 2^(e - 127) * level; the levels here are doubled and the scale halved, so that both
//           stay exact
//   NVFP4   64 values: four scale bytes, each E4M3 without its sign for 16 values (0x7f: 0), 32 bytes of E2M1 codes, eight
//           for each 16 (value j: low half of byte j, value j + 8: its high half)
//           value = scale * level, doubled and halved in the same way
#include "formats/codebooks.h"

#include <cmath>
#include <limits>

#include "formats/encode_block.h"
#include "formats/float8.h"

namespace tessera {
namespace {

void decode_codes(const std::byte* codes, float scale, const std::array<int8_t, 16>& levels, float* values) {
  for (int j = 0; j < 16; ++j) {
    const int byte = load_u8(codes + j);
    values[j] = scale * static_cast<float>(levels[static_cast<size_t>(byte & 15)]);
    values[j + 16] = scale * static_cast<float>(levels[static_cast<size_t>(byte >> 4)]);
  }
}

// Sixteen bytes of two 4-bit codes.
void pack_codes(const int8_t* codes, std::byte* out) {
  for (int j = 0; j < 16; ++j) out[j] = static_cast<std::byte>(codes[j] | codes[j + 16] << 4);
}

// The nearest E2M1 codes for a (halved) scale; returns the weighted squared error.
float choose_e2m1(const WeightedValues& block, float scale, int8_t* codes) {
  float error = 0;
  for (int j = 0; j < block.count; ++j) {
    const float magnitude = std::fabs(block.values[j]);
    int code = 0;
    while (code < 7 && 2 * magnitude > scale * static_cast<float>(kTwiceE2M1[static_cast<size_t>(code)] +
                                                                  kTwiceE2M1[static_cast<size_t>(code) + 1]))
      ++code;
    const float difference = magnitude - scale * static_cast<float>(kTwiceE2M1[static_cast<size_t>(code)]);
    error += block.weights[j] * difference * difference;
    codes[j] = static_cast<int8_t>(code != 0 && block.values[j] < 0 ? code + 8 : code);
  }
  return error;
}

}  // namespace

void decode_iq4_nl(const std::byte* blocks, int64_t count, float* values) {
  for (int64_t i = 0; i < count; i += kSmallBlock, blocks += kIQ4NLBytes, values += kSmallBlock)
    decode_codes(blocks + 2, load_half(blocks), kIQ4Levels, values);
}

void decode_iq4_xs(const std::byte* blocks, int64_t count, float* values) {
  for (int64_t i = 0; i < count; i += kSuperBlock, blocks += kIQ4XSBytes) {
    const float d = load_half(blocks);
    const int tops = load<uint16_t>(blocks + 2);
    for (int group = 0; group < 8; ++group, values += 32) {
      const int low = load_u8(blocks + 4 + group / 2) >> (group % 2 * 4) & 15;
      const int scale = low | (tops >> (2 * group) & 3) << 4;
      decode_codes(blocks + 8 + group * 16, d * static_cast<float>(scale - 32), kIQ4Levels, values);
    }
  }
}

void decode_mxfp4(const std::byte* blocks, int64_t count, float* values) {
  for (int64_t i = 0; i < count; i += kSmallBlock, blocks += kMXFP4Bytes, values += kSmallBlock)
    decode_codes(blocks + 1, half_of_e8m0(static_cast<uint8_t>(*blocks)), kTwiceE2M1, values);
}

void decode_nvfp4(const std::byte* blocks, int64_t count, float* values) {
  for (int64_t i = 0; i < count; i += 64, blocks += kNVFP4Bytes) {
    for (int group = 0; group < 4; ++group, values += 16) {
      const auto bits = static_cast<uint8_t>(load_u8(blocks + group) & 0x7f);
      const float scale = bits == 0x7f ? 0.0F : 0.5F * float8_e4m3_to_float(bits);
      for (int j = 0; j < 8; ++j) {
        const int byte = load_u8(blocks + 4 + group * 8 + j);
        values[j] = scale * static_cast<float>(kTwiceE2M1[static_cast<size_t>(byte & 15)]);
        values[j + 8] = scale * static_cast<float>(kTwiceE2M1[static_cast<size_t>(byte >> 4)]);
      }
    }
  }
}

void encode_iq4_nl(const float* values, const float* importance, int64_t count, std::byte* blocks) {
  encode_blocks(values, importance, count, kSmallBlock, kIQ4NLBytes, blocks,
                [](const WeightedValues& block, std::byte* out) {
                  const CodebookLevels levels{kIQ4Levels};
                  std::array<int8_t, kSmallBlock> codes;
                  const float scale = as_half(search_scale(block, levels));
                  choose_codes(block, levels, scale, codes.data());
                  store_half(out, scale);
                  pack_codes(codes.data(), out + 2);
                });
}

void encode_iq4_xs(const float* values, const float* importance, int64_t count, std::byte* blocks) {
  encode_blocks(
      values, importance, count, kSuperBlock, kIQ4XSBytes, blocks,
      [](const WeightedValues& block, std::byte* out) {
        const ScaledBlock result = search_scaled_block(block, CodebookLevels{kIQ4Levels}, 32, {-32, 31});
        std::memset(out, 0, kIQ4XSBytes);
        store_half(out, result.d);
        uint16_t tops = 0;
        for (size_t g = 0; g < 8; ++g) {
          const int scale = result.scales[g] + 32;
          out[4 + g / 2] |= static_cast<std::byte>((scale & 15) << (g % 2 * 4));
          tops = static_cast<uint16_t>(tops | scale >> 4 << (2 * g));
          pack_codes(&result.codes[g * 32], out + 8 + g * 16);
        }
        store(out + 2, tops);
      });
}

void encode_mxfp4(const float* values, const float* importance, int64_t count, std::byte* blocks) {
  encode_blocks(
      values, importance, count, kSmallBlock, kMXFP4Bytes, blocks,
      [](const WeightedValues& block, std::byte* out) {
        float largest = 0;
        for (int j = 0; j < kSmallBlock; ++j) largest = std::max(largest, std::fabs(block.values[j]));
        // The exponent at which the largest value lies between 4 and 8, and its neighbours (the largest level is 6).
        const int middle = largest > 0 ? std::ilogb(largest) - 2 + 127 : 0;
        float best = std::numeric_limits<float>::infinity();
        std::array<int8_t, kSmallBlock> codes;
        for (int exponent = std::max(middle - 1, 0); exponent <= std::clamp(middle + 1, 0, 254); ++exponent) {
          const float error = choose_e2m1(block, half_of_e8m0(static_cast<uint8_t>(exponent)), codes.data());
          if (!(error < best) && best != std::numeric_limits<float>::infinity()) continue;
          best = error;
          out[0] = static_cast<std::byte>(exponent);
          pack_codes(codes.data(), out + 1);
        }
      });
}

}  // namespace tessera
