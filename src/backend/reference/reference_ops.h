// The ops as functions over a step: what each computes, said once.
#pragma once

#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/reference/reference_state.h"

namespace tessera {

// What an op sees of the running step.
struct ReferenceStep {
  const Plan& plan;
  const BoundWeights& weights;
  const CompileOptions& options;
  const StepInput& input;
  ReferenceState* state;
  std::vector<std::vector<float>>&
      values;  // one matrix per value of the plan, no arena: what is stale would show

  [[nodiscard]] int64_t tokens() const { return input.sequence_offsets.back(); }
  [[nodiscard]] int64_t rows(ValueId value) const {
    return plan.values[static_cast<size_t>(value)].rows == RowSymbol::kTokens
               ? tokens()
               : static_cast<int64_t>(input.output_rows.size());
  }
  // Row t of a slice.
  [[nodiscard]] float* row(const Slice& slice, int64_t t) const {
    const int64_t width = plan.values[static_cast<size_t>(slice.value)].width;
    return values[static_cast<size_t>(slice.value)].data() + t * width + slice.offset;
  }
  // A bound vector, or an empty span.
  [[nodiscard]] std::span<const float> vector(WeightId id) const {
    return id < 0 ? std::span<const float>() : std::span<const float>(weights.at(id).values);
  }
};

void run_op(const ReferenceStep& step, const EmbedOp& op);
void run_op(const ReferenceStep& step, const PositionEmbedOp& op);
void run_op(const ReferenceStep& step, const ClampOp& op);
void run_op(const ReferenceStep& step, const SparsifyOp& op);
void run_op(const ReferenceStep& step, const SigmoidGateOp& op);
void run_op(const ReferenceStep& step, const RouteOp& op);
void run_op(const ReferenceStep& step, const ExpertsOp& op);
void run_op(const ReferenceStep& step, const MlaAttendOp& op);
void run_op(const ReferenceStep& step, const CausalConvOp& op);
void run_op(const ReferenceStep& step, const DeltaRuleOp& op);
void run_op(const ReferenceStep& step, const SelectiveScanOp& op);
void run_op(const ReferenceStep& step, const HeadScanOp& op);
void run_op(const ReferenceStep& step, const TokenShiftOp& op);
void run_op(const ReferenceStep& step, const WkvOp& op);
void run_op(const ReferenceStep& step, const ScaleColumnsOp& op);
void run_op(const ReferenceStep& step, const MixStreamsOp& op);
void run_op(const ReferenceStep& step, const MatchMagnitudeOp& op);
void run_op(const ReferenceStep& step, const NormOp& op);
void run_op(const ReferenceStep& step, const LinearOp& op);
void run_op(const ReferenceStep& step, const RopeOp& op);
void run_op(const ReferenceStep& step, const AttendOp& op);
void run_op(const ReferenceStep& step, const ActivateOp& op);
void run_op(const ReferenceStep& step, const CombineOp& op);
void run_op(const ReferenceStep& step, const GatherRowsOp& op);
void run_op(const ReferenceStep& step, const ScaleLogitsOp& op);

[[nodiscard]] double activate(Activation activation, double x);

// y[n] = x . W[n] for the first `rows` rows of a bound matrix, float64 sums.
void multiply(std::span<const Weight> matrix, const float* x, int64_t rows, double* y);
// The parts of one expert of a bound [experts, out, in] slot.
[[nodiscard]] std::span<const Weight> expert_parts(const BoundSlot& slot, int64_t expert);

}  // namespace tessera
