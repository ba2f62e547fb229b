// The vectors all kernels are written with: Vf (floats) and Vi (int32) of kWidth lanes. Arithmetic, comparisons and selects
// are the compiler's vector extensions; only what those cannot say is an intrinsic. One of four sets is compiled:
// AVX-512, AVX2 with FMA and F16C, SSE2 (baseline x86-64), or, with TESSERA_KERNELS_PORTABLE or elsewhere, plain C++.
// Everything here has internal linkage, so that no code of one set can be linked into another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(TESSERA_KERNELS_PORTABLE)
#define TESSERA_SIMD_PORTABLE 1
#elif defined(__AVX512F__)
#define TESSERA_SIMD_AVX512 1
#include <immintrin.h>
#elif defined(__AVX2__)
#define TESSERA_SIMD_AVX2 1
#include <immintrin.h>
#elif defined(__SSE2__)
#define TESSERA_SIMD_SSE2 1
#include <emmintrin.h>
#else
#define TESSERA_SIMD_PORTABLE 1
#endif

#if defined(__clang__)
#define TESSERA_UNROLL _Pragma("clang loop unroll(full)")
#else
#define TESSERA_UNROLL _Pragma("GCC unroll 32")
#endif
#define TESSERA_INLINE static inline __attribute__((always_inline, unused))

namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE {
namespace {

#if defined(TESSERA_SIMD_AVX512)
constexpr int kWidth = 16;
#elif defined(TESSERA_SIMD_AVX2)
constexpr int kWidth = 8;
#else
constexpr int kWidth = 4;
#endif

typedef float Vf __attribute__((vector_size(4 * kWidth)));
typedef int32_t Vi __attribute__((vector_size(4 * kWidth)));
typedef float V4 __attribute__((vector_size(16)));
typedef float UnalignedVf __attribute__((vector_size(4 * kWidth), aligned(4), may_alias));
typedef int32_t UnalignedVi __attribute__((vector_size(4 * kWidth), aligned(4), may_alias));
typedef float UnalignedV4 __attribute__((vector_size(16), aligned(4), may_alias));

TESSERA_INLINE Vf load(const float* p) {
  return *reinterpret_cast<const UnalignedVf*>(p);
}
TESSERA_INLINE void store(float* p, Vf v) {
  *reinterpret_cast<UnalignedVf*>(p) = v;
}
TESSERA_INLINE Vi load_int(const int32_t* p) {
  return *reinterpret_cast<const UnalignedVi*>(p);
}
TESSERA_INLINE Vf splat(float x) {
  return x - Vf{};  // keeps the sign of zero
}
TESSERA_INLINE Vi splat_int(int32_t x) {
  return x - Vi{};
}
TESSERA_INLINE Vf as_float(Vi v) {
  return reinterpret_cast<Vf>(v);
}
TESSERA_INLINE Vi as_int(Vf v) {
  return reinterpret_cast<Vi>(v);
}
TESSERA_INLINE Vf to_float(Vi v) {
  return __builtin_convertvector(v, Vf);
}
TESSERA_INLINE Vf select(Vi mask, Vf a, Vf b) {
  return mask ? a : b;
}
TESSERA_INLINE Vi lane_numbers() {
  Vi v;
  for (int i = 0; i < kWidth; ++i) v[i] = i;
  return v;
}

// The first n < kWidth lanes; the others are 0.
TESSERA_INLINE Vf load_partial(const float* p, int64_t n) {
#if defined(TESSERA_SIMD_AVX512)
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1u), p);
#else
  float lanes[kWidth] = {};
  std::memcpy(lanes, p, static_cast<size_t>(n) * sizeof(float));
  return load(lanes);
#endif
}
TESSERA_INLINE void store_partial(float* p, Vf v, int64_t n) {
#if defined(TESSERA_SIMD_AVX512)
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1u), v);
#else
  float lanes[kWidth];
  store(lanes, v);
  std::memcpy(p, lanes, static_cast<size_t>(n) * sizeof(float));
#endif
}

// a * b + c, rounded once where the set has such an instruction.
TESSERA_INLINE Vf fma(Vf a, Vf b, Vf c) {
#if defined(TESSERA_SIMD_AVX512)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(TESSERA_SIMD_AVX2)
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}
// b where either is NaN.
TESSERA_INLINE Vf max(Vf a, Vf b) {
#if defined(TESSERA_SIMD_AVX512)
  return _mm512_max_ps(a, b);
#elif defined(TESSERA_SIMD_AVX2)
  return _mm256_max_ps(a, b);
#elif defined(TESSERA_SIMD_SSE2)
  return _mm_max_ps(a, b);
#else
  return a > b ? a : b;
#endif
}
TESSERA_INLINE Vf min(Vf a, Vf b) {
#if defined(TESSERA_SIMD_AVX512)
  return _mm512_min_ps(a, b);
#elif defined(TESSERA_SIMD_AVX2)
  return _mm256_min_ps(a, b);
#elif defined(TESSERA_SIMD_SSE2)
  return _mm_min_ps(a, b);
#else
  return a < b ? a : b;
#endif
}
TESSERA_INLINE Vf absolute(Vf v) {
  return as_float(as_int(v) & 0x7fffffff);
}
// Nearest integer, ties to even; |v| below 2^22.
TESSERA_INLINE Vi nearest_int(Vf v) {
#if defined(TESSERA_SIMD_AVX512)
  return reinterpret_cast<Vi>(_mm512_cvtps_epi32(v));
#elif defined(TESSERA_SIMD_AVX2)
  return reinterpret_cast<Vi>(_mm256_cvtps_epi32(v));
#elif defined(TESSERA_SIMD_SSE2)
  return reinterpret_cast<Vi>(_mm_cvtps_epi32(v));
#else
  const Vf magic = splat(0x1.8p23f);
  return as_int(v + magic) - as_int(magic);
#endif
}

