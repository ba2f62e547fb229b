// Ops with a state of fixed size: convolution, delta rule, state spaces, token shift and WKV. Every (sequence, range of
// channels or heads) is a task that takes the state from the read slot to the write slot.
#pragma once

#include <vector>

#include "backend/cpu/cpu_step.h"

namespace tessera::cpu {

class CpuRecurrent {
 public:
  CpuRecurrent(const Plan& plan, const BoundWeights& weights, const CompileOptions& options);

  void run(const CpuStep& step, const CausalConvOp& op, size_t index, const BoundWeights& weights) const;
  void run(const CpuStep& step, const TokenShiftOp& op, const BoundWeights& weights) const;
  void run(const CpuStep& step, const WkvOp& op, const BoundWeights& weights) const;
  void run(const CpuStep& step, const SelectiveScanOp& op, const BoundWeights& weights) const;
  void run(const CpuStep& step, const HeadScanOp& op, const BoundWeights& weights) const;
  void run(const CpuStep& step, const DeltaRuleOp& op, const BoundWeights& weights);
  [[nodiscard]] uint64_t scratch_bytes() const;

 private:
  std::vector<std::vector<float>> conv_weights_;  // by op of the plan: [kernel][channels]
  std::vector<float> keys_;                       // of a delta rule: DeltaInputArgs says how they lie
  std::vector<float> gates_;
};

}  // namespace tessera::cpu
