// Latent attention over rows of latents: the running softmax (Milakov and Gimelshein, 2018) over steps of kLatentStep
// positions counted from position 0, and sums of rows weighed by shares. Every query is computed on its own: what it gets
// does not depend on the queries beside it.
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/simd.h"
#include "backend/cpu/kernels/vector_math.h"
#include "backend/cpu/sequence_args.h"

namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE {
namespace {

constexpr float kMinusInfinity = -__builtin_inff();

#if defined(TESSERA_SIMD_AVX512)
constexpr int kMixQueries = 4;
constexpr int kMixVectors = 4;
#else
constexpr int kMixQueries = 4;
constexpr int kMixVectors = 2;
#endif

void latent_softmax(const LatentSoftmaxArgs& args) {
  constexpr int kVectors = static_cast<int>(kLatentStep) / kWidth;
  for (int64_t n = 0; n < args.queries; ++n) {
    float* scores = args.scores + n * kLatentStep;
    const int32_t visible = args.visible[n];
    if (visible <= 0) {
      for (int i = 0; i < kVectors; ++i) store(scores + i * kWidth, Vf{});
      args.corrections[n] = 1;
      continue;
    }
    Vf best = splat(kMinusInfinity);
    TESSERA_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      const Vi position = lane_numbers() + i * kWidth;
      const Vf score =
          select(position < visible, load(scores + i * kWidth) * args.scale, splat(kMinusInfinity));
      store(scores + i * kWidth, score);
      best = max(score, best);
    }
    const float before = args.maxima[n];
    const float step_maximum = maximum(best);
    const float now = step_maximum > before ? step_maximum : before;
    Vf total = {};
    TESSERA_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      const Vf share = exp(load(scores + i * kWidth) - now);
      total += share;
      store(scores + i * kWidth, share);
    }
    const float correction = before == now ? 1.0f : exp(splat(before - now))[0];
    args.maxima[n] = now;
    args.totals[n] = args.totals[n] * correction + sum(total);
    args.corrections[n] = correction;
  }
}

struct RowsF32 {
  static Vf get(const std::byte* row, int64_t column) {
    return load(reinterpret_cast<const float*>(row) + column);
  }
  static float one(const std::byte* row, int64_t column) {
    return reinterpret_cast<const float*>(row)[column];
  }
};
struct RowsF16 {
  static Vf get(const std::byte* row, int64_t column) {
    return load_f16(reinterpret_cast<const uint16_t*>(row) + column);
  }
  static float one(const std::byte* row, int64_t column) {
    return half_to_float(reinterpret_cast<const uint16_t*>(row)[column]);
  }
};

template <class Element, int N, int D>
TESSERA_INLINE void mix_tile(const LatentMixArgs& args, int64_t query, int64_t column) {
  Vf total[N][D];
  float* out = args.output.data + query * args.output.stride + column;
  TESSERA_UNROLL
  for (int n = 0; n < N; ++n) {
    TESSERA_UNROLL
    for (int i = 0; i < D; ++i)
      total[n][i] = args.corrections == nullptr
                        ? Vf{}
                        : load(out + n * args.output.stride + i * kWidth) * args.corrections[query + n];
  }
  const float* shares = args.shares + query * args.share_stride;
  for (int64_t j = 0; j < args.count; ++j) {
    Vf v[D];
    TESSERA_UNROLL
    for (int i = 0; i < D; ++i) v[i] = Element::get(args.values + j * args.value_stride, column + i * kWidth);
    TESSERA_UNROLL
    for (int n = 0; n < N; ++n) {
      const Vf share = splat(shares[n * args.share_stride + j]);
      TESSERA_UNROLL
      for (int i = 0; i < D; ++i) total[n][i] = fma(share, v[i], total[n][i]);
    }
  }
  TESSERA_UNROLL
  for (int n = 0; n < N; ++n) {
    TESSERA_UNROLL
    for (int i = 0; i < D; ++i) store(out + n * args.output.stride + i * kWidth, total[n][i]);
  }
}

template <class Element, int N>
TESSERA_INLINE void mix_queries(const LatentMixArgs& args, int64_t query) {
  int64_t column = 0;
  for (; column + kMixVectors * kWidth <= args.width; column += kMixVectors * kWidth)
    mix_tile<Element, N, kMixVectors>(args, query, column);
  for (; column + kWidth <= args.width; column += kWidth) mix_tile<Element, N, 1>(args, query, column);
  for (; column < args.width; ++column) {
    for (int n = 0; n < N; ++n) {
      float& out = args.output.data[(query + n) * args.output.stride + column];
      float total = args.corrections == nullptr ? 0.0f : out * args.corrections[query + n];
      for (int64_t j = 0; j < args.count; ++j)
        total += args.shares[(query + n) * args.share_stride + j] *
                 Element::one(args.values + j * args.value_stride, column);
      out = total;
    }
  }
}

template <class Element>
void mix_rows(const LatentMixArgs& args) {
  int64_t query = 0;
  for (; query + kMixQueries <= args.queries; query += kMixQueries)
    mix_queries<Element, kMixQueries>(args, query);
  for (; query < args.queries; ++query) mix_queries<Element, 1>(args, query);
}

void latent_mix(const LatentMixArgs& args) {
  if (args.element == CacheElement::kF16)
    mix_rows<RowsF16>(args);
  else
    mix_rows<RowsF32>(args);
}

}  // namespace

void add_latent_kernels(KernelTable& table) {
  table.latent_softmax = latent_softmax;
  table.latent_mix = latent_mix;
}

}  // namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE
