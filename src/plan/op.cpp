#include "plan/op.h"

namespace tessera {
namespace {

struct NameVisitor {
  const char* operator()(const EmbedOp&) const { return "Embed"; }
  const char* operator()(const PositionEmbedOp&) const { return "PositionEmbed"; }
  const char* operator()(const ClampOp&) const { return "Clamp"; }
  const char* operator()(const SparsifyOp&) const { return "Sparsify"; }
  const char* operator()(const SigmoidGateOp&) const { return "SigmoidGate"; }
  const char* operator()(const RouteOp&) const { return "Route"; }
  const char* operator()(const ExpertsOp&) const { return "Experts"; }
  const char* operator()(const MlaAttendOp&) const { return "MlaAttend"; }
  const char* operator()(const CausalConvOp&) const { return "CausalConv"; }
  const char* operator()(const DeltaRuleOp&) const { return "DeltaRule"; }
  const char* operator()(const SelectiveScanOp&) const { return "SelectiveScan"; }
  const char* operator()(const HeadScanOp&) const { return "HeadScan"; }
  const char* operator()(const TokenShiftOp&) const { return "TokenShift"; }
  const char* operator()(const WkvOp&) const { return "Wkv"; }
  const char* operator()(const ScaleColumnsOp&) const { return "ScaleColumns"; }
  const char* operator()(const MixStreamsOp&) const { return "MixStreams"; }
  const char* operator()(const MatchMagnitudeOp&) const { return "MatchMagnitude"; }
  const char* operator()(const NormOp&) const { return "Norm"; }
  const char* operator()(const LinearOp&) const { return "Linear"; }
  const char* operator()(const RopeOp&) const { return "Rope"; }
  const char* operator()(const AttendOp&) const { return "Attend"; }
  const char* operator()(const ActivateOp&) const { return "Activate"; }
  const char* operator()(const CombineOp&) const { return "Combine"; }
  const char* operator()(const GatherRowsOp&) const { return "GatherRows"; }
  const char* operator()(const ScaleLogitsOp&) const { return "ScaleLogits"; }
};

struct SlicesVisitor {
  OpSlices operator()(const EmbedOp& op) const { return {{}, {op.output}}; }
  OpSlices operator()(const PositionEmbedOp& op) const { return {{op.x}, {op.x}}; }
  OpSlices operator()(const ClampOp& op) const { return {{op.input}, {op.output}}; }
  OpSlices operator()(const SparsifyOp& op) const { return {{op.input}, {op.output}}; }
  OpSlices operator()(const SigmoidGateOp& op) const { return {{op.x, op.gate}, {op.output}}; }
  OpSlices operator()(const RouteOp& op) const { return {{op.logits}, {op.output}}; }
  OpSlices operator()(const ExpertsOp& op) const { return {{op.input, op.routes}, {op.output}}; }
  OpSlices operator()(const MlaAttendOp& op) const { return {{op.q, op.latent, op.k_rope}, {op.output}}; }
  OpSlices operator()(const CausalConvOp& op) const { return {{op.input}, {op.output}}; }
  OpSlices operator()(const DeltaRuleOp& op) const { return {{op.q, op.k, op.v, op.a, op.b}, {op.output}}; }
  OpSlices operator()(const SelectiveScanOp& op) const { return {{op.x, op.dt, op.b, op.c}, {op.output}}; }
  OpSlices operator()(const HeadScanOp& op) const { return {{op.x, op.dt, op.b, op.c}, {op.output}}; }
  OpSlices operator()(const TokenShiftOp& op) const { return {{op.x}, op.outputs}; }
  OpSlices operator()(const WkvOp& op) const { return {{op.k, op.v}, {op.output}}; }
  OpSlices operator()(const ScaleColumnsOp& op) const { return {{op.input}, {op.output}}; }
  OpSlices operator()(const MixStreamsOp& op) const {
    OpSlices slices{{op.input, op.coefficients}, {op.output}};
    if (op.actual.present()) slices.reads.push_back(op.actual);
    return slices;
  }
  OpSlices operator()(const MatchMagnitudeOp& op) const { return {{op.x}, {op.x}}; }
  OpSlices operator()(const NormOp& op) const { return {{op.input}, {op.output}}; }
  OpSlices operator()(const LinearOp& op) const { return {{op.input}, {op.output}}; }
  OpSlices operator()(const RopeOp& op) const { return {{op.x}, {op.x}}; }
  OpSlices operator()(const AttendOp& op) const {
    OpSlices slices{{op.q}, {op.output}};
    if (op.k.present()) slices.reads.insert(slices.reads.end(), {op.k, op.v});
    return slices;
  }
  OpSlices operator()(const ActivateOp& op) const {
    OpSlices slices{{op.gate}, {op.output}};
    if (op.up.present()) slices.reads.push_back(op.up);
    return slices;
  }
  OpSlices operator()(const CombineOp& op) const {
    OpSlices slices{{}, {op.output}};
    if (op.residual.present()) slices.reads.push_back(op.residual);
    for (const CombineTerm& term : op.terms) slices.reads.push_back(term.value);
    return slices;
  }
  OpSlices operator()(const GatherRowsOp& op) const { return {{op.input}, {op.output}}; }
  OpSlices operator()(const ScaleLogitsOp& op) const { return {{op.x}, {op.x}}; }
};

}  // namespace

const char* op_name(const Op& op) {
  return std::visit(NameVisitor{}, op);
}

OpSlices op_slices(const Op& op) {
  return std::visit(SlicesVisitor{}, op);
}

}  // namespace tessera
