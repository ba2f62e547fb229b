#include "plan/op.h"

namespace tessera {
namespace {

struct NameVisitor {
  const char* operator()(const EmbedOp&) const { return "Embed"; }
  const char* operator()(const PositionEmbedOp&) const { return "PositionEmbed"; }
  const char* operator()(const ClampOp&) const { return "Clamp"; }
  const char* operator()(const SparsifyOp&) const { return "Sparsify"; }
  const char* operator()(const SigmoidGateOp&) const { return "SigmoidGate"; }
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
