// Searching scales for the encoders: the scale (and minimum) of a group of values that makes the weighted squared error
// smallest, where each value then takes its nearest code. Candidates around the obvious scale are each improved by
// alternating rounding and least squares (Lloyd's method), which never makes the error larger; the best one wins.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tessera {

inline constexpr int kLargestGroup = 256;

// The values lowest .. highest, each its own code.
struct LinearLevels {
  int lowest;
  int highest;

  [[nodiscard]] float low() const { return static_cast<float>(lowest); }
  [[nodiscard]] float high() const { return static_cast<float>(highest); }
  // How far around the obvious scale to look, in levels.
  [[nodiscard]] float span() const { return std::min(1.5F, 0.2F * high() + 0.2F); }
  [[nodiscard]] int code(float value) const {
    return static_cast<int>(std::lrint(std::clamp(value, low(), high())));
  }
  [[nodiscard]] float level(int code) const { return static_cast<float>(code); }
};

// A rising codebook of sixteen levels; codes are indices.
struct CodebookLevels {
  explicit CodebookLevels(const std::array<int8_t, 16>& values) {
    for (size_t i = 0; i < levels.size(); ++i) levels[i] = values[i];
    for (size_t i = 0; i < borders.size(); ++i) borders[i] = (levels[i] + levels[i + 1]) / 2;
  }
  std::array<float, 16> levels;
  std::array<float, 15> borders;

  [[nodiscard]] float low() const { return levels.front(); }
  [[nodiscard]] float high() const { return levels.back(); }
  [[nodiscard]] float span() const { return 0.2F * high(); }
  [[nodiscard]] int code(float value) const {  // borders below the value
    size_t code = 0;
    for (const size_t step : {size_t{8}, size_t{4}, size_t{2}, size_t{1}})
      code += value > borders[code + step - 1] ? step : 0;
    return static_cast<int>(code);
  }
  [[nodiscard]] float level(int code) const { return levels[static_cast<size_t>(code)]; }
};

// Values and their weights (how much an error in each counts).
struct WeightedValues {
  const float* values;
  const float* weights;
  int count;

  [[nodiscard]] WeightedValues part(int first, int size) const {
    return {values + first, weights + first, size};
  }
};

// Writes the nearest code of every value for `scale`; returns the weighted squared error.
template <class Levels>
float choose_codes(const WeightedValues& group, const Levels& levels, float scale, int8_t* codes) {
  const float inverse = scale != 0 ? 1 / scale : 0;
  const float usable = std::isfinite(inverse) ? inverse : 0;
  float error = 0;
  for (int i = 0; i < group.count; ++i) {
    const int code = levels.code(group.values[i] * usable);
    codes[i] = static_cast<int8_t>(code);
    const float difference = group.values[i] - scale * levels.level(code);
    error += group.weights[i] * difference * difference;
  }
  return error;
}

// The scale of least squares for given codes; `fallback` when every level is zero.
template <class Levels>
float fit_scale(const WeightedValues& group, const Levels& levels, const int8_t* codes, float fallback) {
  float product = 0;
  float square = 0;
  for (int i = 0; i < group.count; ++i) {
    const float level = levels.level(codes[i]);
    product += group.weights[i] * group.values[i] * level;
    square += group.weights[i] * level * level;
  }
  return square > 0 ? product / square : fallback;
}

inline constexpr int kCandidates = 6;  // on each side of the obvious scale

// The best scale found for value = scale * level(code). Zero for a group of zeros.
template <class Levels>
float search_scale(const WeightedValues& group, const Levels& levels) {
  float extreme = 0;
  for (int i = 0; i < group.count; ++i)
    if (std::fabs(group.values[i]) > std::fabs(extreme)) extreme = group.values[i];
  if (extreme == 0) return 0;
  std::array<int8_t, kLargestGroup> codes;
  float best_scale = extreme / levels.low();
  float best_error = choose_codes(group, levels, best_scale, codes.data());
  for (const float end : {levels.low(), levels.high()}) {
    for (int step = -kCandidates; step <= kCandidates; ++step) {
      const float target = end + std::copysign(levels.span() * static_cast<float>(step) / kCandidates, end);
      float scale = extreme / target;
      choose_codes(group, levels, scale, codes.data());
      scale = fit_scale(group, levels, codes.data(), scale);
      const float error = choose_codes(group, levels, scale, codes.data());
      if (error < best_error) {
        best_error = error;
        best_scale = scale;
      }
    }
  }
  choose_codes(group, levels, best_scale, codes.data());
  for (int round = 0; round < 4; ++round) {
    const float scale = fit_scale(group, levels, codes.data(), best_scale);
    const float error = choose_codes(group, levels, scale, codes.data());
    if (!(error < best_error)) break;
    best_error = error;
    best_scale = scale;
  }
  return best_scale;
}

// value = scale * code + offset.
struct Affine {
  float scale = 0;
  float offset = 0;
};

// Which offsets a format can hold.
enum class OffsetRange : uint8_t { kAny, kNotPositive };

// Writes the nearest codes 0 .. highest; returns the weighted squared error.
float choose_affine_codes(const WeightedValues& group, int highest, const Affine& map, int8_t* codes);
// Least squares for given codes.
Affine fit_affine(const WeightedValues& group, const int8_t* codes, const Affine& fallback,
                  OffsetRange range);
// The best map found.
Affine search_affine(const WeightedValues& group, int highest, OffsetRange range);

}  // namespace tessera
