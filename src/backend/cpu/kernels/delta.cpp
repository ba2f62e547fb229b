// The gated delta rule (arXiv 2412.06464), token by token. The columns of a head's state are independent of each other once q,
// k, decay and beta are known: those are computed first, for every token, then a range of columns walks along the sequence.
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/simd.h"
#include "backend/cpu/kernels/vector_math.h"
#include "backend/cpu/sequence_args.h"

namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE {
namespace {

TESSERA_INLINE void normalise(const float* x, int64_t width, float scale, float* out) {
  Vf squares = {};
  int64_t i = 0;
  for (; i + kWidth <= width; i += kWidth) squares = fma(load(x + i), load(x + i), squares);
  if (i < width) {
    const Vf rest = load_partial(x + i, width - i);
    squares = fma(rest, rest, squares);
  }
  const float factor = scale / __builtin_sqrtf(sum(squares) + 1e-6f);
  for (i = 0; i + kWidth <= width; i += kWidth) store(out + i, load(x + i) * factor);
  for (; i < width; ++i) out[i] = x[i] * factor;
}

void delta_inputs(const DeltaInputArgs& args, int64_t first, int64_t last) {
  const float query_scale = 1.0f / __builtin_sqrtf(static_cast<float>(args.key_dim));
  for (int64_t token = first; token < last; ++token) {
    const float* q = args.q.data + token * args.q.stride;
    const float* k = args.k.data + token * args.k.stride;
    float* keys = args.keys + token * 2 * args.key_heads * args.key_dim;
    for (int64_t head = 0; head < args.key_heads; ++head) {
      normalise(k + head * args.key_dim, args.key_dim, 1.0f, keys + 2 * head * args.key_dim);
      normalise(q + head * args.key_dim, args.key_dim, query_scale, keys + (2 * head + 1) * args.key_dim);
    }
    const float* a = args.a.data + token * args.a.stride;
    const float* b = args.b.data + token * args.b.stride;
    float* gates = args.gates + token * 2 * args.value_heads;
    for (int64_t head = 0; head < args.value_heads; head += kWidth) {
      const int64_t n = args.value_heads - head < kWidth ? args.value_heads - head : kWidth;
      float lanes[2][kWidth] = {};
      for (int64_t i = 0; i < n; ++i) {
        lanes[0][i] = a[head + i] + args.dt_bias[head + i];
        lanes[1][i] = args.decay[head + i];
      }
      float kept[kWidth];
      store(kept, exp(load(lanes[1]) * softplus(load(lanes[0]))));
      for (int64_t i = 0; i < n; ++i) lanes[0][i] = b[head + i];
      float beta[kWidth];
      store(beta, sigmoid(load(lanes[0])));
      for (int64_t i = 0; i < n; ++i) {
        gates[2 * (head + i)] = kept[i];
        gates[2 * (head + i) + 1] = beta[i];
      }
    }
  }
}

// D vectors of columns; the last one may have only `lanes` of them when D is 1.
template <int D>
TESSERA_INLINE void walk(const DeltaArgs& args, int64_t column, int64_t lanes) {
  const auto get = [lanes](const float* p) {
    return D > 1 || lanes == kWidth ? load(p) : load_partial(p, lanes);
  };
  const auto put = [lanes](float* p, Vf v) {
    if (D > 1 || lanes == kWidth)
      store(p, v);
    else
      store_partial(p, v, lanes);
  };
  if (args.read != args.write)
    for (int64_t d = 0; d < args.key_dim; ++d)
      for (int i = 0; i < D; ++i) {
        const int64_t place = d * args.value_dim + column + i * kWidth;
        put(args.write + place, get(args.read + place));
      }
  for (int64_t t = 0; t < args.tokens; ++t) {
    const float* k = args.keys + t * args.key_stride;
    const float* q = k + args.key_dim;
    const float decay = args.gates[t * args.gate_stride];
    const float beta = args.gates[t * args.gate_stride + 1];
    // Even and odd rows are summed apart: two chains of additions.
    Vf even[D];
    Vf odd[D];
    TESSERA_UNROLL
    for (int i = 0; i < D; ++i) even[i] = odd[i] = Vf{};
    int64_t d = 0;
    for (; d + 2 <= args.key_dim; d += 2) {
      const float* row = args.write + d * args.value_dim + column;
      TESSERA_UNROLL
      for (int i = 0; i < D; ++i) {
        even[i] = fma(get(row + i * kWidth), splat(k[d]), even[i]);
        odd[i] = fma(get(row + args.value_dim + i * kWidth), splat(k[d + 1]), odd[i]);
      }
    }
    if (d < args.key_dim) {
      TESSERA_UNROLL
      for (int i = 0; i < D; ++i)
        even[i] = fma(get(args.write + d * args.value_dim + column + i * kWidth), splat(k[d]), even[i]);
    }
    const float* v = args.v.data + t * args.v.stride + column;
    Vf delta[D];
    TESSERA_UNROLL
    for (int i = 0; i < D; ++i) {
      delta[i] = beta * (get(v + i * kWidth) - decay * (even[i] + odd[i]));
      even[i] = odd[i] = Vf{};
    }
    for (d = 0; d + 2 <= args.key_dim; d += 2) {
      float* row = args.write + d * args.value_dim + column;
      TESSERA_UNROLL
      for (int i = 0; i < D; ++i) {
        float* place = row + i * kWidth;
        const Vf first = fma(splat(k[d]), delta[i], decay * get(place));
        put(place, first);
        even[i] = fma(first, splat(q[d]), even[i]);
        place += args.value_dim;
        const Vf second = fma(splat(k[d + 1]), delta[i], decay * get(place));
        put(place, second);
        odd[i] = fma(second, splat(q[d + 1]), odd[i]);
      }
    }
    if (d < args.key_dim) {
      TESSERA_UNROLL
      for (int i = 0; i < D; ++i) {
        float* place = args.write + d * args.value_dim + column + i * kWidth;
        const Vf row = fma(splat(k[d]), delta[i], decay * get(place));
        put(place, row);
        even[i] = fma(row, splat(q[d]), even[i]);
      }
    }
    float* out = args.output.data + t * args.output.stride + column;
    TESSERA_UNROLL
    for (int i = 0; i < D; ++i) put(out + i * kWidth, even[i] + odd[i]);
  }
}

void delta_rule(const DeltaArgs& args, int64_t first, int64_t last) {
  int64_t column = first;
  for (; column + 4 * kWidth <= last; column += 4 * kWidth) walk<4>(args, column, kWidth);
  for (; column < last; column += kWidth)
    walk<1>(args, column, last - column < kWidth ? last - column : kWidth);
}

}  // namespace

void add_delta_kernels(KernelTable& table) {
  table.delta_inputs = delta_inputs;
  table.delta_rule = delta_rule;
}

}  // namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE
