// Philox4x32-10, the counter-based generator of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"
// (SC 2011). A draw is a pure function of key and counter, so that the same seed gives the same text whatever
// the thread count, the batch or the backend.
#pragma once

#include <array>
#include <cstdint>

namespace tessera {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

[[nodiscard]] constexpr PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53u;
  constexpr uint64_t kMultiplier1 = 0xCD9E8D57u;
  constexpr uint32_t kWeyl0 = 0x9E3779B9u;  // the golden ratio
  constexpr uint32_t kWeyl1 = 0xBB67AE85u;  // sqrt(3) - 1
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

// What a draw is for: independent streams of one seed.
enum class DrawPurpose : uint32_t { kToken = 0 };

// A uniform number in [0, 1) with 24 bits, so that it is exact in float32 and never 1.
[[nodiscard]] constexpr float philox_uniform(uint64_t seed, uint32_t choice, uint32_t position,
                                             DrawPurpose purpose) {
  const PhiloxCounter random = philox4x32({choice, position, static_cast<uint32_t>(purpose), 0},
                                          {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return static_cast<float>(random[0] >> 8) * 0x1p-24f;
}

}  // namespace tessera
