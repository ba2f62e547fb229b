#include "backend/cpu/cpu_experts.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/checked_math.h"

namespace tessera::cpu {
namespace {

const float* vector_of(const BoundWeights& weights, WeightId id) {
  return id < 0 ? nullptr : weights.at(id).values.data();
}

// The largest of values[0..count) that is not taken yet, the lowest index on ties.
int64_t best_of(const double* values, const double* taken, int64_t count) {
  int64_t best = -1;
  for (int64_t i = 0; i < count; ++i)
    if (taken[i] == 0 && (best < 0 || values[i] > values[best])) best = i;
  return best;
}

void softmax(double* values, int64_t count) {
  const double top = *std::max_element(values, values + count);
  double total = 0;
  for (int64_t i = 0; i < count; ++i) total += values[i] = std::exp(values[i] - top);
  for (int64_t i = 0; i < count; ++i) values[i] /= total;
}

// The workings of one token.
struct Choice {
  double* scores;  // [experts]
  double* choice;  // [experts]
  double* taken;   // [experts]
  double* groups;  // [2 * groups]: score, taken
  double* chosen;  // [2 * top_k]: expert, weight
};
int64_t choice_scratch(const RouteOp& op) {
  return 3 * op.logits.width + 2 * op.groups + 2 * op.top_k;
}

// Experts outside the best groups can no longer be chosen.
void keep_best_groups(const RouteOp& op, const Choice& c) {
  const int64_t size = op.logits.width / op.groups;
  double* scores = c.groups;
  double* kept = c.groups + op.groups;
  for (int64_t g = 0; g < op.groups; ++g) {
    const double* members = c.choice + g * size;
    double* taken = c.taken + g * size;
    const int64_t first = best_of(members, taken, size);
    scores[g] = members[first];
    if (op.group_score == GroupScore::kTopTwoSum && size > 1) {
      taken[first] = 1;
      scores[g] += members[best_of(members, taken, size)];
      taken[first] = 0;
    }
  }
  std::fill_n(kept, op.groups, 0.0);
  for (int64_t i = 0; i < op.top_groups; ++i) kept[best_of(scores, kept, op.groups)] = 1;
  for (int64_t e = 0; e < op.logits.width; ++e)
    if (kept[e / size] == 0) c.choice[e] = -INFINITY;
}

// Sparsemixer (arXiv 2310.00811) at inference: each pick is weighed by a softmax over the logits that are not further from the
// best one than the threshold, relative to the larger magnitude; the picked expert is then taken out.
void sparsemixer(const RouteOp& op, const Choice& c, float* out) {
  for (int64_t pick = 0; pick < op.top_k; ++pick) {
    const int64_t best = best_of(c.scores, c.taken, op.logits.width);
    const double top = c.scores[best];
    double total = 0;
    for (int64_t e = 0; e < op.logits.width; ++e) {
      const double factor = std::max(std::abs(c.scores[e]), std::abs(top));
      if (c.taken[e] != 0 || (top - c.scores[e]) / factor > op.sparsemixer_threshold) continue;
      total += std::exp(c.scores[e] - top);
    }
    out[pick] = static_cast<float>(best);
    out[op.top_k + pick] = static_cast<float>(1.0 / total);
    c.taken[best] = 1;
  }
}

void route_token(const RouteOp& op, const float* bias, const float* expert_scale, const float* logits,
                 double* scratch, float* out) {
  const int64_t experts = op.logits.width;
  const Choice c{scratch, scratch + experts, scratch + 2 * experts, scratch + 3 * experts,
                 scratch + 3 * experts + 2 * op.groups};
  std::copy_n(logits, experts, c.scores);
  std::fill_n(c.taken, experts, 0.0);
  if (op.score == RouterScore::kSparsemixer) {
    sparsemixer(op, c, out);
    return;
  }
  if (op.score == RouterScore::kSoftmax) softmax(c.scores, experts);
  if (op.score == RouterScore::kSigmoid)
    for (int64_t e = 0; e < experts; ++e) c.scores[e] = 1.0 / (1.0 + std::exp(-c.scores[e]));
  for (int64_t e = 0; e < experts; ++e) c.choice[e] = c.scores[e] + (bias == nullptr ? 0.0 : bias[e]);
  if (op.groups > 1) keep_best_groups(op, c);
  double* weights = c.chosen + op.top_k;
  for (int64_t i = 0; i < op.top_k; ++i) {
    const int64_t best = best_of(c.choice, c.taken, experts);
    c.taken[best] = 1;
    c.chosen[i] = static_cast<double>(best);
    weights[i] = c.scores[best];
  }
  if (op.score == RouterScore::kTopKSoftmax) softmax(weights, op.top_k);
  double total = 0;
  for (int64_t i = 0; i < op.top_k; ++i) total += weights[i];
  for (int64_t i = 0; i < op.top_k; ++i) {
    double weight = weights[i];
    if (op.renormalise) weight /= total + op.renormalise_eps;
    weight *= op.scale;
    if (expert_scale != nullptr) weight *= expert_scale[static_cast<int64_t>(c.chosen[i])];
    out[i] = static_cast<float>(c.chosen[i]);
    out[op.top_k + i] = static_cast<float>(weight);
  }
}

// The parts of one expert of a bound [experts, out, in] slot.
std::span<const Weight> expert_parts(const BoundSlot& slot, int64_t expert, int64_t experts) {
  const size_t each = slot.parts.size() / static_cast<size_t>(experts);
  return std::span(slot.parts).subspan(static_cast<size_t>(expert) * each, each);
}

}  // namespace

CpuRouter::CpuRouter(const Plan& plan, int threads) {
  for (const Op& op : plan.ops)
    if (const auto* route = std::get_if<RouteOp>(&op))
      scratch_stride_ = std::max(scratch_stride_, choice_scratch(*route));
  scratch_.resize(static_cast<size_t>(scratch_stride_ * threads));
}

void CpuRouter::run(const CpuStep& step, const RouteOp& op, const BoundWeights& weights) {
  constexpr int64_t kTokens = 8;
  const float* bias = vector_of(weights, op.selection_bias);
  const float* expert_scale = vector_of(weights, op.expert_scale);
  const auto block = [&](int64_t i, int thread) {
    for (int64_t t = i * kTokens; t < std::min(step.tokens, (i + 1) * kTokens); ++t)
      route_token(op, bias, expert_scale, step.data(op.logits) + t * step.stride(op.logits),
                  scratch_.data() + thread * scratch_stride_,
                  step.data(op.output) + t * step.stride(op.output));
  };
  if (step.tokens <= kTokens)
    block(0, 0);
  else
    step.pool.run(ceil_divide(step.tokens, kTokens), [&block](int64_t i, int thread) { block(i, thread); });
}

CpuExperts::CpuExperts(const Plan& plan, const BoundWeights& weights, const CompileOptions& options,
                       const KernelTable& kernels)
    : ops_(plan.ops.size()) {
  constexpr int64_t kFewPairs = 256;  // so many are always computed together
  int64_t gathered = 0;
  int64_t middle = 0;
  int64_t results = 0;
  int64_t pairs = 0;
  int64_t experts = 0;
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    const auto* op = std::get_if<ExpertsOp>(&plan.ops[i]);
    if (op == nullptr) continue;
    Prepared& prepared = ops_[i];
    const int64_t all = options.max_tokens * op->top_k;
    prepared.batch_rows = std::max(options.max_tokens, std::min(all, kFewPairs));
    LinearNeeds needs;
    needs.rows = prepared.batch_rows;
    needs.columns = std::max(op->input.width, op->width);
    needs.groups = std::min(op->experts, prepared.batch_rows);
    needs.segment_rows = std::max(op->width, op->output.width);
    const auto bias_of = [&](WeightId id, int64_t expert, int64_t width) {
      const float* all_biases = vector_of(weights, id);
      return all_biases == nullptr ? nullptr : all_biases + expert * width;
    };
    for (int64_t e = 0; e < op->experts; ++e) {
      PreparedLinear up;
      int64_t column = 0;
      if (op->gate >= 0) {
        add_segments(up, expert_parts(weights.at(op->gate), e, op->experts), op->width, 0,
                     bias_of(op->gate_bias, e, op->width), kernels, options.activations);
        column = op->width;
      }
      add_segments(up, expert_parts(weights.at(op->up), e, op->experts), op->width, column,
                   bias_of(op->up_bias, e, op->width), kernels, options.activations);
      PreparedLinear down;
      add_segments(down, expert_parts(weights.at(op->down), e, op->experts), op->output.width, 0,
                   bias_of(op->down_bias, e, op->output.width), kernels, options.activations);
      needs.segments = std::max({needs.segments, static_cast<int64_t>(up.segments.size()),
                                 static_cast<int64_t>(down.segments.size())});
      needs.int8 = needs.int8 || up.int8 || down.int8;
      needs.bf16 = needs.bf16 || up.bf16 || down.bf16;
      prepared.up.push_back(std::move(up));
      prepared.down.push_back(std::move(down));
    }
    needs_.push_back(needs);
    gathered = std::max(gathered, prepared.batch_rows * op->input.width);
    middle = std::max(middle, prepared.batch_rows * op->width * (op->gate >= 0 ? 2 : 1));
    results = std::max(results, prepared.batch_rows * op->output.width);
    pairs = std::max(pairs, all);
    experts = std::max(experts, op->experts);
  }
  if (needs_.empty()) return;
  gathered_ = Buffer(static_cast<size_t>(gathered) * sizeof(float));
  middle_ = Buffer(static_cast<size_t>(middle) * sizeof(float));
  results_ = Buffer(static_cast<size_t>(results) * sizeof(float));
  pairs_.resize(static_cast<size_t>(pairs));
  ends_.resize(static_cast<size_t>(experts));
  up_groups_.reserve(static_cast<size_t>(experts));
  down_groups_.reserve(static_cast<size_t>(experts));
}

uint64_t CpuExperts::scratch_bytes() const {
  return gathered_.size() + middle_.size() + results_.size() + pairs_.size() * sizeof(Pair);
}

// By expert, then by token.
void CpuExperts::sort_pairs(const CpuStep& step, const ExpertsOp& op) {
  const float* routes = step.data(op.routes);
  const int64_t stride = step.stride(op.routes);
  std::fill_n(ends_.begin(), op.experts, 0);
  for (int64_t t = 0; t < step.tokens; ++t) {
    for (int64_t i = 0; i < op.top_k; ++i) {
      const auto expert = static_cast<int64_t>(routes[t * stride + i]);
      CHECK(expert >= 0 && expert < op.experts, "expert {} of {}", expert, op.experts);
      ++ends_[static_cast<size_t>(expert)];
    }
  }
  int64_t begin = 0;
  for (int64_t e = 0; e < op.experts; ++e) {
    const int64_t count = ends_[static_cast<size_t>(e)];
    ends_[static_cast<size_t>(e)] = begin;  // moves to the end as the pairs come
    begin += count;
  }
  for (int64_t t = 0; t < step.tokens; ++t) {
    const float* row = routes + t * stride;
    for (int64_t i = 0; i < op.top_k; ++i) {
      int64_t& end = ends_[static_cast<size_t>(row[i])];
      pairs_[static_cast<size_t>(end++)] = {static_cast<int32_t>(t), row[op.top_k + i]};
    }
  }
}

void CpuExperts::run(const CpuStep& step, const ExpertsOp& op, size_t index, CpuLinear& linear) {
  const Prepared& prepared = ops_[index];
  sort_pairs(step, op);
  float* out = step.data(op.output);
  const int64_t out_stride = step.stride(op.output);
  step.for_rows(step.tokens, op.output.width, [&](int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t) std::fill_n(out + t * out_stride, op.output.width, 0.0f);
  });

  up_groups_.clear();
  down_groups_.clear();
  int64_t first_pair = 0;  // of the batch
  int64_t rows = 0;        // in the batch
  const auto flush = [&] {
    if (rows > 0) run_batch(step, op, first_pair, rows, linear);
    first_pair += rows;
    rows = 0;
    up_groups_.clear();
    down_groups_.clear();
  };
  for (int64_t e = 0; e < op.experts; ++e) {
    const auto expert = static_cast<size_t>(e);
    int64_t left = ends_[expert] - (e == 0 ? 0 : ends_[expert - 1]);
    if (left > prepared.batch_rows - rows) flush();
    while (left > 0) {
      const int64_t count = std::min(left, prepared.batch_rows - rows);
      up_groups_.push_back({&prepared.up[expert], rows, count});
      down_groups_.push_back({&prepared.down[expert], rows, count});
      rows += count;
      left -= count;
      if (left > 0) flush();
    }
  }
  flush();
}

void CpuExperts::run_batch(const CpuStep& step, const ExpertsOp& op, int64_t first_pair, int64_t pairs,
                           CpuLinear& linear) {
  const Pair* batch = pairs_.data() + first_pair;
  float* gathered = gathered_.as<float>().data();
  float* middle = middle_.as<float>().data();
  float* results = results_.as<float>().data();
  const int64_t inputs = op.input.width;
  const int64_t outputs = op.output.width;
  const int64_t middle_stride = op.gate >= 0 ? 2 * op.width : op.width;
  step.for_rows(pairs, inputs, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row)
      std::memcpy(gathered + row * inputs, step.data(op.input) + batch[row].token * step.stride(op.input),
                  static_cast<size_t>(inputs) * sizeof(float));
  });
  linear.multiply(step, {gathered, inputs, pairs, inputs}, up_groups_, {middle, middle_stride});
  activate(step, op, pairs);
  linear.multiply(step, {middle, middle_stride, pairs, op.width}, down_groups_, {results, outputs});

  // Ranges of columns, so that a token's sum is made by one thread.
  constexpr int64_t kColumns = 64;
  float* out = step.data(op.output);
  const int64_t out_stride = step.stride(op.output);
  const auto add = [&](int64_t first, int64_t last) {
    const int64_t begin = first * kColumns;
    const int64_t count = std::min(outputs, last * kColumns) - begin;
    for (int64_t row = 0; row < pairs; ++row)
      step.kernels.add_scaled(out + batch[row].token * out_stride + begin, results + row * outputs + begin,
                              batch[row].weight, count);
  };
  step.for_rows(ceil_divide(outputs, kColumns), pairs * kColumns, add);
}

// The activated values lie where gate (or, without one, up) was.
void CpuExperts::activate(const CpuStep& step, const ExpertsOp& op, int64_t rows) {
  float* middle = middle_.as<float>().data();
  const bool gated = op.gate >= 0;
  ActivateArgs args;
  args.gate = middle;
  args.gate_stride = gated ? 2 * op.width : op.width;
  if (gated) args.up = middle + op.width;
  args.up_stride = args.gate_stride;
  args.output = middle;
  args.output_stride = args.gate_stride;
  args.width = op.width;
  args.activation = op.activation;
  const auto limit = static_cast<float>(op.limit);
  const auto offset = gated ? static_cast<float>(op.up_offset) : 0.0f;
  step.for_rows(rows, 4 * op.width, [&](int64_t first, int64_t last) {
    if (limit != 0.0f || offset != 0.0f) {
      for (int64_t row = first; row < last; ++row) {
        float* values = middle + row * args.gate_stride;
        step.kernels.limit_gated(gated ? values : nullptr, gated ? values + op.width : values, limit, offset,
                                 op.width);
      }
    }
    step.kernels.activate(args, first, last);
  });
}

}  // namespace tessera::cpu
