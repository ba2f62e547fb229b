#include "backend/cpu/cpu_executable.h"

#include <algorithm>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/cpu_streams.h"
#include "base/check.h"
#include "base/checked_math.h"

namespace tessera::cpu {
namespace {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
// clang 14 does not deduce the arguments of an aggregate.
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

Status check_options(const CompileOptions& options) {
  const auto positive = [](int64_t value, const char* what) -> Status {
    if (value >= 1) return {};
    return fail(ErrorCode::kInvalidArgument, "{}: expected at least 1, found {}", what, value);
  };
  TESSERA_TRY_STATUS(positive(options.page_positions, "positions per page"));
  TESSERA_TRY_STATUS(positive(options.max_tokens, "tokens per step"));
  TESSERA_TRY_STATUS(positive(options.max_outputs, "output rows per step"));
  TESSERA_TRY_STATUS(positive(options.max_sequences, "sequences per step"));
  if (options.threads < 0) return fail(ErrorCode::kInvalidArgument, "threads: found {}", options.threads);
  return {};
}

// Learned positions are rows of a table.
Status check_positions(const Plan& plan, const BoundWeights& weights, const StepInput& input) {
  for (const Op& op : plan.ops) {
    const auto* embed = std::get_if<PositionEmbedOp>(&op);
    if (embed == nullptr) continue;
    const int64_t rows = weights.at(embed->table).rows();
    for (int64_t t = 0; t < input.sequence_offsets.back(); ++t) {
      const int64_t row = input.positions[static_cast<size_t>(t)] + embed->offset;
      if (row < 0 || row >= rows)
        return fail(ErrorCode::kInvalidArgument, "step: position {} has no row in the table of {} positions",
                    input.positions[static_cast<size_t>(t)], rows);
    }
  }
  return {};
}

Result<ZeroedMemory> allocate_arena(int64_t floats_per_row, int64_t rows, const char* what) {
  const auto floats = checked_multiply(static_cast<uint64_t>(floats_per_row), static_cast<uint64_t>(rows));
  const auto bytes = floats ? checked_multiply(*floats, sizeof(float)) : floats;
  if (!bytes) return fail(ErrorCode::kResourceLimit, "{}: too large", what);
  return ZeroedMemory::allocate(*bytes, what);
}

// The delta rule's output is normed whatever its length, so that near S^T q = 0 it turns round for the smallest error of what goes
// in: measured on the reference checkpoints 8-bit activations move the logits of such models by up to 0.1 (normalised squared
// error), against below 2e-3 elsewhere. They are computed with float32 activations.
bool tolerates_rounding(const Plan& plan) {
  for (const Op& op : plan.ops)
    if (std::holds_alternative<DeltaRuleOp>(op)) return false;
  return true;
}

}  // namespace

Result<std::unique_ptr<Executable>> CpuExecutable::create(const Plan& plan, const BoundWeights& weights,
                                                          const CompileOptions& options,
                                                          const KernelTable& kernels) {
  TESSERA_TRY_STATUS(check_options(options));
  TESSERA_TRY(ZeroedMemory tokens, allocate_arena(plan.token_arena, options.max_tokens, "activations"));
  TESSERA_TRY(ZeroedMemory outputs,
              allocate_arena(plan.output_arena, options.max_outputs, "activations of outputs"));
  CompileOptions resolved = options;
  if (resolved.threads == 0) resolved.threads = available_processors();
  if (!tolerates_rounding(plan)) resolved.activations = ActivationType::kExact;
  auto executable = std::unique_ptr<CpuExecutable>(new CpuExecutable(plan, weights, resolved, kernels));
  executable->token_arena_ = std::move(tokens);
  executable->output_arena_ = std::move(outputs);
  return executable;
}

CpuExecutable::CpuExecutable(const Plan& plan, const BoundWeights& weights, const CompileOptions& options,
                             const KernelTable& kernels)
    : plan_(plan),
      weights_(weights),
      options_(options),
      kernels_(kernels),
      needs_(memory_needs(plan, weights, options, kernels)),
      pool_(options.threads),
      experts_(plan, weights, options, kernels),
      linear_(plan, weights, options, kernels, options.threads, experts_.needs()),
      attend_(plan, options, options.threads),
      mla_(plan, weights, options, kernels, pool_),
      recurrent_(plan, weights, options, options.threads),
      router_(plan, options.threads),
      ropes_(plan, options) {
  size_t terms = 0;
  for (const Op& op : plan.ops)
    if (const auto* combine = std::get_if<CombineOp>(&op)) terms = std::max(terms, combine->terms.size());
  combine_terms_.resize(terms);
  position_row_.resize(static_cast<size_t>(plan.hidden_size));
  for (const NamedValue& hidden : plan.hidden)
    output_.hidden.emplace_back(hidden.name, std::span<const float>());
}

Result<std::unique_ptr<StateStorage>> CpuExecutable::allocate_state(const StateCapacity& capacity) {
  return CpuState::create(plan_, options_, capacity);
}

Result<Ticket> CpuExecutable::submit(const StepInput& input) {
  TESSERA_TRY_STATUS(check_step(plan_, weights_, options_, input));
  TESSERA_TRY_STATUS(check_positions(plan_, weights_, input));
  const CpuStep step{plan_,
                     options_,
                     kernels_,
                     pool_,
                     input,
                     static_cast<CpuState*>(input.state),
                     reinterpret_cast<float*>(token_arena_.data()),
                     reinterpret_cast<float*>(output_arena_.data()),
                     input.sequence_offsets.back(),
                     static_cast<int64_t>(input.output_rows.size())};
  ropes_.prepare(input, pool_);
  for (size_t i = 0; i < plan_.ops.size(); ++i) run_op(step, i);

  const auto whole = [&](ValueId id) -> std::span<const float> {
    const Slice slice{id, 0, plan_.values[static_cast<size_t>(id)].width};
    return {step.data(slice), static_cast<size_t>(step.rows(slice) * slice.width)};
  };
  output_.logits = plan_.logits < 0 ? std::span<const float>() : whole(plan_.logits);
  for (size_t i = 0; i < plan_.hidden.size(); ++i) output_.hidden[i].second = whole(plan_.hidden[i].value);
  return ++ticket_;
}

void CpuExecutable::run_op(const CpuStep& step, size_t index) {
  std::visit(
      Overloaded{
          [&](const EmbedOp& op) { run_embed(step, op, weights_); },
          [&](const PositionEmbedOp& op) { run_position_embed(step, op, weights_, position_row_.data()); },
          [&](const ClampOp& op) { run_clamp(step, op); },
          [&](const SparsifyOp& op) { run_sparsify(step, op); },
          [&](const SigmoidGateOp& op) { run_sigmoid_gate(step, op); },
          [&](const NormOp& op) { run_norm(step, op, weights_); },
          [&](const LinearOp&) { linear_.run(step, index); },
          [&](const RopeOp& op) { run_rope(step, op, ropes_); },
          [&](const AttendOp& op) { attend_.run(step, op, weights_); },
          [&](const RouteOp& op) { router_.run(step, op, weights_); },
          [&](const ExpertsOp& op) { experts_.run(step, op, index, linear_); },
          [&](const MlaAttendOp& op) { mla_.run(step, op, index, weights_); },
          [&](const CausalConvOp& op) { recurrent_.run(step, op, index, weights_); },
          [&](const DeltaRuleOp& op) { recurrent_.run(step, op, weights_); },
          [&](const SelectiveScanOp& op) { recurrent_.run(step, op, weights_); },
          [&](const HeadScanOp& op) { recurrent_.run(step, op, weights_); },
          [&](const TokenShiftOp& op) { recurrent_.run(step, op, weights_); },
          [&](const WkvOp& op) { recurrent_.run(step, op, weights_); },
          [&](const MixStreamsOp& op) { run_mix_streams(step, op); },
          [&](const MatchMagnitudeOp& op) { run_match_magnitude(step, op); },
          [&](const ScaleColumnsOp& op) { run_scale_columns(step, op, weights_); },
          [&](const ActivateOp& op) { run_activate(step, op); },
          [&](const CombineOp& op) { run_combine(step, op, weights_, combine_terms_.data()); },
          [&](const GatherRowsOp& op) { run_gather_rows(step, op); },
          [&](const ScaleLogitsOp& op) { run_scale_logits(step, op); },
          [&](const auto& op) { CHECK(false, "{} was not refused by supports()", op_name(Op(op))); },
      },
      plan_.ops[index]);
}

Result<bool> CpuExecutable::ready(Ticket ticket) {
  if (ticket != ticket_)
    return fail(ErrorCode::kInvalidArgument, "ticket {}: the step in flight is {}", ticket, ticket_);
  return true;
}

Result<StepOutput> CpuExecutable::wait(Ticket ticket) {
  TESSERA_TRY([[maybe_unused]] const bool done, ready(ticket));
  return output_;
}

MemoryNeeds memory_needs(const Plan& plan, const BoundWeights& weights, const CompileOptions& options,
                         const KernelTable& kernels) {
  MemoryNeeds needs;
  for (const StateGroup& group : plan.states) {
    const StateLayout layout = state_layout(group, options);
    needs.page_bytes.push_back(layout.paged ? layout.bytes : 0);
    if (!layout.paged) needs.slot_bytes += layout.bytes;
  }
  needs.relaid_bytes = AbsorbedWeights::bytes(plan, weights, options, kernels);
  return needs;
}

uint64_t CpuExecutable::page_bytes(int group) const {
  return needs_.page_bytes[static_cast<size_t>(group)];
}

uint64_t CpuExecutable::slot_bytes() const {
  return needs_.slot_bytes;
}

uint64_t CpuExecutable::arena_bytes() const {
  return token_arena_.size() + output_arena_.size() + linear_.scratch_bytes() + attend_.scratch_bytes() +
         experts_.scratch_bytes() + mla_.scratch_bytes() + recurrent_.scratch_bytes();
}

}  // namespace tessera::cpu
