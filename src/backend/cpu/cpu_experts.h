// Routing and experts. A step's (token, expert) pairs are sorted by expert, the input rows are gathered in that order, and all
// experts' products are one call of CpuLinear, so that the weights of each expert are read once a step. Long steps are worked
// off in batches of whole experts, which bounds the scratch. What an expert adds to a token is added in the order of the
// experts' numbers: a token's result does not depend on the tokens beside it.
#pragma once

#include <vector>

#include "backend/cpu/cpu_linear.h"

namespace tessera::cpu {

// Scores, choice and weights in float64, like the reference.
class CpuRouter {
 public:
  CpuRouter(const Plan& plan, int threads);
  void run(const CpuStep& step, const RouteOp& op, const BoundWeights& weights);

 private:
  int64_t scratch_stride_ = 0;  // float64 per thread
  std::vector<double> scratch_;
};

class CpuExperts {
 public:
  CpuExperts(const Plan& plan, const BoundWeights& weights, const CompileOptions& options,
             const KernelTable& kernels);

  // What run() asks of CpuLinear.
  [[nodiscard]] const std::vector<LinearNeeds>& needs() const { return needs_; }
  void run(const CpuStep& step, const ExpertsOp& op, size_t index, CpuLinear& linear);
  [[nodiscard]] uint64_t scratch_bytes() const;

 private:
  struct Prepared {
    std::vector<PreparedLinear> up;    // by expert: gate, then up
    std::vector<PreparedLinear> down;  // by expert
    int64_t batch_rows = 0;            // pairs that are computed together
  };
  struct Pair {
    int32_t token;
    float weight;
  };

  void sort_pairs(const CpuStep& step, const ExpertsOp& op);
  void run_batch(const CpuStep& step, const ExpertsOp& op, int64_t first_pair, int64_t pairs,
                 CpuLinear& linear);
  void activate(const CpuStep& step, const ExpertsOp& op, int64_t rows);

  std::vector<Prepared> ops_;  // by op of the plan; empty for other ops
  std::vector<LinearNeeds> needs_;
  std::vector<int64_t> ends_;  // by expert: where its pairs end
  std::vector<Pair> pairs_;
  std::vector<LinearGroup> up_groups_;
  std::vector<LinearGroup> down_groups_;
  Buffer gathered_;  // [batch_rows, input]
  Buffer middle_;    // [batch_rows, gate and up]
  Buffer results_;   // [batch_rows, output]
};

}  // namespace tessera::cpu
