#include "formats/encode_block.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tessera {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

int nearest_integer(float value, const IntegerRange& range) {
  const float bounded =
      std::clamp(value, static_cast<float>(range.lowest), static_cast<float>(range.highest));
  return static_cast<int>(std::lrint(bounded));
}

// Integer scales and codes for a given d: for each group the better of the nearest scale and its neighbours.
template <class Levels>
float choose_scales(const WeightedValues& block, const Levels& levels, int group, const IntegerRange& range,
                    const std::array<float, kMostGroups>& wanted, ScaledBlock& result) {
  float total = 0;
  std::array<int8_t, kLargestGroup> codes;
  for (int g = 0; g * group < block.count; ++g) {
    const WeightedValues part = block.part(g * group, group);
    const auto at = static_cast<size_t>(g);
    const int nearest = result.d != 0 ? nearest_integer(wanted[at] / result.d, range) : 0;
    float best = kInfinity;
    for (int scale = std::max(nearest - 1, range.lowest); scale <= std::min(nearest + 1, range.highest);
         ++scale) {
      const float error = choose_codes(part, levels, result.d * static_cast<float>(scale), codes.data());
      if (error < best || best == kInfinity) {
        best = error;
        result.scales[at] = scale;
        std::copy_n(codes.begin(), group, result.codes.begin() + g * group);
      }
    }
    total += best;
  }
  return total;
}

// d of least squares for given scales and codes.
template <class Levels>
float fit_d(const WeightedValues& block, const Levels& levels, int group, const ScaledBlock& result) {
  double product = 0;
  double square = 0;
  for (int i = 0; i < block.count; ++i) {
    const auto at = static_cast<size_t>(i);
    const double level =
        static_cast<double>(result.scales[static_cast<size_t>(i / group)]) * levels.level(result.codes[at]);
    product += block.weights[i] * block.values[i] * level;
    square += block.weights[i] * level * level;
  }
  return square > 0 ? static_cast<float>(product / square) : result.d;
}

template <class Levels>
ScaledBlock search_scaled(const WeightedValues& block, const Levels& levels, int group,
                          const IntegerRange& range) {
  std::array<float, kMostGroups> wanted{};
  float extreme = 0;
  for (int g = 0; g * group < block.count; ++g) {
    wanted[static_cast<size_t>(g)] = search_scale(block.part(g * group, group), levels);
    if (std::fabs(wanted[static_cast<size_t>(g)]) > std::fabs(extreme))
      extreme = wanted[static_cast<size_t>(g)];
  }
  ScaledBlock best;
  float best_error = kInfinity;
  const auto consider = [&](float d) {
    ScaledBlock candidate;
    candidate.d = as_half(d);
    const float error = choose_scales(block, levels, group, range, wanted, candidate);
    const bool better = error < best_error || best_error == kInfinity;
    if (better) {
      best = candidate;
      best_error = error;
    }
    return better;
  };
  for (const int end : {range.lowest, range.highest})
    for (const float stretch : {0.97F, 1.0F, 1.03F}) consider(extreme / (static_cast<float>(end) * stretch));
  for (int round = 0; round < 3; ++round)
    if (!consider(fit_d(block, levels, group, best))) break;
  return best;
}

float choose_affine_scales(const WeightedValues& block, int highest_code, int group,
                           const IntegerRange& range, const std::array<Affine, kMostGroups>& wanted,
                           AffineBlock& result) {
  float total = 0;
  std::array<int8_t, kLargestGroup> codes;
  for (int g = 0; g * group < block.count; ++g) {
    const WeightedValues part = block.part(g * group, group);
    const auto at = static_cast<size_t>(g);
    const int scale_near = result.d > 0 ? nearest_integer(wanted[at].scale / result.d, range) : 0;
    const int minimum_near = result.dmin > 0 ? nearest_integer(-wanted[at].offset / result.dmin, range) : 0;
    float best = kInfinity;
    for (int scale = std::max(scale_near - 1, 0); scale <= std::min(scale_near + 1, range.highest); ++scale) {
      for (int minimum = std::max(minimum_near - 1, 0); minimum <= std::min(minimum_near + 1, range.highest);
           ++minimum) {
        const Affine map{result.d * static_cast<float>(scale), -(result.dmin * static_cast<float>(minimum))};
        const float error = choose_affine_codes(part, highest_code, map, codes.data());
        if (error < best || best == kInfinity) {
          best = error;
          result.scales[at] = scale;
          result.minima[at] = minimum;
          std::copy_n(codes.begin(), group, result.codes.begin() + g * group);
        }
      }
    }
    total += best;
  }
  return total;
}

