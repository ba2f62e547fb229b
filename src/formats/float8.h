// The two 8-bit floating-point types of checkpoints (OCP OFP8 1.0), decoded exactly: E4M3 (no infinities, NaN
// is all ones below the sign, largest 448) and E5M2 (IEEE-like: the upper half of a float16).
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "base/half.h"

namespace tessera {

[[nodiscard]] constexpr float float8_e4m3_to_float(uint8_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80u) << 24;
  const uint32_t exponent = bits >> 3 & 15u;
  const uint32_t mantissa = bits & 7u;
  if (exponent == 15 && mantissa == 7) return std::numeric_limits<float>::quiet_NaN();
  if (exponent == 0) {  // subnormal: mantissa * 2^-9
    const float magnitude = static_cast<float>(mantissa) * 0x1p-9F;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | (exponent + 120) << 23 | mantissa << 20);
}

[[nodiscard]] constexpr float float8_e5m2_to_float(uint8_t bits) {
  return to_float(Half{static_cast<uint16_t>(bits << 8)});
}

}  // namespace tessera
