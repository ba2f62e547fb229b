// The layout of a tile of rows for many tokens (int8_tile.cpp), and how one block of 32 codes of kWidth rows gets into it.
#pragma once

#include "backend/cpu/kernel_table.h"
#include "backend/cpu/kernels/int8_simd.h"

namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE {
namespace {

// Register tile: row vectors x tokens.
#if defined(TESSERA_SIMD_AVX512)
constexpr int kRowVectors = 2;
constexpr int kTileTokens = 6;
#else
constexpr int kRowVectors = 1;
constexpr int kTileTokens = 4;
#endif
constexpr int64_t kRows = kRowVectors * kWidth;
constexpr int kGroups = static_cast<int>(kQuantBlock) / 4;

// One block of kWidth rows: rows[r] + offset -> out[group][kRows lanes of 4 bytes].
#if defined(TESSERA_SIMD_AVX512)
template <class Pack>
TESSERA_INLINE void pack_block(const std::byte* const* rows, int64_t offset, uint8_t* out) {
  const __m512i flip = _mm512_set1_epi8(static_cast<char>(0x80));
  // z[i]: rows i and i + 4 for i < 4, rows i + 4 and i + 8 above.
  __m512i z[8];
  TESSERA_UNROLL
  for (int i = 0; i < 8; ++i) {
    const int a = i < 4 ? i : i + 4;
    const __m512i low = _mm512_castsi256_si512(Pack::codes(rows[a] + offset).bytes);
    z[i] = _mm512_xor_si512(_mm512_inserti64x4(low, Pack::codes(rows[a + 4] + offset).bytes, 1), flip);
  }
  // Transposes 4 x 4 groups of 32-bit words inside 128-bit lanes, then gathers the lanes.
  __m512i t[8];
  TESSERA_UNROLL
  for (int h = 0; h < 8; h += 4) {
    const __m512i p = _mm512_unpacklo_epi32(z[h], z[h + 1]);
    const __m512i q = _mm512_unpackhi_epi32(z[h], z[h + 1]);
    const __m512i r = _mm512_unpacklo_epi32(z[h + 2], z[h + 3]);
    const __m512i s = _mm512_unpackhi_epi32(z[h + 2], z[h + 3]);
    t[h] = _mm512_unpacklo_epi64(p, r);
    t[h + 1] = _mm512_unpackhi_epi64(p, r);
    t[h + 2] = _mm512_unpacklo_epi64(q, s);
    t[h + 3] = _mm512_unpackhi_epi64(q, s);
  }
  TESSERA_UNROLL
  for (int c = 0; c < 4; ++c) {
    _mm512_storeu_si512(out + c * 4 * kRows, _mm512_shuffle_i32x4(t[c], t[c + 4], 0x88));
    _mm512_storeu_si512(out + (c + 4) * 4 * kRows, _mm512_shuffle_i32x4(t[c], t[c + 4], 0xdd));
  }
}
#elif defined(TESSERA_SIMD_AVX2)
template <class Pack>
TESSERA_INLINE void pack_block(const std::byte* const* rows, int64_t offset, uint8_t* out) {
  __m256i z[8];
  TESSERA_UNROLL
  for (int i = 0; i < 8; ++i) z[i] = Pack::codes(rows[i] + offset).bytes;
  __m256i t[8];
  TESSERA_UNROLL
  for (int h = 0; h < 8; h += 4) {
    const __m256i p = _mm256_unpacklo_epi32(z[h], z[h + 1]);
    const __m256i q = _mm256_unpackhi_epi32(z[h], z[h + 1]);
    const __m256i r = _mm256_unpacklo_epi32(z[h + 2], z[h + 3]);
    const __m256i s = _mm256_unpackhi_epi32(z[h + 2], z[h + 3]);
    t[h] = _mm256_unpacklo_epi64(p, r);
    t[h + 1] = _mm256_unpackhi_epi64(p, r);
    t[h + 2] = _mm256_unpacklo_epi64(q, s);
    t[h + 3] = _mm256_unpackhi_epi64(q, s);
  }
  TESSERA_UNROLL
  for (int c = 0; c < 4; ++c) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + c * 4 * kRows),
                        _mm256_permute2x128_si256(t[c], t[c + 4], 0x20));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + (c + 4) * 4 * kRows),
                        _mm256_permute2x128_si256(t[c], t[c + 4], 0x31));
  }
}
#else
template <class Pack>
TESSERA_INLINE void pack_block(const std::byte* const* rows, int64_t offset, uint8_t* out) {
  for (int r = 0; r < kWidth; ++r) {
    uint8_t codes[kQuantBlock];
    store_codes(codes, Pack::codes(rows[r] + offset));
    for (int group = 0; group < kGroups; ++group)
      std::memcpy(out + (group * kRows + r) * 4, codes + group * 4, 4);
  }
}
#endif

}  // namespace
}  // namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE
