// Encoders of the IQ2 and IQ3 formats (layouts: lattice_blocks.cpp). For every group of values that shares a scale, scales
// around the obvious one are tried; each value pattern takes its nearest point; the super-block's float16 and the integer
// scales then follow, as in encode_block.cpp. Where a format stores seven signs for eight values, an odd number of minus signs
// forces the sign of one value to be wrong: the one where that costs least.
#include <cmath>
#include <limits>

#include "formats/encode_block.h"
#include "formats/lattice_points.h"
#include "formats/lattice_search.h"

namespace tessera {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int kSignGroup = 8;  // values whose signs are stored together
constexpr int kHighestScale = 15;

enum class SignRule : uint8_t { kFree, kEven };

struct Lattice {
  const LatticeSearch& search;
  int group;  // values per scale
  SignRule signs;
  float (*scale)(float d, int bits);  // what the 4-bit scale means, computed as in decoding
};

// Points and signs of one super-block.
struct LatticeBlock {
  float d = 0;
  std::array<int, kMostGroups> scales{};
  std::array<uint16_t, 64> points{};  // in order, dims() values each
  std::array<uint8_t, 32> signs{};    // one byte per eight values
};

// Points and signs of eight values starting at `first`, written to their places in `out`. Returns the error.
float choose_eight(const Lattice& lattice, const WeightedValues& block, int first, float scale,
                   LatticeBlock& out) {
  const float* weights = block.weights + first;
  float magnitudes[kSignGroup];
  int signs = 0;
  for (int i = 0; i < kSignGroup; ++i) {
    const float value = block.values[first + i];
    magnitudes[i] = std::fabs(value);
    signs |= std::signbit(value) ? 1 << i : 0;
  }
  const int dims = lattice.search.dims();
  const int per_group = kSignGroup / dims;
  const auto choose = [&](uint16_t* points) {
    float error = 0;
    for (int p = 0; p < per_group; ++p) {
      const auto found = lattice.search.nearest(magnitudes + p * dims, weights + p * dims, scale);
      points[p] = static_cast<uint16_t>(found.point);
      error += found.error;
    }
    return error;
  };
  uint16_t* points = &out.points[static_cast<size_t>(first / dims)];
  uint8_t& stored_signs = out.signs[static_cast<size_t>(first / kSignGroup)];
  const bool odd = (std::popcount(static_cast<unsigned>(signs)) & 1) != 0;
  if (lattice.signs == SignRule::kFree || !odd) {
    stored_signs = static_cast<uint8_t>(signs);
    return choose(points);
  }
  // The two values that weigh least are candidates for the wrong sign.
  int least = 0;
  int second = 1;
  const auto cost = [&](int i) { return weights[i] * magnitudes[i]; };
  if (cost(second) < cost(least)) std::swap(least, second);
  for (int i = 2; i < kSignGroup; ++i) {
    if (cost(i) < cost(least)) {
      second = least;
      least = i;
    } else if (cost(i) < cost(second)) {
      second = i;
    }
  }
  float best = kInfinity;
  for (const int flipped : {least, second}) {
    uint16_t candidate[2];
    magnitudes[flipped] = -magnitudes[flipped];
    const float error = choose(candidate);
    magnitudes[flipped] = -magnitudes[flipped];
    if (error < best || best == kInfinity) {
      best = error;
      std::copy_n(candidate, per_group, points);
      stored_signs = static_cast<uint8_t>(signs ^ 1 << flipped);
    }
  }
  return best;
}

float choose_group(const Lattice& lattice, const WeightedValues& block, int first, float scale,
                   LatticeBlock& out) {
  float error = 0;
  for (int i = 0; i < lattice.group; i += kSignGroup)
    error += choose_eight(lattice, block, first + i, scale, out);
  return error;
}

float signed_level(const Lattice& lattice, const LatticeBlock& block, int index) {
  const int dims = lattice.search.dims();
  const float level = lattice.search.point(block.points[static_cast<size_t>(index / dims)])[index % dims];
  return block.signs[static_cast<size_t>(index / kSignGroup)] >> (index % kSignGroup) & 1 ? -level : level;
}

// The scale of least squares of one group; at least a trace above zero, so that it can be divided by.
float fit_group_scale(const Lattice& lattice, const WeightedValues& block, int first,
                      const LatticeBlock& chosen, float fallback) {
  float product = 0;
  float square = 0;
  for (int i = first; i < first + lattice.group; ++i) {
    const float level = signed_level(lattice, chosen, i);
    product += block.weights[i] * block.values[i] * level;
    square += block.weights[i] * level * level;
  }
  const float scale = square > 0 ? product / square : fallback;
  return scale > 0 && std::isfinite(1 / scale) ? scale : fallback;
}

float search_group_scale(const Lattice& lattice, const WeightedValues& block, int first) {
  float largest = 0;
  for (int i = first; i < first + lattice.group; ++i) largest = std::max(largest, std::fabs(block.values[i]));
  const float obvious = largest / lattice.search.largest_level();
  if (!(obvious > 0) || !std::isfinite(2 / obvious)) return 0;
  LatticeBlock trial;
  float best_scale = obvious;
  float best_error = kInfinity;
  const auto consider = [&](float scale) {
    const float error = choose_group(lattice, block, first, scale, trial);
    const bool better = error < best_error;
    if (better) {
      best_error = error;
      best_scale = scale;
    }
    return better;
  };
  for (const float stretch : {0.6F, 0.72F, 0.85F, 1.0F, 1.2F, 1.5F, 2.0F}) {
    consider(obvious * stretch);
    consider(fit_group_scale(lattice, block, first, trial, obvious));
  }
  consider(largest / lattice.search.smallest_level());  // magnitudes that are all alike
  for (int round = 0; round < 3; ++round) {
    choose_group(lattice, block, first, best_scale, trial);
    if (!consider(fit_group_scale(lattice, block, first, trial, best_scale))) break;
  }
  return best_scale;
}

// The integer scales, points and signs for out.d.
float choose_block(const Lattice& lattice, const WeightedValues& block,
                   const std::array<float, kMostGroups>& wanted, LatticeBlock& out) {
  float total = 0;
  const float unit =
      (lattice.scale(out.d, 1) - lattice.scale(out.d, 0)) / 2;  // scale = unit * (2 * bits + 1)
  for (int g = 0; g * lattice.group < block.count; ++g) {
    const auto at = static_cast<size_t>(g);
    const float place = unit > 0 ? (wanted[at] / unit - 1) / 2 : 0;
    const int nearest =
        static_cast<int>(std::lrint(std::clamp(place, 0.0F, static_cast<float>(kHighestScale))));
    float best = kInfinity;
    int best_bits = 0;
    int last_bits = 0;
    for (int bits = std::max(nearest - 1, 0); bits <= std::min(nearest + 1, kHighestScale); ++bits) {
      const float scale = lattice.scale(out.d, bits);
      if (!(scale > 0) || !std::isfinite(1 / scale)) continue;
      const float error = choose_group(lattice, block, g * lattice.group, scale, out);
      last_bits = bits;
      if (error < best) {
        best = error;
        best_bits = bits;
      }
    }
    out.scales[at] = best_bits;
    if (best == kInfinity) continue;  // a block of zeros or nearly: d is zero and decodes to zeros
    if (last_bits != best_bits)
      choose_group(lattice, block, g * lattice.group, lattice.scale(out.d, best_bits), out);
    total += best;
  }
  return total;
}

float fit_block_d(const Lattice& lattice, const WeightedValues& block, const LatticeBlock& chosen) {
  double product = 0;
  double square = 0;
  for (int i = 0; i < block.count; ++i) {
    const double level =
        static_cast<double>(lattice.scale(1, chosen.scales[static_cast<size_t>(i / lattice.group)])) *
        signed_level(lattice, chosen, i);
    product += block.weights[i] * block.values[i] * level;
    square += block.weights[i] * level * level;
  }
  return square > 0 && product > 0 ? static_cast<float>(product / square) : chosen.d;
}

LatticeBlock search_block(const Lattice& lattice, const WeightedValues& block) {
  std::array<float, kMostGroups> wanted{};
  float largest = 0;
  for (int g = 0; g * lattice.group < block.count; ++g) {
    wanted[static_cast<size_t>(g)] = search_group_scale(lattice, block, g * lattice.group);
    largest = std::max(largest, wanted[static_cast<size_t>(g)]);
  }
  LatticeBlock best;
  float best_error = kInfinity;
  const auto consider = [&](float d) {
    LatticeBlock candidate;
    candidate.d = as_half(d);
    const float error = choose_block(lattice, block, wanted, candidate);
    const bool better = error < best_error;
    if (better) {
      best = candidate;
      best_error = error;
    }
    return better;
  };
  for (const float stretch : {0.94F, 1.0F, 1.06F})
    consider(largest / (lattice.scale(1, kHighestScale) * stretch));
  for (int round = 0; round < 2; ++round)
    if (!consider(fit_block_d(lattice, block, best))) break;
  return best;
}

float scale_iq2(float d, int bits) {
  return d * (0.5F + static_cast<float>(bits)) * 0.25F;
}
float scale_iq3_xxs(float d, int bits) {
  return d * (0.5F + static_cast<float>(bits)) * 0.5F;
}
float scale_iq3_s(float d, int bits) {
  return d * static_cast<float>(1 + 2 * bits);
}

constexpr std::array<float, 3> kIQ2Values = {kIQ2Levels[0], kIQ2Levels[1], kIQ2Levels[2]};
constexpr std::array<float, 8> kIQ3XXSValues = {4, 12, 20, 28, 36, 44, 52, 62};
constexpr std::array<float, 8> kIQ3SValues = {1, 3, 5, 7, 9, 11, 13, 15};

void or_into(std::byte* byte, int bits) {
  *byte |= static_cast<std::byte>(bits);
}

template <class Pack>
void encode_lattice(const Lattice& lattice, const float* values, const float* importance, int64_t count,
                    int bytes, std::byte* blocks, const Pack& pack) {
  encode_blocks(values, importance, count, kSuperBlock, bytes, blocks,
                [&](const WeightedValues& block, std::byte* out) {
                  const LatticeBlock result = search_block(lattice, block);
                  std::memset(out, 0, static_cast<size_t>(bytes));
                  store_half(out, result.d);
                  pack(result, out);
                });
}

}  // namespace