struct TwoScales {
  float d;
  float dmin;
};

// d and dmin of least squares for given integers and codes; both must stay positive to be of use.
TwoScales fit_two_scales(const WeightedValues& block, int group, const AffineBlock& result) {
  double aa = 0;
  double ab = 0;
  double bb = 0;
  double ax = 0;
  double bx = 0;
  for (int i = 0; i < block.count; ++i) {
    const auto g = static_cast<size_t>(i / group);
    const double w = block.weights[i];
    const double a = static_cast<double>(result.scales[g]) * result.codes[static_cast<size_t>(i)];
    const double b = -static_cast<double>(result.minima[g]);
    aa += w * a * a;
    ab += w * a * b;
    bb += w * b * b;
    ax += w * a * block.values[i];
    bx += w * b * block.values[i];
  }
  const double determinant = aa * bb - ab * ab;
  if (!(determinant > 1e-9 * aa * bb)) return {result.d, result.dmin};
  const auto d = static_cast<float>((bb * ax - ab * bx) / determinant);
  const auto dmin = static_cast<float>((aa * bx - ab * ax) / determinant);
  return d > 0 && dmin > 0 ? TwoScales{d, dmin} : TwoScales{result.d, result.dmin};
}

}  // namespace

BlockWeights::BlockWeights(const float* importance, int count) {
  weights_.fill(1);
  if (importance == nullptr) return;
  float sum = 0;
  for (int i = 0; i < count; ++i) sum += importance[i];
  if (sum > 0 && std::isfinite(sum)) std::copy_n(importance, count, weights_.begin());
}

ScaledBlock search_scaled_block(const WeightedValues& block, const LinearLevels& levels, int group,
                                const IntegerRange& range) {
  return search_scaled(block, levels, group, range);
}

ScaledBlock search_scaled_block(const WeightedValues& block, const CodebookLevels& levels, int group,
                                const IntegerRange& range) {
  return search_scaled(block, levels, group, range);
}

AffineBlock search_affine_block(const WeightedValues& block, int highest_code, int group, int highest_scale) {
  const IntegerRange range{0, highest_scale};
  std::array<Affine, kMostGroups> wanted;
  float largest_scale = 0;
  float largest_minimum = 0;
  for (int g = 0; g * group < block.count; ++g) {
    const Affine map = search_affine(block.part(g * group, group), highest_code, OffsetRange::kNotPositive);
    wanted[static_cast<size_t>(g)] = map;
    largest_scale = std::max(largest_scale, map.scale);
    largest_minimum = std::max(largest_minimum, -map.offset);
  }
  AffineBlock best;
  float best_error = kInfinity;
  const auto consider = [&](const TwoScales& scales) {
    AffineBlock candidate;
    candidate.d = as_half(scales.d);
    candidate.dmin = as_half(scales.dmin);
    const float error = choose_affine_scales(block, highest_code, group, range, wanted, candidate);
    const bool better = error < best_error || best_error == kInfinity;
    if (better) {
      best = candidate;
      best_error = error;
    }
    return better;
  };
  const auto steps = static_cast<float>(highest_scale);
  for (const float stretch : {0.97F, 1.0F, 1.03F})
    consider({largest_scale / (steps * stretch), largest_minimum / (steps * stretch)});
  for (int round = 0; round < 3; ++round)
    if (!consider(fit_two_scales(block, group, best))) break;
  return best;
}

}  // namespace tessera
