// Convolution, delta rule, state spaces, the WKV recurrence and the streams: token by token, in the recurrent form.
#include <algorithm>
#include <cmath>

#include "backend/reference/reference_ops.h"

namespace tessera {
namespace {

double softplus(double x) {
  return x > 20.0 ? x : std::log1p(std::exp(x));
}

// Calls body(t, state) for every token of every sequence, with the block's state moved from the read slot to the write slot.
template <class Body>
void for_each_token(const ReferenceStep& step, int group, int layer, const Body& body) {
  const int64_t values =
      step.plan.states[static_cast<size_t>(group)].layers[static_cast<size_t>(layer)].values;
  for (size_t s = 0; s + 1 < step.input.sequence_offsets.size(); ++s) {
    const float* from = step.state->fixed(group, layer, step.input.read_slots[s]);
    float* to = step.state->fixed(group, layer, step.input.write_slots[s]);
    if (from != to) std::copy_n(from, values, to);
    for (int64_t t = step.input.sequence_offsets[s]; t < step.input.sequence_offsets[s + 1]; ++t) body(t, to);
  }
}

}  // namespace

void run_op(const ReferenceStep& step, const CausalConvOp& op) {
  const auto weight = step.vector(op.weight);
  const auto bias = step.vector(op.bias);
  const int64_t kept = op.kernel - 1;
  for_each_token(step, op.group, op.layer, [&](int64_t t, float* state) {
    const float* x = step.row(op.input, t);
    float* out = step.row(op.output, t);
    for (int64_t c = 0; c < op.input.width; ++c) {
      float* last = state + c * kept;
      const float* w = weight.data() + c * op.kernel;
      double sum = static_cast<double>(w[kept]) * x[c];
      for (int64_t i = 0; i < kept; ++i) sum += static_cast<double>(w[i]) * last[i];
      if (!bias.empty()) sum += bias[static_cast<size_t>(c)];
      out[c] = static_cast<float>(activate(op.activation, sum));
      if (kept == 0) continue;
      std::copy(last + 1, last + kept, last);
      last[kept - 1] = x[c];
    }
  });
}

void run_op(const ReferenceStep& step, const DeltaRuleOp& op) {
  const auto decay = step.vector(op.decay);
  const auto dt_bias = step.vector(op.dt_bias);
  const auto key_dim = static_cast<size_t>(op.key_dim);
  const auto value_dim = static_cast<size_t>(op.value_dim);
  std::vector<double> q(key_dim);
  std::vector<double> k(key_dim);
  std::vector<double> delta(value_dim);
  const auto normalised = [](const float* x, double scale, std::vector<double>& out) {
    double square = 0;
    for (size_t d = 0; d < out.size(); ++d) square += static_cast<double>(x[d]) * x[d];
    for (size_t d = 0; d < out.size(); ++d) out[d] = x[d] / std::sqrt(square + 1e-6) * scale;
  };
  for_each_token(step, op.group, op.layer, [&](int64_t t, float* all) {
    for (int64_t head = 0; head < op.value_heads; ++head) {
      const int64_t key_head =
          op.head_map == HeadMap::kGrouped ? head / (op.value_heads / op.key_heads) : head % op.key_heads;
      normalised(step.row(op.q, t) + key_head * op.key_dim, 1.0 / std::sqrt(static_cast<double>(op.key_dim)),
                 q);
      normalised(step.row(op.k, t) + key_head * op.key_dim, 1.0, k);
      const float* v = step.row(op.v, t) + head * op.value_dim;
      const auto h = static_cast<size_t>(head);
      const double g =
          std::exp(decay[h] * softplus(static_cast<double>(step.row(op.a, t)[head]) + dt_bias[h]));
      const double beta = activate(Activation::kSigmoid, step.row(op.b, t)[head]);
      float* state = all + head * op.key_dim * op.value_dim;
      for (size_t j = 0; j < value_dim; ++j) {
        double read = 0;
        for (size_t d = 0; d < key_dim; ++d) read += g * state[d * value_dim + j] * k[d];
        delta[j] = beta * (v[j] - read);
      }
      float* out = step.row(op.output, t) + head * op.value_dim;
      for (size_t j = 0; j < value_dim; ++j) {
        double sum = 0;
        for (size_t d = 0; d < key_dim; ++d) {
          const double s = g * state[d * value_dim + j] + k[d] * delta[j];
          state[d * value_dim + j] = static_cast<float>(s);
          sum += s * q[d];
        }
        out[j] = static_cast<float>(sum);
      }
    }
  });
}

void run_op(const ReferenceStep& step, const SelectiveScanOp& op) {
  const auto decay = step.vector(op.decay);
  const auto d = step.vector(op.d);
  const int64_t states = op.b.width;
  for_each_token(step, op.group, op.layer, [&](int64_t t, float* all) {
    for (int64_t c = 0; c < op.x.width; ++c) {
      const double x = step.row(op.x, t)[c];
      const double dt = softplus(step.row(op.dt, t)[c]);
      double y = d[static_cast<size_t>(c)] * x;
      for (int64_t n = 0; n < states; ++n) {
        float& state = all[c * states + n];
        const double s =
            std::exp(dt * decay[static_cast<size_t>(c * states + n)]) * state + dt * step.row(op.b, t)[n] * x;
        state = static_cast<float>(s);
        y += s * step.row(op.c, t)[n];
      }
      step.row(op.output, t)[c] = static_cast<float>(y);
    }
  });
}

void run_op(const ReferenceStep& step, const HeadScanOp& op) {
  const auto decay = step.vector(op.decay);
  const auto dt_bias = step.vector(op.dt_bias);
  const auto d = step.vector(op.d);
  for_each_token(step, op.group, op.layer, [&](int64_t t, float* all) {
    for (int64_t head = 0; head < op.heads; ++head) {
      const auto h = static_cast<size_t>(head);
      const int64_t group = head / (op.heads / op.groups);
      const float* b = step.row(op.b, t) + group * op.states;
      const float* c = step.row(op.c, t) + group * op.states;
      double dt = std::max(softplus(static_cast<double>(step.row(op.dt, t)[head]) + dt_bias[h]), op.dt_min);
      if (op.dt_max > 0) dt = std::min(dt, op.dt_max);
      const double kept = std::exp(dt * decay[h]);
      for (int64_t i = 0; i < op.head_dim; ++i) {
        const double x = step.row(op.x, t)[head * op.head_dim + i];
        double y = d[h] * x;
        for (int64_t n = 0; n < op.states; ++n) {
          float& state = all[(head * op.head_dim + i) * op.states + n];
          const double s = kept * state + dt * b[n] * x;
          state = static_cast<float>(s);
          y += s * c[n];
        }
        step.row(op.output, t)[head * op.head_dim + i] = static_cast<float>(y);
      }
    }
  });
}

void run_op(const ReferenceStep& step, const TokenShiftOp& op) {
  for_each_token(step, op.group, op.layer, [&](int64_t t, float* last) {
    const float* x = step.row(op.x, t);
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      const auto mix = step.vector(op.mixes[i]);
      float* out = step.row(op.outputs[i], t);
      for (int64_t c = 0; c < op.x.width; ++c) {
        const double m = mix[static_cast<size_t>(c)];
        out[c] = static_cast<float>(m * x[c] + (1.0 - m) * last[c]);
      }
    }
    std::copy_n(x, op.x.width, last);
  });
}

void run_op(const ReferenceStep& step, const WkvOp& op) {
  const auto decay = step.vector(op.decay);
  const auto first = step.vector(op.first);
  const int64_t channels = op.k.width;
  for_each_token(step, op.group, op.layer, [&](int64_t t, float* state) {
    for (int64_t c = 0; c < channels; ++c) {
      float& num = state[c];
      float& den = state[channels + c];
      float& top = state[2 * channels + c];
      const double before = den == 0.0f ? -INFINITY : static_cast<double>(top);
      const double k = step.row(op.k, t)[c];
      const double v = step.row(op.v, t)[c];
      const double now = first[static_cast<size_t>(c)] + k;
      const double shown = std::max(before, now);
      const double old_share = std::exp(before - shown);
      const double new_share = std::exp(now - shown);
      step.row(op.output, t)[c] =
          static_cast<float>((old_share * num + new_share * v) / (old_share * den + new_share));
      const double aged = before + decay[static_cast<size_t>(c)];
      const double next = std::max(aged, k);
      num = static_cast<float>(std::exp(aged - next) * num + std::exp(k - next) * v);
      den = static_cast<float>(std::exp(aged - next) * den + std::exp(k - next));
      top = static_cast<float>(next);
    }
  });
}

void run_op(const ReferenceStep& step, const ScaleColumnsOp& op) {
  const auto scale = step.vector(op.scale);
  for (int64_t t = 0; t < step.rows(op.input.value); ++t)
    for (int64_t i = 0; i < op.input.width; ++i)
      step.row(op.output, t)[i] = step.row(op.input, t)[i] * scale[static_cast<size_t>(i)];
}

void run_op(const ReferenceStep& step, const MixStreamsOp& op) {
  const int64_t width = op.input.width / op.streams;
  for (int64_t t = 0; t < step.tokens(); ++t) {
    const float* in = step.row(op.input, t);
    const float* coefficients = step.row(op.coefficients, t);
    float* out = step.row(op.output, t);
    for (int64_t i = 0; i < op.streams; ++i) {
      for (int64_t c = 0; c < width; ++c) {
        double sum = in[i * width + c];
        if (op.kind == MixStreamsOp::Kind::kPredict) {
          for (int64_t j = 0; j < op.streams; ++j)
            sum += static_cast<double>(coefficients[i * op.streams + j]) * in[j * width + c];
        } else {
          const double innovation =
              static_cast<double>(step.row(op.actual, t)[c]) - in[op.active * width + c];
          sum += (1.0 + coefficients[i]) * innovation;
        }
        out[i * width + c] = static_cast<float>(sum);
      }
    }
  }
}

void run_op(const ReferenceStep& step, const MatchMagnitudeOp& op) {
  const int64_t width = op.x.width / op.streams;
  const auto magnitude = [&](const float* x, double least) {
    double square = 0;
    for (int64_t c = 0; c < width; ++c)
      square += static_cast<double>(x[c]) * x[c] / static_cast<double>(width);
    return std::sqrt(std::max(square, least));
  };
  for (int64_t t = 0; t < step.tokens(); ++t) {
    float* x = step.row(op.x, t);
    const double target = magnitude(x, 0.0);
    for (int64_t i = 1; i < op.streams; ++i) {
      const double factor = target / magnitude(x + i * width, op.eps);
      for (int64_t c = 0; c < width; ++c) x[i * width + c] = static_cast<float>(x[i * width + c] * factor);
    }
  }
}

}  // namespace tessera