// Sums and maxima across lanes always add in the same order: halves of the vector, then (0 + 2) + (1 + 3).
TESSERA_INLINE V4 fold(Vf v) {
#if defined(TESSERA_SIMD_AVX512)
  const __m256 half = _mm512_castps512_ps256(v) + _mm512_extractf32x8_ps(v, 1);
  return _mm256_castps256_ps128(half) + _mm256_extractf128_ps(half, 1);
#elif defined(TESSERA_SIMD_AVX2)
  return _mm256_castps256_ps128(v) + _mm256_extractf128_ps(v, 1);
#else
  return v;
#endif
}
TESSERA_INLINE float sum(Vf v) {
  const V4 f = fold(v);
  return (f[0] + f[2]) + (f[1] + f[3]);
}
// sum() of four vectors at once, bit for bit.
TESSERA_INLINE V4 sum4(Vf va, Vf vb, Vf vc, Vf vd) {
  const V4 a = fold(va);
  const V4 b = fold(vb);
  const V4 c = fold(vc);
  const V4 d = fold(vd);
  const V4 ab = __builtin_shufflevector(a, b, 0, 4, 1, 5) + __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const V4 cd = __builtin_shufflevector(c, d, 0, 4, 1, 5) + __builtin_shufflevector(c, d, 2, 6, 3, 7);
  return __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
}
TESSERA_INLINE float maximum(Vf v) {
  float lanes[kWidth];
  store(lanes, v);
#if defined(TESSERA_SIMD_AVX512)
  return _mm512_reduce_max_ps(v);
#else
  float best = lanes[0];
  for (int i = 1; i < kWidth; ++i) best = lanes[i] > best ? lanes[i] : best;
  return best;
#endif
}

// float16 -> float32, exact, subnormals included.
TESSERA_INLINE float half_to_float(uint16_t bits) {
#if defined(TESSERA_SIMD_AVX512) || defined(TESSERA_SIMD_AVX2)
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)));
#else
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fffu) << 13;
  uint32_t result = 0;
  if (magnitude >= 0x0f800000u) {
    result = magnitude | 0x7f800000u;
  } else {
    float value;
    std::memcpy(&value, &magnitude, 4);
    value *= 0x1p112f;
    std::memcpy(&result, &value, 4);
  }
  result |= sign;
  float value;
  std::memcpy(&value, &result, 4);
  return value;
#endif
}
TESSERA_INLINE float load_half(const std::byte* p) {
  uint16_t bits;
  std::memcpy(&bits, p, 2);
  return half_to_float(bits);
}
TESSERA_INLINE Vf load_f16(const uint16_t* p) {
#if defined(TESSERA_SIMD_AVX512)
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
#elif defined(TESSERA_SIMD_AVX2)
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#else
  typedef uint16_t Halves __attribute__((vector_size(2 * kWidth)));
  Halves halves;
  std::memcpy(&halves, p, sizeof(halves));
  const Vi bits = __builtin_convertvector(halves, Vi);
  const Vi magnitude = (bits & 0x7fff) << 13;
  const Vi finite = as_int(as_float(magnitude) * 0x1p112f);
  const Vi value = magnitude >= 0x0f800000 ? magnitude | 0x7f800000 : finite;
  return as_float(value | (bits & 0x8000) << 16);
#endif
}
TESSERA_INLINE Vf load_bf16(const uint16_t* p) {
#if defined(TESSERA_SIMD_AVX512)
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
#elif defined(TESSERA_SIMD_AVX2)
  const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
#else
  typedef uint16_t Halves __attribute__((vector_size(2 * kWidth)));
  Halves halves;
  std::memcpy(&halves, p, sizeof(halves));
  return as_float(__builtin_convertvector(halves, Vi) << 16);
#endif
}
// kWidth signed bytes.
TESSERA_INLINE Vf load_int8(const std::byte* p) {
#if defined(TESSERA_SIMD_AVX512)
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#elif defined(TESSERA_SIMD_AVX2)
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
#else
  typedef int8_t Bytes __attribute__((vector_size(kWidth)));
  Bytes bytes;
  std::memcpy(&bytes, p, sizeof(bytes));
  return to_float(__builtin_convertvector(bytes, Vi));
#endif
}
// kWidth bytes as integers.
TESSERA_INLINE Vi load_uint8(const std::byte* p) {
#if defined(TESSERA_SIMD_AVX512)
  return reinterpret_cast<Vi>(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#elif defined(TESSERA_SIMD_AVX2)
  return reinterpret_cast<Vi>(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
#else
  typedef uint8_t Bytes __attribute__((vector_size(kWidth)));
  Bytes bytes;
  std::memcpy(&bytes, p, sizeof(bytes));
  return __builtin_convertvector(bytes, Vi);
#endif
}

// float32 -> float16, round to nearest even; what is too large becomes infinity.
TESSERA_INLINE uint16_t float_to_half(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
  if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // a subnormal half: adding 0.5 lets the FPU round at the right bit
    float shifted;
    std::memcpy(&shifted, &magnitude, 4);
    shifted += 0.5f;
    std::memcpy(&bits, &shifted, 4);
    return static_cast<uint16_t>(sign | (bits - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}
TESSERA_INLINE void store_f16(uint16_t* p, Vf v) {
#if defined(TESSERA_SIMD_AVX512)
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
#elif defined(TESSERA_SIMD_AVX2)
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
#else
  for (int i = 0; i < kWidth; ++i) p[i] = float_to_half(v[i]);
#endif
}

}  // namespace
}  // namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE
