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
#include "formats/codebooks.h"

#include "formats/block_codecs.h"

namespace tessera {
namespace {

void decode_codes(const std::byte* codes, float scale, const std::array<int8_t, 16>& levels, float* values) {
  for (int j = 0; j < 16; ++j) {
    const int byte = load_u8(codes + j);
    values[j] = scale * static_cast<float>(levels[static_cast<size_t>(byte & 15)]);
    values[j + 16] = scale * static_cast<float>(levels[static_cast<size_t>(byte >> 4)]);
  }
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

}  // namespace tessera
