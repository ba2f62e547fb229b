// Norms, rotary embedding, activations, residual sums: everything that works row by row on values.
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/simd.h"
#include "backend/cpu/kernels/vector_math.h"

namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE {
namespace {

// Calls body(column, load, store) for whole vectors and once for the rest; `at` reads, `put` writes that many lanes.
template <class Body>
TESSERA_INLINE void for_columns(int64_t width, const Body& body) {
  int64_t column = 0;
  for (; column + kWidth <= width; column += kWidth)
    body([column](const float* p) { return load(p + column); },
         [column](float* p, Vf v) { store(p + column, v); });
  const int64_t rest = width - column;
  if (rest > 0)
    body([column, rest](const float* p) { return load_partial(p + column, rest); },
         [column, rest](float* p, Vf v) { store_partial(p + column, v, rest); });
}

struct Moments {
  float mean;
  float factor;  // (variance + eps)^-0.5
};

TESSERA_INLINE Moments moments(const float* x, int64_t width, NormKind kind, float eps) {
  const auto count = static_cast<float>(width);
  float mean = 0;
  if (kind == NormKind::kLayer) {
    Vf total = {};
    for_columns(width, [&](auto at, auto) { total += at(x); });
    mean = sum(total) / count;
  }
  Vf squares = {};
  const Vf center = splat(mean);
  int64_t column = 0;
  for (; column + kWidth <= width; column += kWidth) {
    const Vf d = load(x + column) - center;
    squares = fma(d, d, squares);
  }
  float rest = 0;
  for (; column < width; ++column) rest += (x[column] - mean) * (x[column] - mean);
  const float variance = (sum(squares) + rest) / count;
  return {mean, 1.0f / __builtin_sqrtf(variance + eps)};
}

TESSERA_INLINE void norm_group(const float* x, float* out, int64_t width, const NormArgs& args,
                               const float* gain, const float* bias) {
  const Moments m = moments(x, width, args.kind, args.eps);
  const Vf mean = splat(m.mean);
  const Vf factor = splat(m.factor);
  for_columns(width, [&](auto at, auto put) {
    Vf v = (at(x) - mean) * factor;
    if (gain != nullptr) v *= at(gain);
    if (bias != nullptr) v += at(bias);
    put(out, v);
  });
}

template <class Function>
TESSERA_INLINE void activate_rows(const ActivateArgs& args, int64_t first, int64_t last,
                                  const Function& function) {
  for (int64_t row = first; row < last; ++row) {
    const float* gate = args.gate + row * args.gate_stride;
    const float* up = args.up == nullptr ? nullptr : args.up + row * args.up_stride;
    float* out = args.output + row * args.output_stride;
    if (up != nullptr)
      for_columns(args.width, [&](auto at, auto put) { put(out, function(at(gate)) * at(up)); });
    else
      for_columns(args.width, [&](auto at, auto put) { put(out, function(at(gate))); });
  }
}

// One head, pairs (i, i + pairs).
TESSERA_INLINE void rotate_halves(float* x, const float* cos, const float* sin, int64_t pairs) {
  for_columns(pairs, [&](auto at, auto put) {
    const Vf a = at(x);
    const Vf b = at(x + pairs);
    const Vf c = at(cos);
    const Vf s = at(sin);
    put(x, a * c - b * s);
    put(x + pairs, b * c + a * s);
  });
}

TESSERA_INLINE void rotate_neighbours(float* x, const float* cos, const float* sin, int64_t pairs) {
  for (int64_t i = 0; i < pairs; ++i) {
    const float a = x[2 * i];
    const float b = x[2 * i + 1];
    x[2 * i] = a * cos[i] - b * sin[i];
    x[2 * i + 1] = b * cos[i] + a * sin[i];
  }
}

}  // namespace

void norm(const NormArgs& args, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    const float* x = args.input + row * args.input_stride;
    float* out = args.output + row * args.output_stride;
    for (int64_t start = 0; start < args.width; start += args.group) {
      const int64_t shift = args.per_row ? start : 0;
      norm_group(x + start, out + start, args.group, args, args.gain == nullptr ? nullptr : args.gain + shift,
                 args.bias == nullptr ? nullptr : args.bias + shift);
    }
  }
}

void rope(const RopeArgs& args, int64_t first, int64_t last) {
  const int64_t pairs = args.dim / 2;
  for (int64_t row = first; row < last; ++row) {
    const float* cos = args.cos + row * pairs;
    const float* sin = args.sin + row * pairs;
    float* x = args.x + row * args.stride;
    for (int64_t head = 0; head < args.heads; ++head, x += args.head_dim) {
      if (args.layout == RopeLayout::kHalfSplit)
        rotate_halves(x, cos, sin, pairs);
      else
        rotate_neighbours(x, cos, sin, pairs);
    }
  }
}

void activate(const ActivateArgs& args, int64_t first, int64_t last) {
  switch (args.activation) {
    case Activation::kSilu:
      return activate_rows(args, first, last, [](Vf x) { return x * sigmoid(x); });
    case Activation::kGeluErf:
      return activate_rows(args, first, last,
                           [](Vf x) { return 0.5f * x * (1.0f + erf(x * 0.70710678118654752f)); });
    case Activation::kGeluTanh:
      return activate_rows(args, first, last, [](Vf x) {
        return 0.5f * x * (1.0f + tanh(0.79788456080286536f * (x + 0.044715f * x * x * x)));
      });
    case Activation::kRelu:
      return activate_rows(args, first, last, [](Vf x) { return max(splat(0.0f), x); });
    case Activation::kReluSquared:
      return activate_rows(args, first, last, [](Vf x) {
        const Vf positive = max(splat(0.0f), x);
        return positive * positive;
      });
    case Activation::kSigmoid:
      return activate_rows(args, first, last, [](Vf x) { return sigmoid(x); });
    case Activation::kTanh:
      return activate_rows(args, first, last, [](Vf x) { return tanh(x); });
    case Activation::kGeluSigmoid:
      return activate_rows(args, first, last, [](Vf x) { return x * sigmoid(1.702f * x); });
    case Activation::kIdentity:
      return activate_rows(args, first, last, [](Vf x) { return x; });
  }
}

void clamp(const ClampArgs& args, int64_t first, int64_t last) {
  const Vf limit = splat(args.limit);
  for (int64_t row = first; row < last; ++row) {
    const float* in = args.input + row * args.input_stride;
    float* out = args.output + row * args.output_stride;
    for_columns(args.width, [&](auto at, auto put) { put(out, min(limit, max(-limit, at(in)))); });
  }
}

void sparsify(const SparsifyArgs& args, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    const float* in = args.input + row * args.input_stride;
    float* out = args.output + row * args.output_stride;
    const Moments m = moments(in, args.width, NormKind::kLayer, 0.0f);
    // A row of equal values has no deviation: its factor is infinite.
    const Vf cutoff = splat(m.mean + args.deviations / m.factor);
    for_columns(args.width, [&](auto at, auto put) { put(out, max(splat(0.0f), at(in) - cutoff)); });
  }
}

void sigmoid_gate(const SigmoidGateArgs& args, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    const float* x = args.x + row * args.x_stride;
    const float* gate = args.gate + row * args.gate_stride;
    float* out = args.output + row * args.output_stride;
    if (args.group == 1) {
      for_columns(args.width, [&](auto at, auto put) { put(out, at(x) * sigmoid(at(gate))); });
      continue;
    }
    for (int64_t start = 0; start < args.width; start += args.group) {
      const Vf factor = sigmoid(splat(gate[start / args.group]));
      for_columns(args.group, [&](auto at, auto put) { put(out + start, at(x + start) * factor); });
    }
  }
}

void combine(const CombineArgs& args, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    const float* residual = args.residual == nullptr ? nullptr : args.residual + row * args.residual_stride;
    float* out = args.output + row * args.output_stride;
    for_columns(args.width, [&](auto at, auto put) {
      Vf total = {};
      for (int64_t i = 0; i < args.term_count; ++i) {
        const CombineInput& term = args.terms[i];
        total += term.factor * at(term.data + row * term.stride);
      }
      total *= args.alpha;
      if (residual != nullptr) total = at(residual) + total;
      put(out, total * args.beta);
    });
  }
}

void scale_logits(const ScaleLogitsArgs& args, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    float* x = args.x + row * args.stride;
    if (args.softcap == 0.0f) {
      scale(x, args.width, args.scale);
      continue;
    }
    for_columns(args.width,
                [&](auto at, auto put) { put(x, args.softcap * tanh(args.scale * at(x) / args.softcap)); });
  }
}

void add(float* values, const float* others, int64_t count) {
  for_columns(count, [&](auto at, auto put) { put(values, at(values) + at(others)); });
}

void add_scaled(float* values, const float* others, float factor, int64_t count) {
  for_columns(count, [&](auto at, auto put) { put(values, fma(splat(factor), at(others), at(values))); });
}

void limit_gated(float* gate, float* up, float limit, float offset, int64_t count) {
  const Vf high = splat(limit != 0.0f ? limit : __builtin_inff());
  for_columns(count, [&](auto at, auto put) {
    if (gate != nullptr) put(gate, min(high, at(gate)));
    put(up, min(high, max(-high, at(up))) + offset);
  });
}

void scale(float* values, int64_t count, float factor) {
  for_columns(count, [&](auto at, auto put) { put(values, at(values) * factor); });
}

}  // namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE
