// Products of signed 8-bit codes with 8-bit activations. Two shapes: `dot32`, the 32 codes of one block of one row (a few
// tokens), and `dot4`, four codes of kWidth rows at once (tiles, many tokens).
#pragma once

#include "backend/cpu/kernels/simd.h"

namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE {
namespace {

#if defined(TESSERA_SIMD_AVX512)
// The 8-bit dot product of this set takes unsigned by signed: weight codes are stored + 128, and what that adds is taken off by
// starting the sum at Int8Activations::offsets.
constexpr bool kCodesAreOffset = true;
#else
constexpr bool kCodesAreOffset = false;
#endif

#if defined(TESSERA_SIMD_AVX512) || defined(TESSERA_SIMD_AVX2)
struct Codes {
  __m256i bytes;
};
TESSERA_INLINE Codes load_codes(const std::byte* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))};
}
// Sixteen bytes of two codes: low nibbles are the first sixteen, each code - 8.
TESSERA_INLINE Codes load_nibble_codes(const std::byte* p) {
  const __m128i packed = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(packed), _mm_srli_epi16(packed, 4), 1);
  return {_mm256_sub_epi8(_mm256_and_si256(both, _mm256_set1_epi8(15)), _mm256_set1_epi8(8))};
}
TESSERA_INLINE void store_codes(uint8_t* p, Codes codes) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), codes.bytes);
}
#else
struct Codes {
  typedef int8_t Bytes __attribute__((vector_size(16)));
  Bytes half[2];
};
TESSERA_INLINE Codes load_codes(const std::byte* p) {
  Codes codes;
  std::memcpy(codes.half, p, 32);
  return codes;
}
TESSERA_INLINE Codes load_nibble_codes(const std::byte* p) {
  typedef uint8_t Unsigned __attribute__((vector_size(16)));
  Unsigned packed;
  std::memcpy(&packed, p, 16);
  return {{reinterpret_cast<Codes::Bytes>(packed & 15) - 8, reinterpret_cast<Codes::Bytes>(packed >> 4) - 8}};
}
TESSERA_INLINE void store_codes(uint8_t* p, Codes codes) {
  std::memcpy(p, codes.half, 32);
}
#endif

// The lanes of the result add up to the sum of 32 products. Codes may be -128, activations not.
#if defined(TESSERA_SIMD_AVX2)
TESSERA_INLINE Vi dot32(Codes w, const int8_t* x) {
  const __m256i values = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w.bytes), _mm256_sign_epi8(values, w.bytes));
  return reinterpret_cast<Vi>(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
#elif defined(TESSERA_SIMD_SSE2)
TESSERA_INLINE Vi dot32(Codes w, const int8_t* x) {
  Vi total = {};
  TESSERA_UNROLL
  for (int h = 0; h < 2; ++h) {
    const __m128i codes = reinterpret_cast<__m128i>(w.half[h]);
    const __m128i values = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + 16 * h));
    const __m128i low = _mm_madd_epi16(_mm_srai_epi16(_mm_unpacklo_epi8(codes, codes), 8),
                                       _mm_srai_epi16(_mm_unpacklo_epi8(values, values), 8));
    const __m128i high = _mm_madd_epi16(_mm_srai_epi16(_mm_unpackhi_epi8(codes, codes), 8),
                                        _mm_srai_epi16(_mm_unpackhi_epi8(values, values), 8));
    total += reinterpret_cast<Vi>(low) + reinterpret_cast<Vi>(high);
  }
  return total;
}
#elif defined(TESSERA_SIMD_PORTABLE)
typedef int16_t Shorts __attribute__((vector_size(16)));
typedef int8_t EightBytes __attribute__((vector_size(8)));
TESSERA_INLINE Vi dot32(Codes w, const int8_t* x) {
  Vi total = {};
  TESSERA_UNROLL
  for (int part = 0; part < 4; ++part) {
    EightBytes codes;
    EightBytes values;
    std::memcpy(&codes, reinterpret_cast<const char*>(w.half) + 8 * part, 8);
    std::memcpy(&values, x + 8 * part, 8);
    // Each product fits 16 bits; neighbours are added as 32.
    const Vi products = reinterpret_cast<Vi>(__builtin_convertvector(codes, Shorts) *
                                             __builtin_convertvector(values, Shorts));
    total += ((products << 16) >> 16) + (products >> 16);
  }
  return total;
}
#endif

// The same for each half of a block on its own: on AVX2 the halves are the lower and the upper lanes.
#if defined(TESSERA_SIMD_AVX2)
struct Halves {
  Vi both;
};
TESSERA_INLINE Halves dot_halves(Codes w, const int8_t* x) {
  return {dot32(w, x)};
}
TESSERA_INLINE Vf add_halves(Halves products, float first, float second, Vf total) {
  const __m256 scales =
      _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_set1_ps(first)), _mm_set1_ps(second), 1);
  return fma(to_float(products.both), reinterpret_cast<Vf>(scales), total);
}
#elif defined(TESSERA_SIMD_SSE2) || defined(TESSERA_SIMD_PORTABLE)
struct Halves {
  Vi half[2];
};
TESSERA_INLINE Vi dot16(const Codes::Bytes& w, const int8_t* x) {
  Vi total = {};
  TESSERA_UNROLL
  for (int i = 0; i < 16; ++i) total[i % kWidth] += w[i] * x[i];
  return total;
}
TESSERA_INLINE Halves dot_halves(Codes w, const int8_t* x) {
  return {{dot16(w.half[0], x), dot16(w.half[1], x + 16)}};
}
TESSERA_INLINE Vf add_halves(Halves products, float first, float second, Vf total) {
  return fma(to_float(products.half[1]), splat(second), fma(to_float(products.half[0]), splat(first), total));
}
#endif

// sum[l] + the four products of w's lane l (codes of row l) with the four activations in x.
TESSERA_INLINE Vi dot4(Vi total, Vi w, Vi x) {
#if defined(TESSERA_SIMD_AVX512)
  return reinterpret_cast<Vi>(_mm512_dpbusd_epi32(
      reinterpret_cast<__m512i>(total), reinterpret_cast<__m512i>(w), reinterpret_cast<__m512i>(x)));
#elif defined(TESSERA_SIMD_AVX2)
  const auto codes = reinterpret_cast<__m256i>(w);
  const __m256i pairs =
      _mm256_maddubs_epi16(_mm256_abs_epi8(codes), _mm256_sign_epi8(reinterpret_cast<__m256i>(x), codes));
  return total + reinterpret_cast<Vi>(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
#elif defined(TESSERA_SIMD_SSE2)
  const auto codes = reinterpret_cast<__m128i>(w);
  const auto values = reinterpret_cast<__m128i>(x);
  const __m128i odd = _mm_madd_epi16(_mm_srai_epi16(codes, 8), _mm_srai_epi16(values, 8));
  const __m128i even = _mm_madd_epi16(_mm_srai_epi16(_mm_slli_epi16(codes, 8), 8),
                                      _mm_srai_epi16(_mm_slli_epi16(values, 8), 8));
  return total + reinterpret_cast<Vi>(odd) + reinterpret_cast<Vi>(even);
#else
  const auto codes = reinterpret_cast<Shorts>(w);
  const auto values = reinterpret_cast<Shorts>(x);
  const auto odd = reinterpret_cast<Vi>((codes >> 8) * (values >> 8));
  const auto even = reinterpret_cast<Vi>(((codes << 8) >> 8) * ((values << 8) >> 8));
  return total + ((odd << 16) >> 16) + (odd >> 16) + ((even << 16) >> 16) + (even >> 16);
#endif
}

}  // namespace
}  // namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE
