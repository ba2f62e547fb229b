// 16-bit weights times activations rounded to bfloat16, summed in float32: twice the rate of float32 where the processor has
// the instruction. Compiled with AVX512_BF16 in the avx512 set only; elsewhere the table entries stay empty.
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/simd.h"

namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE {

#if defined(TESSERA_SIMD_AVX512) && defined(__AVX512BF16__)
namespace {

constexpr int kTileRows = 4;
constexpr int kTileTokens = 6;
constexpr int kUnit = 32;

TESSERA_INLINE __m512bh load_bf16s(const uint16_t* p) {
  return reinterpret_cast<__m512bh>(_mm512_loadu_si512(p));
}
TESSERA_INLINE __m512bh load_bf16s(const uint16_t* p, __mmask32 mask) {
  return reinterpret_cast<__m512bh>(_mm512_maskz_loadu_epi16(mask, p));
}

template <int R, int N>
TESSERA_INLINE void tile(const Bf16DotArgs& args, int64_t row, int64_t token) {
  const uint16_t* w = args.weights + row * args.row_stride;
  const uint16_t* x = args.x + token * args.x_stride;
  __m512 total[R][N];
  TESSERA_UNROLL
  for (int r = 0; r < R; ++r) {
    TESSERA_UNROLL
    for (int n = 0; n < N; ++n) total[r][n] = _mm512_setzero_ps();
  }
  int64_t column = 0;
  for (; column + kUnit <= args.columns; column += kUnit) {
    __m512bh weights[R];
    TESSERA_UNROLL
    for (int r = 0; r < R; ++r) weights[r] = load_bf16s(w + r * args.row_stride + column);
    TESSERA_UNROLL
    for (int n = 0; n < N; ++n) {
      const __m512bh values = load_bf16s(x + n * args.x_stride + column);
      TESSERA_UNROLL
      for (int r = 0; r < R; ++r) total[r][n] = _mm512_dpbf16_ps(total[r][n], weights[r], values);
    }
  }
  if (column < args.columns) {
    const auto mask = static_cast<__mmask32>((1u << (args.columns - column)) - 1u);
    TESSERA_UNROLL
    for (int n = 0; n < N; ++n) {
      const __m512bh values = load_bf16s(x + n * args.x_stride + column, mask);
      TESSERA_UNROLL
      for (int r = 0; r < R; ++r)
        total[r][n] =
            _mm512_dpbf16_ps(total[r][n], load_bf16s(w + r * args.row_stride + column, mask), values);
    }
  }
  const bool fresh = args.accumulate == Accumulate::kWhole || args.accumulate == Accumulate::kFirst;
  const bool biased =
      args.bias != nullptr && (args.accumulate == Accumulate::kWhole || args.accumulate == Accumulate::kLast);
  float* out = args.out + token * args.out_stride + row;
  TESSERA_UNROLL
  for (int n = 0; n < N; ++n) {
    float* place = out + n * args.out_stride;
    if constexpr (R % 4 == 0) {
      V4 sums = sum4(total[0][n], total[1][n], total[2][n], total[3][n]);
      if (!fresh) sums += *reinterpret_cast<const UnalignedV4*>(place);
      if (biased) sums += *reinterpret_cast<const UnalignedV4*>(args.bias + row);
      *reinterpret_cast<UnalignedV4*>(place) = sums;
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

// The tokens stay in the first-level cache while the rows pass.
template <int N>
TESSERA_INLINE void rows(const Bf16DotArgs& args, int64_t token) {
  int64_t row = 0;
  for (; row + kTileRows <= args.rows; row += kTileRows) tile<kTileRows, N>(args, row, token);
  for (; row < args.rows; ++row) tile<1, N>(args, row, token);
}

void bf16_dot(const Bf16DotArgs& args) {
  int64_t token = 0;
  for (; token + kTileTokens <= args.tokens; token += kTileTokens) rows<kTileTokens>(args, token);
  for (; token + 2 <= args.tokens; token += 2) rows<2>(args, token);
  if (token < args.tokens) rows<1>(args, token);
}

void to_bf16(const float* x, int64_t count, uint16_t* out) {
  int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i),
                        reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(load(x + i))));
  if (i < count) {
    uint16_t lanes[kWidth];
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes),
                        reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(load_partial(x + i, count - i))));
    std::memcpy(out + i, lanes, static_cast<size_t>(count - i) * 2);
  }
}

// Weights in float16, rounded to bfloat16.
void decode_f16(const std::byte* row, int64_t count, uint16_t* values) {
  const auto* source = reinterpret_cast<const uint16_t*>(row);
  int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(values + i),
                        reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(load_f16(source + i))));
  for (; i < count; ++i) {
    const float value = half_to_float(source[i]);
    to_bf16(&value, 1, values + i);
  }
}

void copy_bf16(const std::byte* row, int64_t count, uint16_t* values) {
  std::memcpy(values, row, static_cast<size_t>(count) * 2);
}

}  // namespace

void add_bf16_kernels(KernelTable& table) {
  table.to_bf16 = to_bf16;
  table.bf16_dot = bf16_dot;
  table.plain[static_cast<size_t>(DType::kF16)].decode_bf16 = decode_f16;
  table.plain[static_cast<size_t>(DType::kBF16)].decode_bf16 = copy_bf16;
}

#else

void add_bf16_kernels(KernelTable&) {}

#endif

}  // namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE
