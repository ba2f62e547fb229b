#include "formats/scale_search.h"

namespace tessera {

float choose_affine_codes(const WeightedValues& group, int highest, const Affine& map, int8_t* codes) {
  const float inverse = map.scale != 0 ? 1 / map.scale : 0;
  const float usable = std::isfinite(inverse) ? inverse : 0;
  const auto high = static_cast<float>(highest);
  float error = 0;
  for (int i = 0; i < group.count; ++i) {
    const float place = std::clamp((group.values[i] - map.offset) * usable, 0.0F, high);
    const auto code = static_cast<int>(std::lrint(place));
    codes[i] = static_cast<int8_t>(code);
    const float difference = group.values[i] - (map.scale * static_cast<float>(code) + map.offset);
    error += group.weights[i] * difference * difference;
  }
  return error;
}

Affine fit_affine(const WeightedValues& group, const int8_t* codes, const Affine& fallback,
                  OffsetRange range) {
  double weight = 0;
  double code_sum = 0;
  double code_square = 0;
  double value_sum = 0;
  double product = 0;
  for (int i = 0; i < group.count; ++i) {
    const double w = group.weights[i];
    const double code = codes[i];
    weight += w;
    code_sum += w * code;
    code_square += w * code * code;
    value_sum += w * group.values[i];
    product += w * code * group.values[i];
  }
  const double determinant = weight * code_square - code_sum * code_sum;
  Affine map = fallback;
  if (determinant > 0) {
    map.scale = static_cast<float>((weight * product - code_sum * value_sum) / determinant);
    map.offset = static_cast<float>((code_square * value_sum - code_sum * product) / determinant);
  }
  if (range == OffsetRange::kNotPositive && map.offset > 0) {
    map.offset = 0;
    if (code_square > 0) map.scale = static_cast<float>(product / code_square);
  }
  if (!(map.scale >= 0) || !std::isfinite(map.scale) || !std::isfinite(map.offset)) return fallback;
  return map;
}

Affine search_affine(const WeightedValues& group, int highest, OffsetRange range) {
  const auto [least, most] = std::minmax_element(group.values, group.values + group.count);
  float low = *least;
  const float high = *most;
  if (range == OffsetRange::kNotPositive) low = std::min(low, 0.0F);
  if (high <= low) return {0, low};  // a constant: the offset alone holds it
  std::array<int8_t, kLargestGroup> codes;
  const auto steps = static_cast<float>(highest);
  Affine best{(high - low) / steps, low};
  float best_error = choose_affine_codes(group, highest, best, codes.data());
  // Candidates leave out a little of the range at both ends, or reach a little beyond it.
  const float span = std::min(1.5F, 0.2F * steps + 0.2F);
  for (int step = -kCandidates / 2; step <= kCandidates; ++step) {
    const float cut = span * static_cast<float>(step) / kCandidates;
    const float scale = (high - low) / (steps + cut);
    for (const float shift : {0.0F, 0.5F}) {  // where the cut part lies
      Affine map{scale, low - shift * cut * scale};
      if (range == OffsetRange::kNotPositive) map.offset = std::min(map.offset, 0.0F);
      choose_affine_codes(group, highest, map, codes.data());
      map = fit_affine(group, codes.data(), map, range);
      const float error = choose_affine_codes(group, highest, map, codes.data());
      if (error < best_error) {
        best_error = error;
        best = map;
      }
    }
  }
  choose_affine_codes(group, highest, best, codes.data());
  for (int round = 0; round < 4; ++round) {
    const Affine map = fit_affine(group, codes.data(), best, range);
    const float error = choose_affine_codes(group, highest, map, codes.data());
    if (!(error < best_error)) break;
    best_error = error;
    best = map;
  }
  return best;
}

}  // namespace tessera
