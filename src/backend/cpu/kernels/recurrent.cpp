// Convolutions, token shifts and state spaces along a sequence, in the recurrent form. Channels and heads are independent, so
// vectors run over them (or over the states of one) and the tokens of a sequence follow one another inside. What a token gets
// depends on the state before it only: a prompt in pieces gives the same bits as in one.
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/simd.h"
#include "backend/cpu/kernels/vector_math.h"
#include "backend/cpu/sequence_args.h"

namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE {
namespace {

constexpr float kMinusInfinity = -__builtin_inff();

// `n` floats at p: a whole vector or the first lanes of one.
TESSERA_INLINE Vf load_lanes(const float* p, int64_t n) {
  return n == kWidth ? load(p) : load_partial(p, n);
}
TESSERA_INLINE void store_lanes(float* p, Vf v, int64_t n) {
  if (n == kWidth)
    store(p, v);
  else
    store_partial(p, v, n);
}
TESSERA_INLINE int64_t lanes_at(int64_t column, int64_t last) {
  return last - column < kWidth ? last - column : kWidth;
}
// A column of a row-major matrix.
TESSERA_INLINE Vf load_strided(const float* p, int64_t stride, int64_t n) {
  float lanes[kWidth] = {};
  for (int64_t i = 0; i < n; ++i) lanes[i] = p[i * stride];
  return load(lanes);
}

void causal_conv(const ConvArgs& args, int64_t first, int64_t last) {
  const int64_t kept = args.kernel - 1;
  for (int64_t channel = first; channel < last; channel += kWidth) {
    const int64_t n = lanes_at(channel, last);
    const float* x = args.input.data + channel;
    const float* history = args.read + channel * kept;
    const Vf bias = args.bias == nullptr ? Vf{} : load_lanes(args.bias + channel, n);
    for (int64_t t = 0; t < args.tokens; ++t) {
      Vf total = bias;
      for (int64_t i = 0; i < args.kernel; ++i) {
        const int64_t source = t - kept + i;
        const Vf value = source >= 0 ? load_lanes(x + source * args.input.stride, n)
                                     : load_strided(history + kept + source, kept, n);
        total = fma(load_lanes(args.weights + i * args.channels + channel, n), value, total);
      }
      store_lanes(args.output.data + t * args.output.stride + channel, total, n);
    }
    for (int64_t lane = 0; lane < n; ++lane) {
      const float* from = args.read + (channel + lane) * kept;
      float* to = args.write + (channel + lane) * kept;
      for (int64_t i = 0; i < kept; ++i) {
        const int64_t source = args.tokens - kept + i;
        to[i] = source >= 0 ? x[source * args.input.stride + lane] : from[i + args.tokens];
      }
    }
  }
}

void token_shift(const ShiftArgs& args, int64_t first, int64_t last) {
  for (int64_t column = first; column < last; column += kWidth) {
    const int64_t n = lanes_at(column, last);
    const Vf mix = load_lanes(args.mix + column, n);
    Vf before = load_lanes(args.read + column, n);
    for (int64_t t = 0; t < args.tokens; ++t) {
      const Vf x = load_lanes(args.input.data + t * args.input.stride + column, n);
      store_lanes(args.output.data + t * args.output.stride + column, mix * x + (1.0f - mix) * before, n);
      before = x;
    }
    if (args.write != nullptr) store_lanes(args.write + column, before, n);
  }
}

void wkv(const WkvArgs& args, int64_t first, int64_t last) {
  for (int64_t channel = first; channel < last; channel += kWidth) {
    const int64_t n = lanes_at(channel, last);
    const Vf decay = load_lanes(args.decay + channel, n);
    const Vf bonus = load_lanes(args.first + channel, n);
    Vf num = load_lanes(args.read + channel, n);
    Vf den = load_lanes(args.read + args.channels + channel, n);
    Vf top = load_lanes(args.read + 2 * args.channels + channel, n);
    top = select(den == 0.0f, splat(kMinusInfinity), top);
    for (int64_t t = 0; t < args.tokens; ++t) {
      const Vf k = load_lanes(args.k.data + t * args.k.stride + channel, n);
      const Vf v = load_lanes(args.v.data + t * args.v.stride + channel, n);
      const Vf now = bonus + k;
      const Vf shown = max(top, now);
      const Vf old_share = exp(top - shown);
      const Vf new_share = exp(now - shown);
      const Vf out = fma(old_share, num, new_share * v) / fma(old_share, den, new_share);
      store_lanes(args.output.data + t * args.output.stride + channel, out, n);
      const Vf aged = top + decay;
      const Vf next = max(aged, k);
      const Vf kept = exp(aged - next);
      const Vf added = exp(k - next);
      num = fma(kept, num, added * v);
      den = fma(kept, den, added);
      top = next;
    }
    store_lanes(args.write + channel, num, n);
    store_lanes(args.write + args.channels + channel, den, n);
    store_lanes(args.write + 2 * args.channels + channel, top, n);
  }
}

void selective_scan(const SelectiveScanArgs& args, int64_t first, int64_t last) {
  const int64_t states = args.states;
  if (args.write != args.read)
    for (int64_t i = first * states; i < last * states; ++i) args.write[i] = args.read[i];
  for (int64_t channel = first; channel < last; channel += kWidth) {
    const int64_t n = lanes_at(channel, last);
    const Vf d = load_lanes(args.d + channel, n);
    for (int64_t t = 0; t < args.tokens; ++t) {
      const Vf x = load_lanes(args.x.data + t * args.x.stride + channel, n);
      const Vf dt = softplus(load_lanes(args.dt.data + t * args.dt.stride + channel, n));
      const float* b = args.b.data + t * args.b.stride;
      const float* c = args.c.data + t * args.c.stride;
      float steps[kWidth];
      float inputs[kWidth];
      float outputs[kWidth] = {};
      store(steps, dt);
      store(inputs, dt * x);
      for (int64_t lane = 0; lane < n; ++lane) {
        float* state = args.write + (channel + lane) * states;
        const float* decay = args.decay + (channel + lane) * states;
        Vf total = {};
        for (int64_t i = 0; i < states; i += kWidth) {
          const int64_t m = lanes_at(i, states);
          const Vf kept = exp(steps[lane] * load_lanes(decay + i, m));
          const Vf s = fma(kept, load_lanes(state + i, m), inputs[lane] * load_lanes(b + i, m));
          store_lanes(state + i, s, m);
          total = fma(s, load_lanes(c + i, m), total);
        }
        outputs[lane] = sum(total);
      }
      store_lanes(args.output.data + t * args.output.stride + channel, fma(d, x, load(outputs)), n);
    }
  }
}

// R rows of a head's state over `tokens` tokens.
template <int R>
TESSERA_INLINE void scan_rows(const HeadScanArgs& args, int64_t head, int64_t row, int64_t first,
                              int64_t tokens, const float* steps, const float* kept) {
  const int64_t group = head / args.heads_per_group;
  const int64_t column = head * args.head_dim + row;
  float* state = args.write + column * args.states;
  for (int64_t t = 0; t < tokens; ++t) {
    const int64_t token = first + t;
    const float* x = args.x.data + token * args.x.stride + column;
    const float* b = args.b.data + token * args.b.stride + group * args.states;
    const float* c = args.c.data + token * args.c.stride + group * args.states;
    Vf total[R];
    Vf input[R];
    TESSERA_UNROLL
    for (int r = 0; r < R; ++r) {
      total[r] = Vf{};
      input[r] = splat(steps[t] * x[r]);
    }
    for (int64_t i = 0; i < args.states; i += kWidth) {
      const int64_t m = lanes_at(i, args.states);
      const Vf in = load_lanes(b + i, m);
      const Vf out = load_lanes(c + i, m);
      TESSERA_UNROLL
      for (int r = 0; r < R; ++r) {
        float* place = state + r * args.states + i;
        const Vf s = fma(splat(kept[t]), load_lanes(place, m), input[r] * in);
        store_lanes(place, s, m);
        total[r] = fma(s, out, total[r]);
      }
    }
    float* y = args.output.data + token * args.output.stride + column;
    TESSERA_UNROLL
    for (int r = 0; r < R; ++r) y[r] = args.d[head] * x[r] + sum(total[r]);
  }
}

void head_scan(const HeadScanArgs& args, int64_t first, int64_t last) {
  constexpr int64_t kBlock = 64;
  const int64_t size = args.head_dim * args.states;
  if (args.write != args.read)
    for (int64_t i = first * size; i < last * size; ++i) args.write[i] = args.read[i];
  for (int64_t head = first; head < last; ++head) {
    for (int64_t start = 0; start < args.tokens; start += kBlock) {
      const int64_t tokens = args.tokens - start < kBlock ? args.tokens - start : kBlock;
      float steps[kBlock];
      float kept[kBlock];
      for (int64_t t = 0; t < tokens; t += kWidth) {
        const int64_t n = lanes_at(t, tokens);
        const float* place = args.dt.data + (start + t) * args.dt.stride + head;
        Vf dt = softplus(load_strided(place, args.dt.stride, n) + args.dt_bias[head]);
        dt = max(splat(args.dt_min), dt);
        if (args.dt_max > 0) dt = min(splat(args.dt_max), dt);
        store(steps + t, dt);
        store(kept + t, exp(dt * args.decay[head]));
      }
      int64_t row = 0;
      for (; row + 4 <= args.head_dim; row += 4) scan_rows<4>(args, head, row, start, tokens, steps, kept);
      for (; row < args.head_dim; ++row) scan_rows<1>(args, head, row, start, tokens, steps, kept);
    }
  }
}

}  // namespace

void add_recurrent_kernels(KernelTable& table) {
  table.causal_conv = causal_conv;
  table.token_shift = token_shift;
  table.wkv = wkv;
  table.selective_scan = selective_scan;
  table.head_scan = head_scan;
}

}  // namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE
