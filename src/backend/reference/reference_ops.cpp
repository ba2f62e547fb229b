// Pointwise ops, norms, linear maps and rope.
#include "backend/reference/reference_ops.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "formats/format_info.h"

namespace tessera {
namespace {

double factor(const ReferenceStep& step, double constant, WeightId slot) {
  const auto values = step.vector(slot);
  return values.empty() ? constant : constant * values[0];
}

// The axis (time, height, width) whose position turns pair i. Contiguous sections: the first s0 pairs turn by
// axis 0, the next s1 by axis 1, ...; interleaved: pair i belongs to axis i mod 3 while that axis has pairs
// left, to time otherwise.
int rope_axis(const RopeSpec& rope, int64_t pair) {
  if (rope.sections.empty()) return 0;
  if (rope.sections_interleaved) {
    for (const int axis : {1, 2})
      if (pair % 3 == axis && pair < rope.sections[static_cast<size_t>(axis)] * 3) return axis;
    return 0;
  }
  int64_t end = 0;
  for (int axis = 0; axis < 3; ++axis) {
    end += rope.sections[static_cast<size_t>(axis)];
    if (pair < end) return axis;
  }
  return 2;
}

}  // namespace

double activate(Activation activation, double x) {
  switch (activation) {
    case Activation::kSilu:
      return x / (1.0 + std::exp(-x));
    case Activation::kGeluErf:
      return 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2));
    case Activation::kGeluTanh:
      return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kReluSquared:
      return std::max(x, 0.0) * std::max(x, 0.0);
    case Activation::kSigmoid:
      return 1.0 / (1.0 + std::exp(-x));
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kIdentity:
      return x;
    case Activation::kGeluSigmoid:
      return x / (1.0 + std::exp(-1.702 * x));
  }
  return x;
}

std::span<const Weight> expert_parts(const BoundSlot& slot, int64_t expert) {
  const size_t per_expert = slot.parts.size() / static_cast<size_t>(slot.slot.shape[0]);
  return std::span(slot.parts).subspan(static_cast<size_t>(expert) * per_expert, per_expert);
}

void multiply(std::span<const Weight> matrix, const float* x, int64_t rows, double* y) {
  const int64_t columns = matrix.front().columns;
  std::vector<float> row(static_cast<size_t>(columns));
  for (const Weight& part : matrix) {
    for (int64_t n = 0; n < part.rows && rows > 0; ++n, --rows) {
      decode_row(part, n, 0, columns, row.data());
      double sum = 0;
      for (int64_t k = 0; k < columns; ++k) sum += static_cast<double>(x[k]) * row[static_cast<size_t>(k)];
      *y++ = sum;
    }
  }
}

void run_op(const ReferenceStep& step, const EmbedOp& op) {
  const int64_t width = op.output.width;
  const BoundSlot& table = step.weights.at(op.table);
  for (int64_t t = 0; t < step.tokens(); ++t) {
    float* out = step.row(op.output, t);
    if (op.source == EmbedSource::kIdsOrEmbeddings && !step.input.embeddings.empty()) {
      std::copy_n(step.input.embeddings.data() + t * width, width, out);
      continue;
    }
    int64_t id = step.input.tokens[static_cast<size_t>(t)];
    const Weight* part = table.parts.data();
    while (id >= part->rows) id -= (part++)->rows;
    decode_row(*part, id, 0, width, out);
    for (int64_t i = 0; i < width; ++i) out[i] *= op.scale;
  }
}

void run_op(const ReferenceStep& step, const PositionEmbedOp& op) {
  const BoundSlot& table = step.weights.at(op.table);
  std::vector<float> row(static_cast<size_t>(op.x.width));
  for (int64_t t = 0; t < step.tokens(); ++t) {
    decode_row(table.parts.front(), step.input.positions[static_cast<size_t>(t)] + op.offset, 0, op.x.width,
               row.data());
    float* x = step.row(op.x, t);
    for (int64_t i = 0; i < op.x.width; ++i) x[i] += row[static_cast<size_t>(i)];
  }
}

void run_op(const ReferenceStep& step, const ClampOp& op) {
  const auto limit = static_cast<float>(op.limit);
  for (int64_t t = 0; t < step.rows(op.input.value); ++t)
    for (int64_t i = 0; i < op.input.width; ++i)
      step.row(op.output, t)[i] = std::clamp(step.row(op.input, t)[i], -limit, limit);
}

void run_op(const ReferenceStep& step, const SparsifyOp& op) {
  const auto count = static_cast<double>(op.input.width);
  for (int64_t t = 0; t < step.rows(op.input.value); ++t) {
    const float* in = step.row(op.input, t);
    float* out = step.row(op.output, t);
    double mean = 0;
    double square = 0;
    for (int64_t i = 0; i < op.input.width; ++i) mean += in[i] / count;
    for (int64_t i = 0; i < op.input.width; ++i) square += (in[i] - mean) * (in[i] - mean) / count;
    const double cutoff = mean + op.deviations * std::sqrt(square);
    for (int64_t i = 0; i < op.input.width; ++i) out[i] = static_cast<float>(std::max(0.0, in[i] - cutoff));
  }
}

void run_op(const ReferenceStep& step, const SigmoidGateOp& op) {
  const int64_t group = op.x.width / op.gate.width;
  for (int64_t t = 0; t < step.rows(op.x.value); ++t) {
    const float* x = step.row(op.x, t);
    const float* gate = step.row(op.gate, t);
    float* out = step.row(op.output, t);
    for (int64_t i = 0; i < op.x.width; ++i)
      out[i] = static_cast<float>(x[i] * activate(Activation::kSigmoid, gate[i / group]));
  }
}

void run_op(const ReferenceStep& step, const NormOp& op) {
  const auto gain = step.vector(op.gain);
  const auto bias = step.vector(op.bias);
  const auto count = static_cast<double>(op.group);
  for (int64_t t = 0; t < step.rows(op.input.value); ++t) {
    const float* in = step.row(op.input, t);
    float* out = step.row(op.output, t);
    for (int64_t begin = 0; begin < op.input.width; begin += op.group) {
      double mean = 0;
      double square = 0;
      if (op.kind == NormKind::kLayer) {
        for (int64_t i = 0; i < op.group; ++i) mean += in[begin + i];
        mean /= count;
      }
      for (int64_t i = 0; i < op.group; ++i) square += (in[begin + i] - mean) * (in[begin + i] - mean);
      const double scale = 1.0 / std::sqrt(square / count + op.eps);
      for (int64_t i = 0; i < op.group; ++i) {
        const auto at = static_cast<size_t>(op.gain_per_row ? begin + i : i);
        double y = (in[begin + i] - mean) * scale;
        if (!gain.empty()) y *= gain[at];
        if (!bias.empty()) y += bias[at];
        out[begin + i] = static_cast<float>(y);
      }
    }
  }
}

void run_op(const ReferenceStep& step, const LinearOp& op) {
  std::vector<double> sums;
  for (int64_t t = 0; t < step.rows(op.input.value); ++t) {
    const float* in = step.row(op.input, t);
    float* out = step.row(op.output, t);
    for (const LinearPart& part : op.parts) {
      sums.assign(static_cast<size_t>(part.rows), 0.0);
      multiply(step.weights.at(part.weight).parts, in, part.rows, sums.data());
      const auto bias = step.vector(part.bias);
      for (size_t n = 0; n < sums.size(); ++n)
        *out++ = static_cast<float>(bias.empty() ? sums[n] : sums[n] + bias[n]);
    }
  }
}

void run_op(const ReferenceStep& step, const RopeOp& op) {
  const RopeSpec& rope = step.plan.ropes[static_cast<size_t>(op.rope)];
  const int64_t pairs = rope.dim / 2;
  const int64_t tokens = step.tokens();
  const bool axes = static_cast<int64_t>(step.input.positions.size()) == 3 * tokens;
  for (size_t s = 0; s + 1 < step.input.sequence_offsets.size(); ++s) {
    const std::vector<float> frequency = rope.inverse_frequencies(step.input.rope_lengths[s]);
    for (int64_t t = step.input.sequence_offsets[s]; t < step.input.sequence_offsets[s + 1]; ++t) {
      for (int64_t pair = 0; pair < pairs; ++pair) {
        const int64_t axis = axes ? rope_axis(rope, pair) : 0;
        // The angle is a float32 product, as in the reference: at long positions its rounding is part of the
        // definition.
        const float angle = static_cast<float>(step.input.positions[static_cast<size_t>(axis * tokens + t)]) *
                            frequency[static_cast<size_t>(pair)];
        const double cosine = std::cos(static_cast<double>(angle)) * rope.amplitude;
        const double sine = std::sin(static_cast<double>(angle)) * rope.amplitude;
        for (int64_t head = 0; head < op.heads; ++head) {
          float* x = step.row(op.x, t) + head * op.head_dim + op.head_offset;
          float& a = rope.layout == RopeLayout::kHalfSplit ? x[pair] : x[2 * pair];
          float& b = rope.layout == RopeLayout::kHalfSplit ? x[pair + pairs] : x[2 * pair + 1];
          const double first = a;
          const double second = b;
          a = static_cast<float>(first * cosine - second * sine);
          b = static_cast<float>(second * cosine + first * sine);
        }
      }
    }
  }
}

void run_op(const ReferenceStep& step, const ActivateOp& op) {
  for (int64_t t = 0; t < step.rows(op.gate.value); ++t) {
    const float* gate = step.row(op.gate, t);
    const float* up = op.up.present() ? step.row(op.up, t) : nullptr;
    float* out = step.row(op.output, t);
    for (int64_t i = 0; i < op.gate.width; ++i) {
      const double y = activate(op.activation, gate[i]);
      out[i] = static_cast<float>(up != nullptr ? y * up[i] : y);
    }
  }
}

void run_op(const ReferenceStep& step, const CombineOp& op) {
  const double beta = factor(step, op.beta, op.beta_slot);
  for (int64_t t = 0; t < step.rows(op.output.value); ++t) {
    float* out = step.row(op.output, t);
    for (int64_t i = 0; i < op.output.width; ++i) {
      double sum = 0;
      for (const CombineTerm& term : op.terms)
        sum += factor(step, term.factor, term.factor_slot) * step.row(term.value, t)[i];
      const double residual = op.residual.present() ? step.row(op.residual, t)[i] : 0.0;
      out[i] = static_cast<float>((residual + op.alpha * sum) * beta);
    }
  }
}

void run_op(const ReferenceStep& step, const GatherRowsOp& op) {
  for (size_t r = 0; r < step.input.output_rows.size(); ++r)
    std::copy_n(step.row(op.input, step.input.output_rows[r]), op.input.width,
                step.row(op.output, static_cast<int64_t>(r)));
}

void run_op(const ReferenceStep& step, const ScaleLogitsOp& op) {
  for (int64_t r = 0; r < step.rows(op.x.value); ++r) {
    float* x = step.row(op.x, r);
    for (int64_t i = 0; i < op.x.width; ++i) {
      const double scaled = x[i] * op.scale;
      x[i] = static_cast<float>(op.softcap != 0.0 ? op.softcap * std::tanh(scaled / op.softcap) : scaled);
    }
  }
}

}  // namespace tessera
