// What the block encoders share: weights of a block, and the searches over super-blocks of small integer scales.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "formats/block_codecs.h"
#include "formats/scale_search.h"

namespace tessera {

// One weight per value of a block: the importance given, or one for all where there is none or it says nothing (all zero,
// not finite).
class BlockWeights {
 public:
  BlockWeights(const float* importance, int count);
  [[nodiscard]] const float* data() const { return weights_.data(); }

 private:
  std::array<float, kSuperBlock> weights_;
};

// Runs body(values, weights, block) for every block.
template <class Body>
void encode_blocks(const float* values, const float* importance, int64_t count, int block_values,
                   int block_bytes, std::byte* blocks, const Body& body) {
  for (int64_t i = 0; i < count; i += block_values, blocks += block_bytes) {
    const BlockWeights weights(importance == nullptr ? nullptr : importance + i, block_values);
    body(WeightedValues{values + i, weights.data(), block_values}, blocks);
  }
}

// `value` as a float16 would store it.
[[nodiscard]] inline float as_half(float value) {
  return to_float(to_half(value));
}

inline constexpr int kMostGroups = 16;

// value = (d * scales[group]) * level(code)
struct ScaledBlock {
  float d = 0;  // a float16
  std::array<int, kMostGroups> scales{};
  std::array<int8_t, kSuperBlock> codes{};
};

// value = (d * scales[group]) * code - dmin * minima[group]
struct AffineBlock {
  float d = 0;
  float dmin = 0;
  std::array<int, kMostGroups> scales{};
  std::array<int, kMostGroups> minima{};
  std::array<int8_t, kSuperBlock> codes{};
};

struct IntegerRange {
  int lowest;
  int highest;
};

// A super-block of groups of `group` values with integer scales in `range`.
[[nodiscard]] ScaledBlock search_scaled_block(const WeightedValues& block, const LinearLevels& levels,
                                              int group, const IntegerRange& range);
[[nodiscard]] ScaledBlock search_scaled_block(const WeightedValues& block, const CodebookLevels& levels,
                                              int group, const IntegerRange& range);
// The same with minima; codes 0 .. highest_code, scales and minima 0 .. highest_scale.
[[nodiscard]] AffineBlock search_affine_block(const WeightedValues& block, int highest_code, int group,
                                              int highest_scale);

}  // namespace tessera
