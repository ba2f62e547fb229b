// Attention over paged state: store the step's keys and values, then score, soften, mix, position by
// position.
#include <algorithm>
#include <cmath>

#include "backend/reference/reference_ops.h"
#include "base/half.h"

namespace tessera {
namespace {

float stored(float value, StateType type) {
  return type == StateType::kF16 ? to_float(to_half(value)) : value;
}

}  // namespace

void run_op(const ReferenceStep& step, const AttendOp& op) {
  const int64_t page_positions = step.options.page_positions;
  const PageTable& table = step.input.page_tables[static_cast<size_t>(op.group)];
  const int64_t per_kv_head = op.heads / op.kv_heads;
  std::vector<double> scores;
  std::vector<double> mixed(static_cast<size_t>(op.value_dim));
  for (size_t s = 0; s + 1 < step.input.sequence_offsets.size(); ++s) {
    const int64_t first_token = step.input.sequence_offsets[s];
    const int64_t count = step.input.sequence_offsets[s + 1] - first_token;
    const int64_t past = step.input.past[s];
    const auto cell = [&](int64_t position, int64_t head) {
      const int64_t page = table.pages[static_cast<size_t>(table.offsets[s] + position / page_positions)];
      return step.state->head(op.group, op.layer, page, position % page_positions, head);
    };
    for (int64_t i = 0; i < count && op.k.present(); ++i) {
      for (int64_t head = 0; head < op.kv_heads; ++head) {
        float* target = cell(past + i, head);
        const float* k = step.row(op.k, first_token + i) + head * op.head_dim;
        const float* v = step.row(op.v, first_token + i) + head * op.value_dim;
        for (int64_t d = 0; d < op.head_dim; ++d) target[d] = stored(k[d], step.options.state);
        for (int64_t d = 0; d < op.value_dim; ++d) target[op.head_dim + d] = stored(v[d], step.options.state);
      }
    }
    for (int64_t i = 0; i < count; ++i) {
      const int64_t position = past + i;
      const int64_t last = op.causal ? position : past + count - 1;
      const int64_t first = op.window > 0 ? std::max<int64_t>(0, position - op.window + 1) : 0;
      double query_scale = op.scale;
      if (op.query_scale_beta != 0.0)
        query_scale *= 1.0 + op.query_scale_beta *
                                 std::log(1.0 + static_cast<double>(position / op.query_scale_context));
      for (int64_t head = 0; head < op.heads; ++head) {
        const float* q = step.row(op.q, first_token + i) + head * op.head_dim;
        scores.clear();
        double largest = -INFINITY;
        for (int64_t j = first; j <= last; ++j) {
          const float* k = cell(j, head / per_kv_head);
          double score = 0;
          for (int64_t d = 0; d < op.head_dim; ++d) score += static_cast<double>(q[d]) * k[d];
          score *= query_scale;
          if (!op.alibi_slopes.empty())
            score += op.alibi_slopes[static_cast<size_t>(head)] * static_cast<double>(j - position);
          if (op.softcap != 0.0) score = op.softcap * std::tanh(score / op.softcap);
          largest = std::max(largest, score);
          scores.push_back(score);
        }
        double total = 0;
        if (const auto sinks = step.vector(op.sinks); !sinks.empty()) {
          largest = std::max(largest, static_cast<double>(sinks[static_cast<size_t>(head)]));
          total = std::exp(sinks[static_cast<size_t>(head)] - largest);
        }
        std::fill(mixed.begin(), mixed.end(), 0.0);
        for (int64_t j = first; j <= last; ++j) {
          const double weight = std::exp(scores[static_cast<size_t>(j - first)] - largest);
          total += weight;
          const float* v = cell(j, head / per_kv_head) + op.head_dim;
          for (int64_t d = 0; d < op.value_dim; ++d) mixed[static_cast<size_t>(d)] += weight * v[d];
        }
        float* out = step.row(op.output, first_token + i) + head * op.value_dim;
        for (int64_t d = 0; d < op.value_dim; ++d)
          out[d] = static_cast<float>(mixed[static_cast<size_t>(d)] / total);
      }
    }
  }
}

void run_op(const ReferenceStep& step, const MlaAttendOp& op) {
  const int64_t page_positions = step.options.page_positions;
  const PageTable& table = step.input.page_tables[static_cast<size_t>(op.group)];
  const BoundSlot& kv_b = step.weights.at(op.kv_b);
  const int64_t lora = op.latent.width;
  const int64_t head_dim = op.nope_dim + op.rope_dim;
  std::vector<double> expanded(static_cast<size_t>(op.heads * (op.nope_dim + op.value_dim)));
  std::vector<double> mixed(static_cast<size_t>(op.value_dim));
  for (size_t s = 0; s + 1 < step.input.sequence_offsets.size(); ++s) {
    const int64_t first_token = step.input.sequence_offsets[s];
    const int64_t count = step.input.sequence_offsets[s + 1] - first_token;
    const int64_t past = step.input.past[s];
    const auto cell = [&](int64_t position) {
      const int64_t page = table.pages[static_cast<size_t>(table.offsets[s] + position / page_positions)];
      return step.state->head(op.group, op.layer, page, position % page_positions, 0);
    };
    for (int64_t i = 0; i < count; ++i) {
      float* target = cell(past + i);
      for (int64_t d = 0; d < lora; ++d)
        target[d] = stored(step.row(op.latent, first_token + i)[d], step.options.state);
      for (int64_t d = 0; d < op.rope_dim; ++d)
        target[lora + d] = stored(step.row(op.k_rope, first_token + i)[d], step.options.state);
    }
    // Keys and values of every position and head, as the definition writes them.
    std::vector<std::vector<double>> keys_values;
    for (int64_t j = 0; j < past + count; ++j) {
      multiply(kv_b.parts, cell(j), static_cast<int64_t>(expanded.size()), expanded.data());
      keys_values.push_back(expanded);
    }
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t head = 0; head < op.heads; ++head) {
        const float* q = step.row(op.q, first_token + i) + head * head_dim;
        const auto of_head = static_cast<size_t>(head * (op.nope_dim + op.value_dim));
        std::vector<double> scores;
        double largest = -INFINITY;
        for (int64_t j = 0; j <= past + i; ++j) {
          double score = 0;
          for (int64_t d = 0; d < op.nope_dim; ++d)
            score += q[d] * keys_values[static_cast<size_t>(j)][of_head + static_cast<size_t>(d)];
          for (int64_t d = 0; d < op.rope_dim; ++d)
            score += static_cast<double>(q[op.nope_dim + d]) * cell(j)[lora + d];
          scores.push_back(score * op.scale);
          largest = std::max(largest, scores.back());
        }
        double total = 0;
        std::fill(mixed.begin(), mixed.end(), 0.0);
        for (int64_t j = 0; j <= past + i; ++j) {
          const double weight = std::exp(scores[static_cast<size_t>(j)] - largest);
          total += weight;
          for (int64_t d = 0; d < op.value_dim; ++d)
            mixed[static_cast<size_t>(d)] +=
                weight * keys_values[static_cast<size_t>(j)][of_head + static_cast<size_t>(op.nope_dim + d)];
        }
        float* out = step.row(op.output, first_token + i) + head * op.value_dim;
        for (int64_t d = 0; d < op.value_dim; ++d)
          out[d] = static_cast<float>(mixed[static_cast<size_t>(d)] / total);
      }
    }
  }
}

}  // namespace tessera
