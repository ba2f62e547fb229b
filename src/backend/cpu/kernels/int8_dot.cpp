// Quantised weights times 8-bit activations for a few tokens: rows are streamed once, as they lie in the file. What memory
// delivers is the limit, so the inner loops are counted in instructions per byte. Also the quantisation of activations.
#include "backend/cpu/kernels/int8_simd.h"
#include "backend/cpu/kernels/kernels.h"

namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE {
namespace {

constexpr int kBlockVectors = 32 / kWidth;
// Tokens that share the loads of a row: as many as the registers hold sums for.
#if defined(TESSERA_SIMD_AVX512)
constexpr int kMostTokens = 8;
#else
constexpr int kMostTokens = 4;
#endif

TESSERA_INLINE void store_bytes(int8_t* p, Vi v) {
#if defined(TESSERA_SIMD_AVX512)
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(reinterpret_cast<__m512i>(v)));
#else
  for (int i = 0; i < kWidth; ++i) p[i] = static_cast<int8_t>(v[i]);
#endif
}

// scale = largest / 127, codes = round(x / scale): error at most half a step. A row of zeros has scale 0.
void quantise_int8(const float* x, int64_t x_stride, int64_t columns, const Int8Activations& out,
                   int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    for (int64_t block = 0; block < columns / kQuantBlock; ++block) {
      const float* source = x + row * x_stride + block * kQuantBlock;
      int8_t* codes = out.codes + row * out.code_stride + block * kQuantBlock;
      Vf values[kBlockVectors];
      Vf largest = {};
      TESSERA_UNROLL
      for (int i = 0; i < kBlockVectors; ++i) {
        values[i] = load(source + i * kWidth);
        largest = max(largest, absolute(values[i]));
      }
      const float bound = maximum(largest);
      const float scale = bound / 127.0f;
      // A tiny bound would make the factor infinite.
      const Vf factor = splat(bound > 1e-36f ? 127.0f / bound : 0.0f);
      TESSERA_UNROLL
      for (int half = 0; half < 2; ++half) {
        Vi total = {};
        Vf plain = {};
        TESSERA_UNROLL
        for (int i = half * kBlockVectors / 2; i < (half + 1) * kBlockVectors / 2; ++i) {
          const Vi code = nearest_int(values[i] * factor);
          total += code;
          plain += values[i];
          store_bytes(codes + i * kWidth, code);
        }
        int32_t code_sum = 0;
        TESSERA_UNROLL
        for (int i = 0; i < kWidth; ++i) code_sum += total[i];
        const int64_t place = 2 * (row * out.block_stride + block) + half;
        out.offsets[place] = -128 * code_sum;
        out.sums[place] = sum(plain);
      }
      out.scales[row * out.block_stride + block] = scale;
    }
  }
}

#if defined(TESSERA_SIMD_AVX512)

// Groups of blocks share one vector: kGroup blocks, 16 / kGroup lanes each. The activations' scales and offsets are spread over
// those lanes once per product (int8_spread).
struct GroupQ8_0 {
  static constexpr int kBytes = 34;
  static constexpr int kGroup = 2;
  static constexpr int kOffsetDivisor = 8;  // offset per lane = offset / lanes: codes + 128
  struct Weights {
    __m512i codes;
    __m512 scales;
  };
  static Weights weights(const std::byte* p) {
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 2));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + kBytes + 2));
    return make(a, b, half(p), half(p + kBytes));
  }
  static Weights last_weights(const std::byte* p, int64_t) {
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 2));
    return make(a, _mm256_setzero_si256(), half(p), 0);
  }
  static __m512i dot(const Weights& w, __m512i offsets, const int8_t* x) {
    return _mm512_dpbusd_epi32(offsets, w.codes, _mm512_loadu_si512(x));
  }

 private:
  static short half(const std::byte* p) {
    short bits;
    std::memcpy(&bits, p, 2);
    return bits;
  }
  static Weights make(__m256i a, __m256i b, short scale_a, short scale_b) {
    const __m512i codes = _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1);
    const __m256i halves =
        _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_set1_epi16(scale_a)), _mm_set1_epi16(scale_b), 1);
    return {_mm512_xor_si512(codes, _mm512_set1_epi8(static_cast<char>(0x80))), _mm512_cvtph_ps(halves)};
  }
};

struct GroupQ4_0 {
  static constexpr int kBytes = 18;
  static constexpr int kGroup = 4;
  static constexpr int kOffsetDivisor = 64;  // codes + 8: 1/16 of the offset, over four lanes
  struct Weights {
    __m512i low;
    __m512i high;
    __m512 scales;
  };
  static Weights weights(const std::byte* p) {
    __m512i packed = _mm512_castsi128_si512(load16(p + 2));
    packed = _mm512_inserti32x4(packed, load16(p + kBytes + 2), 1);
    packed = _mm512_inserti32x4(packed, load16(p + 2 * kBytes + 2), 2);
    packed = _mm512_inserti32x4(packed, load16(p + 3 * kBytes + 2), 3);
    return make(packed,
                half(p) | half(p + kBytes) << 16 | half(p + 2 * kBytes) << 32 | half(p + 3 * kBytes) << 48);
  }
  static Weights last_weights(const std::byte* p, int64_t count) {
    std::byte copy[kGroup * kBytes] = {};
    std::memcpy(copy, p, static_cast<size_t>(count * kBytes));
    return weights(copy);
  }
  // Activations of four blocks: the first halves of the blocks meet the low nibbles, the second halves the high ones.
  static __m512i dot(const Weights& w, __m512i offsets, const int8_t* x) {
    const __m512i a = _mm512_loadu_si512(x);
    const __m512i b = _mm512_loadu_si512(x + 64);
    const __m512i total = _mm512_dpbusd_epi32(offsets, w.low, a);
    return _mm512_dpbusd_epi32(total, w.high, b);
  }

 private:
  static __m128i load16(const std::byte* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
  static uint64_t half(const std::byte* p) {
    uint16_t bits;
    std::memcpy(&bits, p, 2);
    return bits;
  }
  static Weights make(__m512i packed, uint64_t halves) {
    const __m512i mask = _mm512_set1_epi8(15);
    const __m128i four = _mm_cvtsi64_si128(static_cast<int64_t>(halves));
    const __m256i spread = _mm256_shuffle_epi8(
        _mm256_broadcastsi128_si256(four), _mm256_setr_epi8(0, 1, 0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 2, 3, 4,
                                                            5, 4, 5, 4, 5, 4, 5, 6, 7, 6, 7, 6, 7, 6, 7));
    return {_mm512_and_si512(packed, mask), _mm512_and_si512(_mm512_srli_epi16(packed, 4), mask),
            _mm512_cvtph_ps(spread)};
  }
};

// Activations in the order the groups want them: codes (for nibbles, halves of four blocks apart), then per group the spread
// scales and offsets.
template <class Group>
struct Spread {
  static constexpr int kCodes = 32 * Group::kGroup;
  static constexpr int kBytes = kCodes + 128;

  static int64_t row_bytes(int64_t blocks) { return (blocks + Group::kGroup - 1) / Group::kGroup * kBytes; }

  static void fill(const Int8Activations& x, int64_t token, int64_t blocks, std::byte* out) {
    const int8_t* codes = x.codes + token * x.code_stride;
    const float* scales = x.scales + token * x.block_stride;
    const int32_t* offsets = x.offsets + token * 2 * x.block_stride;
    for (int64_t block = 0; block < blocks; block += Group::kGroup, out += kBytes) {
      std::memset(out, 0, kBytes);
      for (int64_t i = 0; i < Group::kGroup && block + i < blocks; ++i) {
        const int8_t* source = codes + (block + i) * 32;
        if constexpr (Group::kGroup == 4) {
          std::memcpy(out + i * 16, source, 16);
          std::memcpy(out + 64 + i * 16, source + 16, 16);
        } else {
          std::memcpy(out + i * 32, source, 32);
        }
        constexpr int kLanes = 16 / Group::kGroup;
        float scale[kLanes];
        int32_t offset[kLanes];
        for (int lane = 0; lane < kLanes; ++lane) {
          scale[lane] = scales[block + i];
          offset[lane] = (offsets[2 * (block + i)] + offsets[2 * (block + i) + 1]) / Group::kOffsetDivisor;
        }
        std::memcpy(out + kCodes + i * 4 * kLanes, scale, sizeof(scale));
        std::memcpy(out + kCodes + 64 + i * 4 * kLanes, offset, sizeof(offset));
      }
    }
  }
};

template <class Group, int N>
TESSERA_INLINE void accumulate(const typename Group::Weights& w, const std::byte* const* x, int64_t group,
                               __m512* total) {
  constexpr int kStride = Spread<Group>::kBytes;
  constexpr int kCodes = Spread<Group>::kCodes;
  TESSERA_UNROLL
  for (int n = 0; n < N; ++n) {
    const std::byte* place = x[n] + group * kStride;
    const __m512i offsets = _mm512_loadu_si512(place + kCodes + 64);
    const __m512i products = Group::dot(w, offsets, reinterpret_cast<const int8_t*>(place));
    const __m512 scales = w.scales * _mm512_loadu_ps(place + kCodes);
    total[n] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(products), scales, total[n]);
  }
}

template <class Group, int N>
void dot_rows(const Int8DotArgs& args, int64_t token) {
  const int64_t groups = args.blocks / Group::kGroup;
  const int64_t rest = args.blocks % Group::kGroup;
  const int64_t spread_bytes = Spread<Group>::row_bytes(args.blocks);
  const std::byte* x[N];
  for (int n = 0; n < N; ++n) x[n] = args.spread + (token + n) * spread_bytes;
  for (int64_t row = 0; row < args.rows; ++row) {
    const std::byte* w = args.weights + row * args.row_stride;
    __m512 even[N];
    __m512 odd[N];
    TESSERA_UNROLL
    for (int n = 0; n < N; ++n) even[n] = odd[n] = _mm512_setzero_ps();
    int64_t group = 0;
    constexpr int64_t kGroupBytes = Group::kGroup * Group::kBytes;
    for (; group + 2 <= groups; group += 2) {
      accumulate<Group, N>(Group::weights(w + group * kGroupBytes), x, group, even);
      accumulate<Group, N>(Group::weights(w + (group + 1) * kGroupBytes), x, group + 1, odd);
    }
    if (group < groups) accumulate<Group, N>(Group::weights(w + group * kGroupBytes), x, group, even);
    if (rest != 0) accumulate<Group, N>(Group::last_weights(w + groups * kGroupBytes, rest), x, groups, odd);
    const float bias = args.bias == nullptr ? 0.0f : args.bias[row];
    TESSERA_UNROLL
    for (int n = 0; n < N; ++n) args.out[(token + n) * args.out_stride + row] = sum(even[n] + odd[n]) + bias;
  }
}

template <class Group>
void spread(const Int8Activations& x, int64_t tokens, int64_t blocks, std::byte* out) {
  for (int64_t token = 0; token < tokens; ++token)
    Spread<Group>::fill(x, token, blocks, out + token * Spread<Group>::row_bytes(blocks));
}
template <class Group>
constexpr auto kSpread = spread<Group>;
using KernelQ8_0 = GroupQ8_0;
using KernelQ4_0 = GroupQ4_0;

#else

struct BlockQ8_0 {
  static constexpr int kBytes = 34;
  static Codes codes(const std::byte* block) { return load_codes(block + 2); }
};
struct BlockQ4_0 {
  static constexpr int kBytes = 18;
  static Codes codes(const std::byte* block) { return load_nibble_codes(block + 2); }
};

template <class Block, int N>
void dot_rows(const Int8DotArgs& args, int64_t token) {
  const int8_t* x[N];
  const float* scales[N];
  for (int n = 0; n < N; ++n) {
    x[n] = args.x.codes + (token + n) * args.x.code_stride;
    scales[n] = args.x.scales + (token + n) * args.x.block_stride;
  }
  for (int64_t row = 0; row < args.rows; ++row) {
    const std::byte* w = args.weights + row * args.row_stride;
    Vf even[N];
    Vf odd[N];
    TESSERA_UNROLL
    for (int n = 0; n < N; ++n) even[n] = odd[n] = Vf{};
    const auto add = [&](int64_t block, Vf * total) __attribute__((always_inline)) {
      const std::byte* place = w + block * Block::kBytes;
      const Codes codes = Block::codes(place);
      const float scale = load_half(place);
      TESSERA_UNROLL
      for (int n = 0; n < N; ++n)
        total[n] = fma(to_float(dot32(codes, x[n] + block * 32)), splat(scale * scales[n][block]), total[n]);
    };
    int64_t block = 0;
    for (; block + 2 <= args.blocks; block += 2) {
      add(block, even);
      add(block + 1, odd);
    }
    if (block < args.blocks) add(block, even);
    const float bias = args.bias == nullptr ? 0.0f : args.bias[row];
    TESSERA_UNROLL
    for (int n = 0; n < N; ++n) args.out[(token + n) * args.out_stride + row] = sum(even[n] + odd[n]) + bias;
  }
}
template <class Block>
constexpr decltype(FormatKernels::int8_spread) kSpread = nullptr;
using KernelQ8_0 = BlockQ8_0;
using KernelQ4_0 = BlockQ4_0;

#endif

// Rows are taken some at a time, so that they are still in the cache when a second group of tokens needs them.
template <class Block>
void int8_dot(const Int8DotArgs& whole) {
  constexpr int64_t kSome = 32;
  Int8DotArgs args = whole;
  for (int64_t row = 0; row < whole.rows; row += kSome) {
    args.weights = whole.weights + row * whole.row_stride;
    args.rows = whole.rows - row < kSome ? whole.rows - row : kSome;
    args.bias = whole.bias == nullptr ? nullptr : whole.bias + row;
    args.out = whole.out + row;
    int64_t token = 0;
    if (kMostTokens == 8) {
      for (; token + 8 <= args.tokens; token += 8) dot_rows<Block, kMostTokens>(args, token);
      if (args.tokens - token >= 5) {
        dot_rows<Block, kMostTokens == 8 ? 5 : 1>(args, token);
        token += 5;
      }
    }
    for (; token + 4 <= args.tokens; token += 4) dot_rows<Block, 4>(args, token);
    if (token + 3 == args.tokens) dot_rows<Block, 3>(args, token);
    if (token + 2 == args.tokens) dot_rows<Block, 2>(args, token);
    if (token + 1 == args.tokens) dot_rows<Block, 1>(args, token);
  }
}

template <class Block>
void add(FormatKernels& kernels) {
  kernels.int8_dot = int8_dot<Block>;
  kernels.int8_spread = kSpread<Block>;
}

}  // namespace

void add_int8_dot_kernels(KernelTable& table) {
  table.quantise_int8 = quantise_int8;
  add<KernelQ8_0>(table.block[static_cast<size_t>(FormatKind::kQ8_0)]);
  add<KernelQ4_0>(table.block[static_cast<size_t>(FormatKind::kQ4_0)]);
}

}  // namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE
