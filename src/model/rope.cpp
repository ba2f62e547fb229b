// The frequency schedules. Sources: RoFormer (arXiv 2104.09864), YaRN (2309.00071), LongRoPE (2402.13753);
// the piecewise schedule kWavelengthRamp and the dynamic base follow the published reference implementation.
#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace tessera {
namespace {

// The pair index whose frequency makes `rotations` turns over the original context (YaRN, section 3.2).
double yarn_dimension(double rotations, double dim, double theta, double context) {
  return dim * std::log(context / (rotations * 2.0 * std::numbers::pi)) / (2.0 * std::log(theta));
}

}  // namespace

bool RopeSpec::depends_on_length() const {
  return scaling == RopeScaling::kDynamic || scaling == RopeScaling::kLongRope;
}

int64_t RopeSpec::table_key(int64_t length) const {
  if (!depends_on_length() || length <= original_context) return 0;
  return scaling == RopeScaling::kDynamic ? length : 1;
}

std::vector<float> RopeSpec::inverse_frequencies(int64_t length) const {
  CHECK(dim > 0 && dim % 2 == 0, "rotary width {}", dim);
  const auto pairs = static_cast<size_t>(dim / 2);
  const auto width = static_cast<double>(dim);
  double base = theta;
  if (scaling == RopeScaling::kDynamic) {
    // base * ((factor * length / original) - (factor - 1)) ^ (dim / (dim - 2)), never below the original
    // context
    const double present = static_cast<double>(std::max(length, original_context));
    const double ratio = factor * present / static_cast<double>(original_context) - (factor - 1.0);
    base = theta * std::pow(ratio, width / (width - 2.0));
  }
  std::vector<float> frequencies(pairs);
  for (size_t i = 0; i < pairs; ++i)
    frequencies[i] = static_cast<float>(1.0 / std::pow(base, 2.0 * static_cast<double>(i) / width));

  switch (scaling) {
    case RopeScaling::kNone:
    case RopeScaling::kDynamic:
      break;
    case RopeScaling::kLinear:
      for (float& frequency : frequencies) frequency = static_cast<float>(frequency / factor);
      break;
    case RopeScaling::kWavelengthRamp: {
      const double context = static_cast<double>(original_context);
      for (float& frequency : frequencies) {
        const double wavelength = 2.0 * std::numbers::pi / frequency;
        if (wavelength < context / high_freq_factor) continue;
        if (wavelength > context / low_freq_factor) {
          frequency = static_cast<float>(frequency / factor);
          continue;
        }
        const double smooth = (context / wavelength - low_freq_factor) / (high_freq_factor - low_freq_factor);
        frequency = static_cast<float>((1.0 - smooth) * frequency / factor + smooth * frequency);
      }
      break;
    }
    case RopeScaling::kYarn: {
      const double context = static_cast<double>(original_context);
      double low = yarn_dimension(beta_fast, width, theta, context);
      double high = yarn_dimension(beta_slow, width, theta, context);
      if (truncate) {
        low = std::floor(low);
        high = std::ceil(high);
      }
      low = std::max(low, 0.0);
      high = std::min(high, width - 1.0);
      if (low == high) high += 0.001;  // the ramp must have a slope
      for (size_t i = 0; i < pairs; ++i) {
        const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
        const double frequency = frequencies[i];
        frequencies[i] = static_cast<float>(frequency / factor * ramp + frequency * (1.0 - ramp));
      }
      break;
    }
    case RopeScaling::kLongRope: {
      const auto& divisor = length > original_context ? long_factors : short_factors;
      CHECK(divisor.size() == pairs, "{} rope factors for {} pairs", divisor.size(), pairs);
      for (size_t i = 0; i < pairs; ++i)
        frequencies[i] =
            static_cast<float>(1.0 / (divisor[i] * std::pow(theta, 2.0 * static_cast<double>(i) / width)));
      break;
    }
    case RopeScaling::kProportional: {
      const auto rotated = static_cast<size_t>(rotated_fraction * static_cast<double>(head_dim) / 2.0);
      for (size_t i = 0; i < pairs; ++i) {
        const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(head_dim);
        frequencies[i] = i < rotated ? static_cast<float>(1.0 / std::pow(theta, exponent) / factor) : 0.0f;
      }
      break;
    }
  }
  if (!divisors.empty()) {
    CHECK(divisors.size() == pairs, "{} rope divisors for {} pairs", divisors.size(), pairs);
    for (size_t i = 0; i < pairs; ++i) frequencies[i] /= divisors[i];
  }
  return frequencies;
}

}  // namespace tessera
