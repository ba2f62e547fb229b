#include "backend/cpu/cpu_backend.h"

#include <fmt/format.h>

#include "backend/cpu/cpu_executable.h"
#include "backend/cpu/isa.h"
#include "formats/format_info.h"

namespace tessera {
namespace {

using cpu::KernelTable;

Status check_matrix(const BoundWeights& weights, WeightId id, int64_t columns) {
  const BoundSlot& slot = weights.at(id);
  for (const Weight& part : slot.parts) {
    if (part.columns != columns)
      return fail(ErrorCode::kInvalidArgument, "{}: expected {} columns, found {}", slot.slot.name, columns,
                  part.columns);
    if (columns % format_block(part.format) != 0)
      return fail(ErrorCode::kUnsupported, "{}: rows of {} values are no multiple of a block of {}",
                  slot.slot.name, columns, format_name(part.format));
  }
  return {};
}

Status check_op(const BoundWeights& weights, const EmbedOp& op) {
  return check_matrix(weights, op.table, op.output.width);
}
Status check_op(const BoundWeights& weights, const LinearOp& op) {
  for (const LinearPart& part : op.parts)
    TESSERA_TRY_STATUS(check_matrix(weights, part.weight, op.input.width));
  return {};
}
Status check_op(const BoundWeights& weights, const PositionEmbedOp& op) {
  return check_matrix(weights, op.table, op.x.width);
}
Status check_op(const BoundWeights&, const ClampOp&) {
  return {};
}
Status check_op(const BoundWeights&, const SparsifyOp&) {
  return {};
}
Status check_op(const BoundWeights&, const SigmoidGateOp&) {
  return {};
}
Status check_op(const BoundWeights&, const NormOp&) {
  return {};
}
Status check_op(const BoundWeights&, const RopeOp&) {
  return {};
}
Status check_op(const BoundWeights&, const AttendOp&) {
  return {};
}
Status check_op(const BoundWeights&, const ActivateOp&) {
  return {};
}
Status check_op(const BoundWeights&, const CombineOp&) {
  return {};
}
Status check_op(const BoundWeights&, const GatherRowsOp&) {
  return {};
}
Status check_op(const BoundWeights&, const ScaleLogitsOp&) {
  return {};
}
Status check_op(const BoundWeights&, const RouteOp&) {
  return {};
}
Status check_op(const BoundWeights&, const CausalConvOp&) {
  return {};
}
Status check_op(const BoundWeights&, const DeltaRuleOp&) {
  return {};
}
Status check_op(const BoundWeights&, const SelectiveScanOp&) {
  return {};
}
Status check_op(const BoundWeights&, const HeadScanOp&) {
  return {};
}
Status check_op(const BoundWeights&, const TokenShiftOp&) {
  return {};
}
Status check_op(const BoundWeights&, const WkvOp&) {
  return {};
}
Status check_op(const BoundWeights&, const MixStreamsOp&) {
  return {};
}
Status check_op(const BoundWeights&, const MatchMagnitudeOp&) {
  return {};
}
Status check_op(const BoundWeights&, const ScaleColumnsOp&) {
  return {};
}
Status check_op(const BoundWeights& weights, const ExpertsOp& op) {
  if (op.gate >= 0) TESSERA_TRY_STATUS(check_matrix(weights, op.gate, op.input.width));
  TESSERA_TRY_STATUS(check_matrix(weights, op.up, op.input.width));
  return check_matrix(weights, op.down, op.width);
}
Status check_op(const BoundWeights& weights, const MlaAttendOp& op) {
  return check_matrix(weights, op.kv_b, op.latent.width);
}
// Ops that are not listed above. CpuExecutable has the same fallback.
template <class T>
Status check_op(const BoundWeights&, const T& op) {
  return fail(ErrorCode::kUnsupported, "{} is not computed by the cpu backend", op_name(Op(op)));
}

class CpuBackend : public Backend {
 public:
  explicit CpuBackend(const KernelTable& kernels) : kernels_(kernels) {}

  std::string_view name() const override { return "cpu"; }
  std::string description() const override {
    const int threads = available_processors();
    return fmt::format("cpu ({}, {} thread{})", kernels_.description, threads, threads == 1 ? "" : "s");
  }
  Status supports(const Plan& plan, const BoundWeights& weights) const override {
    for (const Op& op : plan.ops)
      TESSERA_TRY_STATUS(std::visit([&](const auto& o) -> Status { return check_op(weights, o); }, op));
    return {};
  }
  MemoryNeeds memory_needs(const Plan& plan, const BoundWeights& weights,
                           const CompileOptions& options) const override {
    return cpu::memory_needs(plan, weights, options, kernels_);
  }
  Result<std::unique_ptr<Executable>> compile(const Plan& plan, const BoundWeights& weights,
                                              const CompileOptions& options) override {
    TESSERA_TRY_STATUS(supports(plan, weights));
    return cpu::CpuExecutable::create(plan, weights, options, kernels_);
  }

 private:
  const KernelTable& kernels_;
};

}  // namespace

Result<std::unique_ptr<Backend>> make_cpu_backend() {
  TESSERA_TRY(const KernelTable* kernels, cpu::choose_kernels());
  return make_cpu_backend(*kernels);
}

std::unique_ptr<Backend> make_cpu_backend(const KernelTable& kernels) {
  return std::make_unique<CpuBackend>(kernels);
}

}  // namespace tessera
