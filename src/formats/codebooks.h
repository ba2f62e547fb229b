// Fixed levels that 4-bit codes index, and the exponent scale of the OCP microscaling formats. Backends read
// them too.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace tessera {

// IQ4_NL and IQ4_XS: denser near zero, as normally distributed weights are.
inline constexpr std::array<int8_t, 16> kIQ4Levels = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                      1,    13,   25,  38,  53,  69,  89,  113};

// The sixteen E2M1 values (OCP Microscaling Formats 1.0, section 5.3.3) times two. Code 8, minus zero there,
// is zero.
inline constexpr std::array<int8_t, 16> kTwiceE2M1 = {0, 1,  2,  3,  4,  6,  8,  12,
                                                      0, -1, -2, -3, -4, -6, -8, -12};

// 2^(e - 128): half of an E8M0 scale. The code 255, NaN by that standard, gives 2^127 here, as the block
// format says.
[[nodiscard]] constexpr float half_of_e8m0(uint8_t e) {
  return std::bit_cast<float>(e < 2 ? 0x00200000u << e : static_cast<uint32_t>(e - 1) << 23);
}

}  // namespace tessera
