// exp, tanh, erf and the activations on vectors, in float32 with errors of about one unit in the last place of the result (erf:
// 2e-7 absolute). NaN stays NaN, infinities give the limits.
#pragma once

#include "backend/cpu/kernels/simd.h"

namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE {
namespace {

// exp(x) = 2^n exp(r), n = round(x / ln 2), |r| <= ln 2 / 2; the Taylor series of exp to r^7 is exact to 6e-9 there. 2^n is
// applied in two halves, so that results run through the subnormals to 0 and up to infinity.
TESSERA_INLINE Vf exp(Vf x) {
  x = min(splat(89.0f), max(splat(-105.0f), x));
  const Vi n = nearest_int(x * 1.44269504088896341f);
  const Vf turns = to_float(n);
  Vf r =
      fma(turns, splat(-0.693359375f), x);  // ln 2 in two parts: the first has 9 bits, its products are exact
  r = fma(turns, splat(2.12194440e-4f), r);
  Vf p = splat(1.0f / 5040);
  p = fma(p, r, splat(1.0f / 720));
  p = fma(p, r, splat(1.0f / 120));
  p = fma(p, r, splat(1.0f / 24));
  p = fma(p, r, splat(1.0f / 6));
  p = fma(p, r, splat(0.5f));
  p = fma(p, r, splat(1.0f));
  p = fma(p, r, splat(1.0f));
  const Vi half = n >> 1;
  return p * as_float((half + 127) << 23) * as_float((n - half + 127) << 23);
}

// Small arguments: the Taylor series to x^13; others 1 - 2 / (exp(2 |x|) + 1).
TESSERA_INLINE Vf tanh(Vf x) {
  const Vf magnitude = absolute(x);
  const Vf z = x * x;
  Vf p = splat(21844.0f / 6081075);
  p = fma(p, z, splat(-1382.0f / 155925));
  p = fma(p, z, splat(62.0f / 2835));
  p = fma(p, z, splat(-17.0f / 315));
  p = fma(p, z, splat(2.0f / 15));
  p = fma(p, z, splat(-1.0f / 3));
  const Vf small = fma(p * z, x, x);
  const Vf large = 1.0f - 2.0f / (exp(magnitude + magnitude) + 1.0f);
  const Vf with_sign = as_float(as_int(large) | (as_int(x) & static_cast<int32_t>(0x80000000)));
  return select(magnitude < 0.4f, small, with_sign);
}

// |x| < 1: the Maclaurin series to x^21; others Abramowitz and Stegun, formula 7.1.26.
TESSERA_INLINE Vf erf(Vf x) {
  const Vf magnitude = absolute(x);
  const Vf z = x * x;
  Vf p = splat(1.0f / 76204800);  // 1 / (n! (2n + 1)), n = 10, alternating
  p = fma(p, z, splat(-1.0f / 6894720));
  p = fma(p, z, splat(1.0f / 685440));
  p = fma(p, z, splat(-1.0f / 75600));
  p = fma(p, z, splat(1.0f / 9360));
  p = fma(p, z, splat(-1.0f / 1320));
  p = fma(p, z, splat(1.0f / 216));
  p = fma(p, z, splat(-1.0f / 42));
  p = fma(p, z, splat(1.0f / 10));
  p = fma(p, z, splat(-1.0f / 3));
  p = fma(p, z, splat(1.0f));
  const Vf small = p * x * 1.12837916709551257f;
  const Vf t = 1.0f / fma(magnitude, splat(0.3275911f), splat(1.0f));
  Vf q = splat(1.061405429f);
  q = fma(q, t, splat(-1.453152027f));
  q = fma(q, t, splat(1.421413741f));
  q = fma(q, t, splat(-0.284496736f));
  q = fma(q, t, splat(0.254829592f));
  const Vf large = 1.0f - q * t * exp(-z);
  const Vf with_sign = as_float(as_int(large) | (as_int(x) & static_cast<int32_t>(0x80000000)));
  return select(magnitude < 1.0f, small, with_sign);
}

TESSERA_INLINE Vf sigmoid(Vf x) {
  return 1.0f / (1.0f + exp(-x));
}

// log(1 + exp(x)) = max(x, 0) + log(1 + z) with z = exp(-|x|) <= 1, and log(1 + z) = 2 artanh(z / (2 + z)) by its series to
// the 17th power (the argument is at most 1/3).
TESSERA_INLINE Vf softplus(Vf x) {
  const Vf z = exp(-absolute(x));
  const Vf w = z / (z + 2.0f);
  const Vf square = w * w;
  Vf p = splat(2.0f / 17);
  p = fma(p, square, splat(2.0f / 15));
  p = fma(p, square, splat(2.0f / 13));
  p = fma(p, square, splat(2.0f / 11));
  p = fma(p, square, splat(2.0f / 9));
  p = fma(p, square, splat(2.0f / 7));
  p = fma(p, square, splat(2.0f / 5));
  p = fma(p, square, splat(2.0f / 3));
  p = fma(p, square, splat(2.0f));
  return max(splat(0.0f), x) + p * w;
}

}  // namespace
}  // namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE
