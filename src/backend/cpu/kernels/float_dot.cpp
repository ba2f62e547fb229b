// Matrix products in float32 with weights decoded in registers. One scheme for every format and size: lane l of an
// accumulator sums columns l, l + kWidth, ... of a chunk in order, the lanes are added in a fixed order, then the chunks, so that a
// result depends neither on how many tokens are computed together nor on how rows are split.
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/simd.h"

namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE {
namespace {

// Rows x tokens of a register tile, and rows where there is one token.
#if defined(TESSERA_SIMD_AVX512)
constexpr int kTileRows = 4;
constexpr int kTileTokens = 6;
#elif defined(TESSERA_SIMD_AVX2) || defined(TESSERA_SIMD_SSE2)
constexpr int kTileRows = 2;
constexpr int kTileTokens = 6;
#else
constexpr int kTileRows = 4;
constexpr int kTileTokens = 4;
#endif
constexpr int kUnit = 32;  // columns per step of a loader
constexpr int kUnitVectors = kUnit / kWidth;

// Loaders: kUnitBytes bytes are 32 values; value(unit, scale, i) gives vector i of them.
struct LoadF32 {
  static constexpr int kUnitBytes = 128;
  static float scale(const std::byte*) { return 1; }
  static Vf value(const std::byte* unit, float, int i) {
    return load(reinterpret_cast<const float*>(unit) + i * kWidth);
  }
  static Vf rest(const std::byte* p, int64_t n) { return load_partial(reinterpret_cast<const float*>(p), n); }
};

template <Vf (*Convert)(const uint16_t*)>
struct Load16 {
  static constexpr int kUnitBytes = 64;
  static float scale(const std::byte*) { return 1; }
  static Vf value(const std::byte* unit, float, int i) {
    return Convert(reinterpret_cast<const uint16_t*>(unit) + i * kWidth);
  }
  static Vf rest(const std::byte* p, int64_t n) {
    uint16_t lanes[kWidth] = {};
    std::memcpy(lanes, p, static_cast<size_t>(n) * 2);
    return Convert(lanes);
  }
};
using LoadF16 = Load16<load_f16>;
using LoadBF16 = Load16<load_bf16>;

struct LoadQ8_0 {
  static constexpr int kUnitBytes = 34;
  static float scale(const std::byte* unit) { return load_half(unit); }
  static Vf value(const std::byte* unit, float scale, int i) {
    return load_int8(unit + 2 + i * kWidth) * scale;
  }
  static Vf rest(const std::byte*, int64_t) { return Vf{}; }
};

// Low nibbles are values 0..15, high nibbles 16..31.
struct LoadQ4_0 {
  static constexpr int kUnitBytes = 18;
  static float scale(const std::byte* unit) { return load_half(unit); }
  static Vf value(const std::byte* unit, float scale, int i) {
    const int half = i * kWidth / 16;
    const Vi bytes = load_uint8(unit + 2 + i * kWidth % 16);
    return to_float((half == 0 ? bytes & 15 : bytes >> 4) - 8) * scale;
  }
  static Vf rest(const std::byte*, int64_t) { return Vf{}; }
};

// Columns [first, last) of a tile; first is a multiple of kFloatChunk, so of kUnit.
template <class Load, int R, int N>
TESSERA_INLINE void tile(const FloatDotArgs& args, int64_t row, int64_t token, int64_t first, int64_t last) {
  const std::byte* w[R];
  const float* x[N];
  Vf total[R][N];
  TESSERA_UNROLL
  for (int r = 0; r < R; ++r) w[r] = args.weights + (row + r) * args.row_stride;
  TESSERA_UNROLL
  for (int n = 0; n < N; ++n) x[n] = args.x + (token + n) * args.x_stride;
  TESSERA_UNROLL
  for (int r = 0; r < R; ++r) {
    TESSERA_UNROLL
    for (int n = 0; n < N; ++n) total[r][n] = Vf{};
  }
  const int64_t units = last / kUnit;
  for (int64_t unit = first / kUnit; unit < units; ++unit) {
    float scale[R];
    TESSERA_UNROLL
    for (int r = 0; r < R; ++r) scale[r] = Load::scale(w[r] + unit * Load::kUnitBytes);
    TESSERA_UNROLL
    for (int i = 0; i < kUnitVectors; ++i) {
      Vf weights[R];
      TESSERA_UNROLL
      for (int r = 0; r < R; ++r) weights[r] = Load::value(w[r] + unit * Load::kUnitBytes, scale[r], i);
      TESSERA_UNROLL
      for (int n = 0; n < N; ++n) {
        const Vf values = load(x[n] + unit * kUnit + i * kWidth);
        TESSERA_UNROLL
        for (int r = 0; r < R; ++r) total[r][n] = fma(weights[r], values, total[r][n]);
      }
    }
  }
  // Columns beyond the last unit: plain formats only.
  constexpr int64_t kBytes = Load::kUnitBytes / kUnit;
  for (int64_t column = units * kUnit; column < last; column += kWidth) {
    const int64_t count = last - column < kWidth ? last - column : kWidth;
    TESSERA_UNROLL
    for (int n = 0; n < N; ++n) {
      const Vf values = count == kWidth ? load(x[n] + column) : load_partial(x[n] + column, count);
      TESSERA_UNROLL
      for (int r = 0; r < R; ++r)
        total[r][n] = fma(Load::rest(w[r] + column * kBytes, count), values, total[r][n]);
    }
  }
  const bool fresh =
      first == 0 && (args.accumulate == Accumulate::kWhole || args.accumulate == Accumulate::kFirst);
  const bool biased = last == args.columns && args.bias != nullptr &&
                      (args.accumulate == Accumulate::kWhole || args.accumulate == Accumulate::kLast);
  float* out = args.out + token * args.out_stride + row;
  TESSERA_UNROLL
  for (int n = 0; n < N; ++n) {
    float* place = out + n * args.out_stride;
    if constexpr (R % 4 == 0) {
      TESSERA_UNROLL
      for (int r = 0; r < R; r += 4) {
        V4 sums = sum4(total[r][n], total[r + 1][n], total[r + 2][n], total[r + 3][n]);
        if (!fresh) sums += *reinterpret_cast<const UnalignedV4*>(place + r);
        if (biased) sums += *reinterpret_cast<const UnalignedV4*>(args.bias + row + r);
        *reinterpret_cast<UnalignedV4*>(place + r) = sums;
      }
    } else {
      TESSERA_UNROLL
      for (int r = 0; r < R; ++r) {
        float value = sum(total[r][n]);
        if (!fresh) value += place[r];
        if (biased) value += args.bias[row + r];
        place[r] = value;
      }
    }
  }
}

// The tokens' chunk stays in the first-level cache while the rows pass.
template <class Load, int N>
TESSERA_INLINE void rows(const FloatDotArgs& args, int64_t token, int64_t first, int64_t last) {
  int64_t row = 0;
  for (; row + kTileRows <= args.rows; row += kTileRows)
    tile<Load, kTileRows, N>(args, row, token, first, last);
  for (; row < args.rows; ++row) tile<Load, 1, N>(args, row, token, first, last);
}

// One token: rows pass once, every chunk of a few rows at a time.
template <class Load>
TESSERA_INLINE void one_token(const FloatDotArgs& args) {
  int64_t row = 0;
  for (; row + 8 <= args.rows; row += 8)
    for (int64_t first = 0; first < args.columns; first += kFloatChunk)
      tile<Load, 8, 1>(args, row, 0, first,
                       args.columns - first < kFloatChunk ? args.columns : first + kFloatChunk);
  for (; row < args.rows; ++row)
    for (int64_t first = 0; first < args.columns; first += kFloatChunk)
      tile<Load, 1, 1>(args, row, 0, first,
                       args.columns - first < kFloatChunk ? args.columns : first + kFloatChunk);
}

template <class Load>
void float_dot(const FloatDotArgs& args) {
  if (args.tokens == 1) return one_token<Load>(args);
  for (int64_t first = 0; first < args.columns; first += kFloatChunk) {
    const int64_t last = args.columns - first < kFloatChunk ? args.columns : first + kFloatChunk;
    int64_t token = 0;
    for (; token + kTileTokens <= args.tokens; token += kTileTokens)
      rows<Load, kTileTokens>(args, token, first, last);
    for (; token + 2 <= args.tokens; token += 2) rows<Load, 2>(args, token, first, last);
    if (token < args.tokens) rows<Load, 1>(args, token, first, last);
  }
}

template <class Load>
void decode(const std::byte* row, int64_t count, float* values) {
  const int64_t units = count / kUnit;
  for (int64_t unit = 0; unit < units; ++unit) {
    const std::byte* place = row + unit * Load::kUnitBytes;
    const float scale = Load::scale(place);
    TESSERA_UNROLL
    for (int i = 0; i < kUnitVectors; ++i)
      store(values + unit * kUnit + i * kWidth, Load::value(place, scale, i));
  }
  constexpr int64_t kBytes = Load::kUnitBytes / kUnit;
  for (int64_t column = units * kUnit; column < count; column += kWidth) {
    const int64_t rest = count - column < kWidth ? count - column : kWidth;
    const Vf v = Load::rest(row + column * kBytes, rest);
    if (rest == kWidth)
      store(values + column, v);
    else
      store_partial(values + column, v, rest);
  }
}

template <class Load>
void add(FormatKernels& kernels) {
  kernels.decode = decode<Load>;
  kernels.float_dot = float_dot<Load>;
}

}  // namespace

void add_float_kernels(KernelTable& table) {
  add<LoadF32>(table.plain[static_cast<size_t>(DType::kF32)]);
  add<LoadF16>(table.plain[static_cast<size_t>(DType::kF16)]);
  add<LoadBF16>(table.plain[static_cast<size_t>(DType::kBF16)]);
  add<LoadQ8_0>(table.block[static_cast<size_t>(FormatKind::kQ8_0)]);
  add<LoadQ4_0>(table.block[static_cast<size_t>(FormatKind::kQ4_0)]);
}

}  // namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE
