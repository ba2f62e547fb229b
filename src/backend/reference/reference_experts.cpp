// Routing and experts.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "backend/reference/reference_ops.h"

namespace tessera {
namespace {

// Indices of the `count` largest values, largest first, the lower index on ties.
std::vector<size_t> largest(const std::vector<double>& values, size_t count) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] > values[b]; });
  order.resize(count);
  return order;
}

std::vector<double> softmax(const std::vector<double>& values) {
  const double top = *std::max_element(values.begin(), values.end());
  std::vector<double> result;
  double total = 0;
  for (const double value : values) {
    result.push_back(std::exp(value - top));
    total += result.back();
  }
  for (double& value : result) value /= total;
  return result;
}

// Experts outside the best groups can no longer be chosen.
void keep_best_groups(const RouteOp& op, std::vector<double>& choice) {
  const auto size = choice.size() / static_cast<size_t>(op.groups);
  std::vector<double> scores;
  for (size_t g = 0; g < static_cast<size_t>(op.groups); ++g) {
    const std::vector<double> members(choice.begin() + static_cast<long>(g * size),
                                      choice.begin() + static_cast<long>((g + 1) * size));
    const size_t counted = op.group_score == GroupScore::kMax ? 1 : std::min<size_t>(2, size);
    double score = 0;
    for (const size_t i : largest(members, counted)) score += members[i];
    scores.push_back(score);
  }
  const std::vector<size_t> best = largest(scores, static_cast<size_t>(op.top_groups));
  for (size_t e = 0; e < choice.size(); ++e)
    if (std::find(best.begin(), best.end(), e / size) == best.end()) choice[e] = -INFINITY;
}

// Sparsemixer (arXiv 2310.00811) at inference: each pick is weighed by a softmax over the logits that are not further from the
// best one than the threshold, relative to the larger magnitude; the picked expert is then taken out.
void sparsemixer(const RouteOp& op, std::vector<double> logits, float* out) {
  const std::vector<double> all = logits;
  for (int64_t pick = 0; pick < op.top_k; ++pick) {
    const size_t best = largest(logits, 1).front();
    const double top = logits[best];
    double total = 0;
    for (size_t e = 0; e < all.size(); ++e) {
      const double factor = std::max(std::abs(all[e]), std::abs(top));
      if (std::isinf(logits[e]) || (top - all[e]) / factor > op.sparsemixer_threshold) continue;
      total += std::exp(all[e] - top);
    }
    out[pick] = static_cast<float>(best);
    out[op.top_k + pick] = static_cast<float>(1.0 / total);
    logits[best] = -INFINITY;
  }
}

}  // namespace

void run_op(const ReferenceStep& step, const RouteOp& op) {
  const auto bias = step.vector(op.selection_bias);
  const auto expert_scale = step.vector(op.expert_scale);
  const auto experts = static_cast<size_t>(op.logits.width);
  for (int64_t t = 0; t < step.tokens(); ++t) {
    const float* in = step.row(op.logits, t);
    float* out = step.row(op.output, t);
    const std::vector<double> logits(in, in + experts);
    if (op.score == RouterScore::kSparsemixer) {
      sparsemixer(op, logits, out);
      continue;
    }
    std::vector<double> scores = logits;
    if (op.score == RouterScore::kSoftmax) scores = softmax(logits);
    if (op.score == RouterScore::kSigmoid)
      for (double& score : scores) score = activate(Activation::kSigmoid, score);
    std::vector<double> choice = scores;
    for (size_t e = 0; e < bias.size(); ++e) choice[e] += bias[e];
    if (op.groups > 1) keep_best_groups(op, choice);
    const std::vector<size_t> chosen = largest(choice, static_cast<size_t>(op.top_k));
    std::vector<double> weights;
    for (const size_t e : chosen) weights.push_back(scores[e]);
    if (op.score == RouterScore::kTopKSoftmax) weights = softmax(weights);
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (size_t i = 0; i < chosen.size(); ++i) {
      double weight = weights[i];
      if (op.renormalise) weight /= total + op.renormalise_eps;
      weight *= op.scale;
      if (!expert_scale.empty()) weight *= expert_scale[chosen[i]];
      out[i] = static_cast<float>(chosen[i]);
      out[static_cast<size_t>(op.top_k) + i] = static_cast<float>(weight);
    }
  }
}

void run_op(const ReferenceStep& step, const ExpertsOp& op) {
  const auto vector_of = [&](WeightId id, int64_t expert, int64_t width) {
    const auto all = step.vector(id);
    return all.empty() ? all : all.subspan(static_cast<size_t>(expert * width), static_cast<size_t>(width));
  };
  const auto width = static_cast<size_t>(op.width);
  std::vector<double> gate(width);
  std::vector<double> up(width);
  std::vector<float> middle(width);
  std::vector<double> result(static_cast<size_t>(op.output.width));
  for (int64_t t = 0; t < step.tokens(); ++t) {
    const float* x = step.row(op.input, t);
    const float* routes = step.row(op.routes, t);
    std::vector<double> sum(result.size(), 0.0);
    for (int64_t i = 0; i < op.top_k; ++i) {
      const auto expert = static_cast<int64_t>(routes[i]);
      const double weight = routes[op.top_k + i];
      multiply(expert_parts(step.weights.at(op.up), expert), x, op.width, up.data());
      if (op.gate >= 0) multiply(expert_parts(step.weights.at(op.gate), expert), x, op.width, gate.data());
      const auto gate_bias = vector_of(op.gate_bias, expert, op.width);
      const auto up_bias = vector_of(op.up_bias, expert, op.width);
      const auto down_bias = vector_of(op.down_bias, expert, op.output.width);
      for (size_t n = 0; n < width; ++n) {
        double g = gate[n] + (gate_bias.empty() ? 0.0 : gate_bias[n]);
        double u = up[n] + (up_bias.empty() ? 0.0 : up_bias[n]);
        if (op.limit != 0) {
          g = std::min(g, op.limit);
          u = std::clamp(u, -op.limit, op.limit);
        }
        middle[n] = static_cast<float>(op.gate >= 0 ? activate(op.activation, g) * (u + op.up_offset)
                                                    : activate(op.activation, u));
      }
      multiply(expert_parts(step.weights.at(op.down), expert), middle.data(), op.output.width, result.data());
      for (size_t n = 0; n < result.size(); ++n)
        sum[n] += weight * (result[n] + (down_bias.empty() ? 0.0 : down_bias[n]));
    }
    float* out = step.row(op.output, t);
    for (size_t n = 0; n < sum.size(); ++n) out[n] = static_cast<float>(sum[n]);
  }
}

}  // namespace tessera