void encode_iq2_xxs(const float* values, const float* importance, int64_t count, std::byte* blocks) {
  static const LatticeSearch search(kIQ2XXSCodes, 8, 2, kIQ2Values);
  const Lattice lattice{search, 32, SignRule::kEven, scale_iq2};
  encode_lattice(lattice, values, importance, count, kIQ2XXSBytes, blocks,
                 [](const LatticeBlock& block, std::byte* out) {
                   for (size_t g = 0; g < 8; ++g) {
                     uint32_t packed = static_cast<uint32_t>(block.scales[g]) << 28;
                     for (size_t k = 0; k < 4; ++k) {
                       out[2 + g * 8 + k] = static_cast<std::byte>(block.points[g * 4 + k]);
                       packed |= static_cast<uint32_t>(block.signs[g * 4 + k] & 127) << (7 * k);
                     }
                     store(out + 2 + g * 8 + 4, packed);
                   }
                 });
}

void encode_iq2_xs(const float* values, const float* importance, int64_t count, std::byte* blocks) {
  static const LatticeSearch search(kIQ2XSCodes, 8, 2, kIQ2Values);
  const Lattice lattice{search, 16, SignRule::kEven, scale_iq2};
  encode_lattice(
      lattice, values, importance, count, kIQ2XSBytes, blocks, [](const LatticeBlock& block, std::byte* out) {
        for (size_t k = 0; k < 32; ++k)
          store(out + 2 + k * 2, static_cast<uint16_t>(block.points[k] | (block.signs[k] & 127) << 9));
        for (size_t g = 0; g < 16; ++g) or_into(out + 66 + g / 2, block.scales[g] << (g % 2 * 4));
      });
}

