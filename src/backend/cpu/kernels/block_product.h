// Products of small matrices in registers, for the blocked forms of recurrences: a block of tokens is a few dozen rows, the state
// and the block's keys are matrices beside it. Every result is one sum over the inner index in order, so that it depends neither
// on how rows and columns are split into tiles nor on what else is computed.
#pragma once

#include "backend/cpu/kernels/simd.h"

namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE {
namespace {

#if defined(TESSERA_SIMD_AVX512)
constexpr int kProductRows = 6;
constexpr int kProductVectors = 4;
#else
constexpr int kProductRows = 4;
constexpr int kProductVectors = 2;
#endif

enum class Inner {
  kAll,
  kLower,  // row r sums k <= r only; what `a` holds beyond that within a tile of rows must be 0
};

// out[r, c] = keep[r] * out[r, c] + sum over k < inner of a[r, k] * b[k, c], r < rows, c < columns.
struct Product {
  const float* a = nullptr;
  int64_t a_row = 0;  // from row to row of a, and from column to column
  int64_t a_column = 1;
  const float* b = nullptr;
  int64_t b_row = 0;
  float* out = nullptr;
  int64_t out_row = 0;
  const float* keep = nullptr;  // null: 0
  int64_t keep_step = 1;        // 0: one factor for all rows
  int64_t rows = 0;
  int64_t inner = 0;
  int64_t columns = 0;
};

// V vectors of columns; the last one has only `lanes` of them, when that is below kWidth (V is 1 then).
template <int R, int V>
TESSERA_INLINE void product_tile(const Product& p, int64_t row, int64_t column, int64_t inner,
                                 int64_t lanes) {
  const auto get = [lanes](const float* place) {
    return V > 1 || lanes == kWidth ? load(place) : load_partial(place, lanes);
  };
  float* out = p.out + row * p.out_row + column;
  Vf total[R][V];
  TESSERA_UNROLL
  for (int r = 0; r < R; ++r) {
    TESSERA_UNROLL
    for (int i = 0; i < V; ++i)
      total[r][i] =
          p.keep == nullptr ? Vf{} : get(out + r * p.out_row + i * kWidth) * p.keep[(row + r) * p.keep_step];
  }
  const float* a = p.a + row * p.a_row;
  const float* b = p.b + column;
  for (int64_t k = 0; k < inner; ++k) {
    Vf values[V];
    TESSERA_UNROLL
    for (int i = 0; i < V; ++i) values[i] = get(b + i * kWidth);
    TESSERA_UNROLL
    for (int r = 0; r < R; ++r) {
      const Vf factor = splat(a[r * p.a_row]);
      TESSERA_UNROLL
      for (int i = 0; i < V; ++i) total[r][i] = fma(factor, values[i], total[r][i]);
    }
    a += p.a_column;
    b += p.b_row;
  }
  TESSERA_UNROLL
  for (int r = 0; r < R; ++r) {
    TESSERA_UNROLL
    for (int i = 0; i < V; ++i) {
      if (V > 1 || lanes == kWidth)
        store(out + r * p.out_row + i * kWidth, total[r][i]);
      else
        store_partial(out + r * p.out_row + i * kWidth, total[r][i], lanes);
    }
  }
}

template <Inner I, int V>
TESSERA_INLINE void product_columns(const Product& p, int64_t column, int64_t lanes) {
  const auto inner = [&p](int64_t end) { return I == Inner::kLower && end < p.inner ? end : p.inner; };
  int64_t row = 0;
  for (; row + kProductRows <= p.rows; row += kProductRows)
    product_tile<kProductRows, V>(p, row, column, inner(row + kProductRows), lanes);
  for (; row + 2 <= p.rows; row += 2) product_tile<2, V>(p, row, column, inner(row + 2), lanes);
  for (; row < p.rows; ++row) product_tile<1, V>(p, row, column, inner(row + 1), lanes);
}

// A column tile of b passes under all rows of a while it lies in the first-level cache.
template <Inner I>
TESSERA_INLINE void product(const Product& p) {
  int64_t column = 0;
  for (; column + kProductVectors * kWidth <= p.columns; column += kProductVectors * kWidth)
    product_columns<I, kProductVectors>(p, column, kWidth);
  for (; column < p.columns; column += kWidth)
    product_columns<I, 1>(p, column, p.columns - column < kWidth ? p.columns - column : kWidth);
}

// to[c, r] = from[r, c], rows of `from` from_row and rows of `to` to_row floats apart.
TESSERA_INLINE void transpose(const float* from, int64_t from_row, int64_t rows, int64_t columns, float* to,
                              int64_t to_row) {
  const auto at = [](const float* place) { return *reinterpret_cast<const UnalignedV4*>(place); };
  const auto put = [](float* place, V4 v) { *reinterpret_cast<UnalignedV4*>(place) = v; };
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4) {
    const float* place = from + row * from_row;
    int64_t column = 0;
    for (; column + 4 <= columns; column += 4) {
      const V4 a = at(place + column);
      const V4 b = at(place + from_row + column);
      const V4 c = at(place + 2 * from_row + column);
      const V4 d = at(place + 3 * from_row + column);
      const V4 ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
      const V4 ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      const V4 cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
      const V4 cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      float* target = to + column * to_row + row;
      put(target, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
      put(target + to_row, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
      put(target + 2 * to_row, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
      put(target + 3 * to_row, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
    }
    for (; column < columns; ++column)
      for (int64_t r = 0; r < 4; ++r) to[column * to_row + row + r] = place[r * from_row + column];
  }
  for (; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      to[column * to_row + row] = from[row * from_row + column];
}

}  // namespace
}  // namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE
