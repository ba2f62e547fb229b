// The point tables of the lattice formats (IQ1, IQ2, IQ3): a block stores indices of points of four or eight
// small coordinates, chosen by the format's author from a lattice; the tables cannot be derived. Points are
// kept as packed codes (see lattice_points.cpp); point_level gives a coordinate.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace tessera {

extern const std::array<uint16_t, 2048> kIQ1Codes;    // 8 coordinates, 2 bits each: level - 1
extern const std::array<uint16_t, 256> kIQ2XXSCodes;  // 8 coordinates, 2 bits each: kIQ2Levels
extern const std::array<uint16_t, 512> kIQ2XSCodes;
extern const std::array<uint16_t, 1024> kIQ2SCodes;
extern const std::array<uint16_t, 256> kIQ3XXSCodes;  // 4 coordinates, 3 bits each: kIQ3XXSLevels
extern const std::array<uint16_t, 512> kIQ3SCodes;    // 4 coordinates, 3 bits each: 2 * level + 1

inline constexpr std::array<int8_t, 3> kIQ2Levels = {8, 25, 43};
inline constexpr std::array<int8_t, 8> kIQ3XXSLevels = {4, 12, 20, 28, 36, 44, 52, 62};

// Level number of coordinate `index` of a packed point.
[[nodiscard]] constexpr size_t point_level(uint16_t code, int index, int bits) {
  return static_cast<size_t>(code >> (index * bits) & ((1 << bits) - 1));
}

// The eight signs that seven bits stand for: the eighth makes the number of minus signs even.
[[nodiscard]] constexpr int expand_signs(int seven_bits) {
  return seven_bits | (std::popcount(static_cast<unsigned>(seven_bits)) & 1) << 7;
}

}  // namespace tessera
