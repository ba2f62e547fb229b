#include "backend/cpu/cpu_attend.h"

#include <algorithm>
#include <cmath>

#include "base/checked_math.h"

namespace tessera::cpu {
namespace {

// Queries that pass over a page together: enough to share its loads, few enough to stay in the first-level cache.
constexpr int64_t kBlockQueries = 64;

int64_t block_tokens(const AttendOp& op) {
  return std::max<int64_t>(1, kBlockQueries / (op.heads / op.kv_heads));
}

}  // namespace

CpuAttend::CpuAttend(const Plan& plan, const CompileOptions& options, int threads) {
  int64_t most = 0;
  int64_t tasks = 0;
  for (const Op& op : plan.ops) {
    const auto* attend = std::get_if<AttendOp>(&op);
    if (attend == nullptr) continue;
    const int64_t queries = block_tokens(*attend) * (attend->heads / attend->kv_heads);
    most = std::max(most, attend_scratch(queries, attend->head_dim, attend->value_dim));
    tasks = std::max(tasks, attend->kv_heads * (ceil_divide(options.max_tokens, block_tokens(*attend)) +
                                                options.max_sequences));
    if (attend->query_scale_beta != 0.0) query_scales_.resize(static_cast<size_t>(options.max_tokens));
  }
  tasks_.reserve(static_cast<size_t>(tasks));
  scratch_stride_ = static_cast<int64_t>(round_up(static_cast<uint64_t>(most), 16)) + 64;
  scratch_ = Buffer(static_cast<size_t>(scratch_stride_ * threads) * sizeof(float));
  std::ranges::fill(scratch_.as<float>(), 0.0f);
}

void CpuAttend::run(const CpuStep& step, const AttendOp& op, const BoundWeights& weights) {
  const StateLayout& layout = step.state->layout(op.group);
  AttendArgs args;
  args.q = step.data(op.q);
  args.q_stride = step.stride(op.q);
  if (op.k.present()) {  // otherwise another layer has stored them
    args.k = step.data(op.k);
    args.k_stride = step.stride(op.k);
    args.v = step.data(op.v);
    args.v_stride = step.stride(op.v);
  }
  args.output = step.data(op.output);
  args.output_stride = step.stride(op.output);
  args.heads = op.heads;
  args.kv_heads = op.kv_heads;
  args.head_dim = op.head_dim;
  args.value_dim = op.value_dim;
  args.scale = static_cast<float>(op.scale);
  args.softcap = static_cast<float>(op.softcap);
  args.window = op.window;
  args.causal = op.causal;
  args.pool = step.state->layer(op.group, op.layer);
  args.page_bytes = static_cast<int64_t>(layout.bytes);
  args.page_positions = step.options.page_positions;
  args.slots = layout.slots;
  args.element = step.options.state == StateType::kF16 ? CacheElement::kF16 : CacheElement::kF32;

  if (op.sinks >= 0) args.sinks = weights.at(op.sinks).values.data();
  if (!op.alibi_slopes.empty()) args.slopes = op.alibi_slopes.data();

  const StepInput& input = step.input;
  const PageTable& table = input.page_tables[static_cast<size_t>(op.group)];
  const int64_t block = block_tokens(op);
  tasks_.clear();
  for (size_t s = 0; s + 1 < input.sequence_offsets.size(); ++s) {
    AttendSequence sequence;
    sequence.pages = table.pages.data() + table.offsets[s];
    sequence.first_token = input.sequence_offsets[s];
    sequence.tokens = input.sequence_offsets[s + 1] - sequence.first_token;
    sequence.past = input.past[s];
    if (op.query_scale_beta != 0.0) {
      for (int64_t t = 0; t < sequence.tokens; ++t) {
        const int64_t whole_turns = (sequence.past + t) / op.query_scale_context;  // the formula floors
        const auto turns = static_cast<double>(whole_turns);
        query_scales_[static_cast<size_t>(sequence.first_token + t)] =
            static_cast<float>(1.0 + op.query_scale_beta * std::log(1.0 + turns));
      }
      args.query_scales = query_scales_.data();
    }
    // The last blocks see most: they start first.
    for (int64_t first = (sequence.tokens - 1) / block * block; first >= 0; first -= block)
      for (int64_t head = 0; head < op.kv_heads; ++head)
        tasks_.push_back({sequence, head, first, std::min(first + block, sequence.tokens)});
  }
  const auto store = [&](int64_t i, int) {
    const Task& task = tasks_[static_cast<size_t>(i)];
    step.kernels.store_kv(args, task.sequence, task.kv_head, task.first, task.last);
  };
  const auto attend = [&](int64_t i, int thread) {
    const Task& task = tasks_[static_cast<size_t>(i)];
    step.kernels.attend(args, task.sequence, task.kv_head, task.first, task.last,
                        scratch_.as<float>().data() + thread * scratch_stride_);
  };
  const auto count = static_cast<int64_t>(tasks_.size());
  constexpr int64_t kFewTokens = 16;
  if (op.k.present() && step.tokens <= kFewTokens)
    for (int64_t i = 0; i < count; ++i) store(i, 0);
  else if (op.k.present())
    step.pool.run(count, [&store](int64_t i, int thread) { store(i, thread); });
  step.pool.run(count, [&attend](int64_t i, int thread) { attend(i, thread); });
}

}  // namespace tessera::cpu