void encode_iq2_s(const float* values, const float* importance, int64_t count, std::byte* blocks) {
  static const LatticeSearch search(kIQ2SCodes, 8, 2, kIQ2Values);
  const Lattice lattice{search, 16, SignRule::kFree, scale_iq2};
  encode_lattice(lattice, values, importance, count, kIQ2SBytes, blocks,
                 [](const LatticeBlock& block, std::byte* out) {
                   for (size_t k = 0; k < 32; ++k) {
                     out[2 + k] = static_cast<std::byte>(block.points[k] & 255);
                     out[34 + k] = static_cast<std::byte>(block.signs[k]);
                     or_into(out + 66 + k / 4, block.points[k] >> 8 << (k % 4 * 2));
                   }
                   for (size_t g = 0; g < 16; ++g) or_into(out + 74 + g / 2, block.scales[g] << (g % 2 * 4));
                 });
}

void encode_iq3_xxs(const float* values, const float* importance, int64_t count, std::byte* blocks) {
  static const LatticeSearch search(kIQ3XXSCodes, 4, 3, kIQ3XXSValues);
  const Lattice lattice{search, 32, SignRule::kEven, scale_iq3_xxs};
  encode_lattice(lattice, values, importance, count, kIQ3XXSBytes, blocks,
                 [](const LatticeBlock& block, std::byte* out) {
                   for (size_t k = 0; k < 64; ++k) out[2 + k] = static_cast<std::byte>(block.points[k]);
                   for (size_t g = 0; g < 8; ++g) {
                     uint32_t packed = static_cast<uint32_t>(block.scales[g]) << 28;
                     for (size_t k = 0; k < 4; ++k)
                       packed |= static_cast<uint32_t>(block.signs[g * 4 + k] & 127) << (7 * k);
                     store(out + 66 + g * 4, packed);
                   }
                 });
}

void encode_iq3_s(const float* values, const float* importance, int64_t count, std::byte* blocks) {
  static const LatticeSearch search(kIQ3SCodes, 4, 3, kIQ3SValues);
  const Lattice lattice{search, 32, SignRule::kFree, scale_iq3_s};
  encode_lattice(lattice, values, importance, count, kIQ3SBytes, blocks,
                 [](const LatticeBlock& block, std::byte* out) {
                   for (size_t k = 0; k < 64; ++k) {
                     out[2 + k] = static_cast<std::byte>(block.points[k] & 255);
                     or_into(out + 66 + k / 8, block.points[k] >> 8 << (k % 8));
                   }
                   for (size_t k = 0; k < 32; ++k) out[74 + k] = static_cast<std::byte>(block.signs[k]);
                   for (size_t g = 0; g < 8; ++g) or_into(out + 106 + g / 2, block.scales[g] << (g % 2 * 4));
                 });
}

}  // namespace tessera
