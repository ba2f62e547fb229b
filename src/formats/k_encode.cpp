// Encoders of the K formats (layouts: k_blocks.cpp): a search for scales and codes, then packing.
#include "formats/encode_block.h"

namespace tessera {
namespace {

using Packed = std::array<int, kSuperBlock>;

void or_into(std::byte* byte, int bits) {
  *byte |= static_cast<std::byte>(bits);
}

// Two-bit codes: group of 16 values g lies in bytes g / 8 * 32 + g % 2 * 16 at shift g % 8 / 2 * 2.
void pack_two_bits(const Packed& codes, std::byte* out) {
  for (int i = 0; i < kSuperBlock; ++i)
    or_into(out + i / 128 * 32 + i % 32, (codes[static_cast<size_t>(i)] & 3) << (i % 128 / 32 * 2));
}

// Four-bit codes: values 64 k + j and 64 k + 32 + j are the halves of byte 32 k + j.
void pack_four_bits(const Packed& codes, std::byte* out) {
  for (int i = 0; i < kSuperBlock; ++i)
    or_into(out + i / 64 * 32 + i % 32, (codes[static_cast<size_t>(i)] & 15) << (i % 64 / 32 * 4));
}

// The eight 6-bit pairs of Q4_K and Q5_K (see q4_k_scale in k_blocks.cpp).
void pack_scale_pairs(const AffineBlock& block, std::byte* out) {
  for (int j = 0; j < 4; ++j) {
    const int scale = block.scales[static_cast<size_t>(j)];
    const int minimum = block.minima[static_cast<size_t>(j)];
    const int scale_later = block.scales[static_cast<size_t>(j + 4)];
    const int minimum_later = block.minima[static_cast<size_t>(j + 4)];
    out[j] = static_cast<std::byte>(scale | scale_later >> 4 << 6);
    out[j + 4] = static_cast<std::byte>(minimum | minimum_later >> 4 << 6);
    out[j + 8] = static_cast<std::byte>((scale_later & 15) | (minimum_later & 15) << 4);
  }
}

Packed shifted(const std::array<int8_t, kSuperBlock>& codes, int by) {
  Packed packed;
  for (size_t i = 0; i < packed.size(); ++i) packed[i] = codes[i] + by;
  return packed;
}

}  // namespace

void encode_q2_k(const float* values, const float* importance, int64_t count, std::byte* blocks) {
  encode_blocks(values, importance, count, kSuperBlock, kQ2KBytes, blocks,
                [](const WeightedValues& block, std::byte* out) {
                  const AffineBlock result = search_affine_block(block, 3, 16, 15);
                  std::memset(out, 0, kQ2KBytes);
                  for (size_t g = 0; g < 16; ++g)
                    out[g] = static_cast<std::byte>(result.scales[g] | result.minima[g] << 4);
                  pack_two_bits(shifted(result.codes, 0), out + 16);
                  store_half(out + 80, result.d);
                  store_half(out + 82, result.dmin);
                });
}

void encode_q3_k(const float* values, const float* importance, int64_t count, std::byte* blocks) {
  encode_blocks(values, importance, count, kSuperBlock, kQ3KBytes, blocks,
                [](const WeightedValues& block, std::byte* out) {
                  const ScaledBlock result = search_scaled_block(block, LinearLevels{-4, 3}, 16, {-32, 31});
                  std::memset(out, 0, kQ3KBytes);
                  const Packed codes = shifted(result.codes, 4);
                  for (int i = 0; i < kSuperBlock; ++i)
                    or_into(out + i % 32, codes[static_cast<size_t>(i)] >> 2 << (i / 32));
                  pack_two_bits(codes, out + 32);
                  for (int g = 0; g < 16; ++g) {
                    const int scale = result.scales[static_cast<size_t>(g)] + 32;
                    or_into(out + 96 + g % 8, (scale & 15) << (g / 8 * 4));
                    or_into(out + 104 + g % 4, scale >> 4 << (g / 4 * 2));
                  }
                  store_half(out + 108, result.d);
                });
}

void encode_q4_k(const float* values, const float* importance, int64_t count, std::byte* blocks) {
  encode_blocks(values, importance, count, kSuperBlock, kQ4KBytes, blocks,
                [](const WeightedValues& block, std::byte* out) {
                  const AffineBlock result = search_affine_block(block, 15, 32, 63);
                  std::memset(out, 0, kQ4KBytes);
                  store_half(out, result.d);
                  store_half(out + 2, result.dmin);
                  pack_scale_pairs(result, out + 4);
                  pack_four_bits(shifted(result.codes, 0), out + 16);
                });
}

void encode_q5_k(const float* values, const float* importance, int64_t count, std::byte* blocks) {
  encode_blocks(values, importance, count, kSuperBlock, kQ5KBytes, blocks,
                [](const WeightedValues& block, std::byte* out) {
                  const AffineBlock result = search_affine_block(block, 31, 32, 63);
                  std::memset(out, 0, kQ5KBytes);
                  store_half(out, result.d);
                  store_half(out + 2, result.dmin);
                  pack_scale_pairs(result, out + 4);
                  const Packed codes = shifted(result.codes, 0);
                  for (int i = 0; i < kSuperBlock; ++i)
                    or_into(out + 16 + i % 32, codes[static_cast<size_t>(i)] >> 4 << (i / 32));
                  pack_four_bits(codes, out + 48);
                });
}

void encode_q6_k(const float* values, const float* importance, int64_t count, std::byte* blocks) {
  encode_blocks(
      values, importance, count, kSuperBlock, kQ6KBytes, blocks,
      [](const WeightedValues& block, std::byte* out) {
        const ScaledBlock result = search_scaled_block(block, LinearLevels{-32, 31}, 16, {-128, 127});
        std::memset(out, 0, kQ6KBytes);
        const Packed codes = shifted(result.codes, 32);
        for (int i = 0; i < kSuperBlock; ++i) {
          const int code = codes[static_cast<size_t>(i)];
          const int half = i / 128;
          const int quarter = i % 128 / 32;
          or_into(out + half * 64 + quarter % 2 * 32 + i % 32, (code & 15) << (quarter / 2 * 4));
          or_into(out + 128 + half * 32 + i % 32, code >> 4 << (quarter * 2));
        }
        for (size_t g = 0; g < 16; ++g) out[192 + g] = static_cast<std::byte>(result.scales[g]);
        store_half(out + 208, result.d);
      });
}

}  // namespace tessera
