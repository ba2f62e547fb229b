// Quantised weights times 8-bit activations for many tokens. A tile of rows is re-laid so that a vector holds four codes of
// each of kWidth rows: sums then run along K inside a lane, and one broadcast of four activations serves all rows. K is cut into pieces of
// kTileBlocks blocks: a re-laid piece stays in the first-level cache while all tokens pass over it.
#include "backend/cpu/kernels/int8_simd.h"
#include "backend/cpu/kernels/kernels.h"

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

struct PackQ8_0 {
  static constexpr int kBytes = 34;
  static Codes codes(const std::byte* block) { return load_codes(block + 2); }
};
struct PackQ4_0 {
  static constexpr int kBytes = 18;
  static Codes codes(const std::byte* block) { return load_nibble_codes(block + 2); }
};

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

template <class Pack>
void int8_pack(const Int8PackArgs& args) {
  for (int v = 0; v < kRowVectors; ++v) {
    const std::byte* rows[kWidth];
    const int64_t first = v * kWidth;
    for (int64_t r = 0; r < kWidth; ++r) {
      const int64_t row = first + r < args.rows ? first + r : args.rows - 1;
      rows[r] = args.weights + row * args.row_stride;
    }
    // The rows' next blocks come while these are computed with.
    const int64_t next = args.first_block + args.blocks;
    const int64_t ahead = next + args.blocks < args.row_blocks ? args.blocks : args.row_blocks - next;
    for (const std::byte* row : rows)
      for (int64_t byte = 0; byte < ahead * Pack::kBytes; byte += 64)
        __builtin_prefetch(row + next * Pack::kBytes + byte, 0, 2);
    // Scales are collected as halves for some blocks and then converted together.
    constexpr int64_t kSome = 16;
    uint16_t halves[kSome][kWidth];
    for (int64_t start = 0; start < args.blocks; start += kSome) {
      const int64_t count = args.blocks - start < kSome ? args.blocks - start : kSome;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t block = start + i;
        const int64_t offset = (args.first_block + block) * Pack::kBytes;
        pack_block<Pack>(rows, offset, args.codes + (block * kGroups * kRows + first) * 4);
        TESSERA_UNROLL
        for (int r = 0; r < kWidth; ++r) std::memcpy(&halves[i][r], rows[r] + offset, 2);
      }
      for (int64_t i = 0; i < count; ++i) {
        float* place = args.scales + (start + i) * kRows + first;
        store(place, load_f16(halves[i]));
        for (int64_t r = args.rows - first < 0 ? 0 : args.rows - first; r < kWidth; ++r) place[r] = 0;
      }
    }
  }
}

template <int N>
TESSERA_INLINE void tile(const Int8TileArgs& args, int64_t token) {
  Vf total[kRowVectors][N];
  const bool fresh = args.accumulate == Accumulate::kWhole || args.accumulate == Accumulate::kFirst;
  TESSERA_UNROLL
  for (int v = 0; v < kRowVectors; ++v) {
    const int64_t rows = args.rows - v * kWidth;
    TESSERA_UNROLL
    for (int n = 0; n < N; ++n) {
      const float* out = args.out + (token + n) * args.out_stride + v * kWidth;
      if (fresh || rows <= 0)
        total[v][n] = Vf{};
      else
        total[v][n] = rows >= kWidth ? load(out) : load_partial(out, rows);
    }
  }
  const int8_t* x = args.x.codes + token * args.x.code_stride;
  const float* x_scales = args.x.scales + token * args.x.block_stride;
  const int32_t* x_offsets = args.x.offsets + token * args.x.block_stride;
  const uint8_t* codes = args.codes;
  const float* scales = args.scales;
  for (int64_t block = 0; block < args.blocks; ++block) {
    Vi products[kRowVectors][N];
    TESSERA_UNROLL
    for (int n = 0; n < N; ++n) {
      const Vi start = kCodesAreOffset ? splat_int(x_offsets[n * args.x.block_stride + block]) : Vi{};
      TESSERA_UNROLL
      for (int v = 0; v < kRowVectors; ++v) products[v][n] = start;
    }
    TESSERA_UNROLL
    for (int group = 0; group < kGroups; ++group) {
      Vi w[kRowVectors];
      TESSERA_UNROLL
      for (int v = 0; v < kRowVectors; ++v)
        w[v] = load_int(reinterpret_cast<const int32_t*>(codes) + group * kRows + v * kWidth);
      TESSERA_UNROLL
      for (int n = 0; n < N; ++n) {
        int32_t four;
        std::memcpy(&four, x + n * args.x.code_stride + group * 4, 4);
        const Vi values = splat_int(four);
        TESSERA_UNROLL
        for (int v = 0; v < kRowVectors; ++v) products[v][n] = dot4(products[v][n], w[v], values);
      }
    }
    TESSERA_UNROLL
    for (int v = 0; v < kRowVectors; ++v) {
      const Vf scale = load(scales + v * kWidth);
      TESSERA_UNROLL
      for (int n = 0; n < N; ++n)
        total[v][n] =
            fma(to_float(products[v][n]), scale * x_scales[n * args.x.block_stride + block], total[v][n]);
    }
    codes += kRows * kQuantBlock;
    scales += kRows;
    x += kQuantBlock;
  }
  TESSERA_UNROLL
  for (int v = 0; v < kRowVectors; ++v) {
    const int64_t rows = args.rows - v * kWidth;
    if (rows <= 0) break;
    Vf bias = {};
    if (args.bias != nullptr &&
        (args.accumulate == Accumulate::kWhole || args.accumulate == Accumulate::kLast))
      bias = rows >= kWidth ? load(args.bias + v * kWidth) : load_partial(args.bias + v * kWidth, rows);
    TESSERA_UNROLL
    for (int n = 0; n < N; ++n) {
      float* out = args.out + (token + n) * args.out_stride + v * kWidth;
      if (rows >= kWidth)
        store(out, total[v][n] + bias);
      else
        store_partial(out, total[v][n] + bias, rows);
    }
  }
}

void int8_tile(const Int8TileArgs& args) {
  int64_t token = 0;
  for (; token + kTileTokens <= args.tokens; token += kTileTokens) tile<kTileTokens>(args, token);
  switch (args.tokens - token) {
    case 5:
      return tile<5>(args, token);
    case 4:
      return tile<4>(args, token);
    case 3:
      return tile<3>(args, token);
    case 2:
      return tile<2>(args, token);
    case 1:
      return tile<1>(args, token);
    default:
      return;
  }
}

}  // namespace

void add_int8_tile_kernels(KernelTable& table) {
  table.tile_rows = kRows;
  table.int8_tile = int8_tile;
  table.block[static_cast<size_t>(FormatKind::kQ8_0)].int8_pack = int8_pack<PackQ8_0>;
  table.block[static_cast<size_t>(FormatKind::kQ4_0)].int8_pack = int8_pack<PackQ4_0>;
}

}  // namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE
