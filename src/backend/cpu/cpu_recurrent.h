// Ops with a state of fixed size: convolution, delta rule, state spaces, token shift and WKV. Every (sequence, range of
// channels or heads) is a task that takes the state from the read slot to the write slot. The delta rule and the state space
// with one decay per head have two forms: token by token, and by blocks where a sequence has enough tokens in the step.
#pragma once

#include <vector>

#include "backend/cpu/cpu_step.h"
#include "backend/cpu/sequence_args.h"

namespace tessera::cpu {

class CpuRecurrent {
 public:
  CpuRecurrent(const Plan& plan, const BoundWeights& weights, const CompileOptions& options, int threads);

  void run(const CpuStep& step, const CausalConvOp& op, size_t index, const BoundWeights& weights) const;
  void run(const CpuStep& step, const TokenShiftOp& op, const BoundWeights& weights) const;
  void run(const CpuStep& step, const WkvOp& op, const BoundWeights& weights) const;
  void run(const CpuStep& step, const SelectiveScanOp& op, const BoundWeights& weights) const;
  void run(const CpuStep& step, const HeadScanOp& op, const BoundWeights& weights);
  void run(const CpuStep& step, const DeltaRuleOp& op, const BoundWeights& weights);
  [[nodiscard]] uint64_t scratch_bytes() const;

 private:
  // A sequence's own tokens choose the form, never what else is in the step.
  [[nodiscard]] bool blocked(int64_t tokens, int64_t from) const;
  // Tokens of one sequence that are computed together.
  struct Block {
    int64_t first_token;
    int64_t tokens;
  };
  template <class Body>
  void for_blocks(const CpuStep& step, int64_t from, int64_t parts, int64_t cost, const Body& body);

  SequenceForm form_;
  std::vector<std::vector<float>> conv_weights_;  // by op of the plan: [kernel][channels]
  std::vector<float> keys_;                       // of a delta rule: DeltaInputArgs says how they lie
  std::vector<float> gates_;
  std::vector<float> scores_;  // of blocks: DeltaBlockArgs and ScanBlockArgs say how they lie
  std::vector<Block> blocks_;
  int64_t scratch_stride_ = 0;  // floats per thread
  Buffer scratch_;
};

}  // namespace tessera::cpu
