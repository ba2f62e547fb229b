#include "backend/cpu/cpu_recurrent.h"

#include <algorithm>

#include "backend/cpu/sequence_args.h"
#include "base/checked_math.h"

namespace tessera::cpu {
namespace {

const float* vector_of(const BoundWeights& weights, WeightId id) {
  return id < 0 ? nullptr : weights.at(id).values.data();
}

// A sequence's tokens and its recurrent values before and after the step.
struct Walk {
  int64_t first_token;
  int64_t tokens;
  const float* read;
  float* write;
};

Walk walk_of(const CpuStep& step, int group, int layer, int64_t s) {
  const auto i = static_cast<size_t>(s);
  const auto stride = static_cast<int64_t>(step.state->layout(group).bytes);
  std::byte* base = step.state->layer(group, layer);
  const int64_t first = step.input.sequence_offsets[i];
  return {first, step.input.sequence_offsets[i + 1] - first,
          reinterpret_cast<const float*>(base + step.input.read_slots[i] * stride),
          reinterpret_cast<float*>(base + step.input.write_slots[i] * stride)};
}

// body(walk, first, last, thread) for every sequence and every range of at most `chunk` of `count` channels or heads. `cost` is about
// the work of one of them for one token, in multiplications.
template <class Body>
void for_ranges(const CpuStep& step, int group, int layer, int64_t count, int64_t chunk, int64_t cost,
                const Body& body) {
  constexpr int64_t kWorthSharing = 16384;
  const auto sequences = static_cast<int64_t>(step.input.sequence_offsets.size()) - 1;
  const int64_t chunks = ceil_divide(count, chunk);
  const auto task = [&](int64_t i, int thread) {
    const int64_t first = i % chunks * chunk;
    body(walk_of(step, group, layer, i / chunks), first, std::min(count, first + chunk), thread);
  };
  if (step.pool.threads() == 1 || step.tokens * count * cost < kWorthSharing) {
    for (int64_t i = 0; i < sequences * chunks; ++i) task(i, 0);
    return;
  }
  step.pool.run(sequences * chunks, [&task](int64_t i, int thread) { task(i, thread); });
}

ConstRows rows_of(const CpuStep& step, const Slice& slice, int64_t first_token) {
  return {step.data(slice) + first_token * step.stride(slice), step.stride(slice)};
}
Rows output_of(const CpuStep& step, const Slice& slice, int64_t first_token) {
  return {step.data(slice) + first_token * step.stride(slice), step.stride(slice)};
}

}  // namespace

bool CpuRecurrent::blocked(int64_t tokens, int64_t from) const {
  if (form_ == SequenceForm::kAuto) return tokens >= from;
  return form_ == SequenceForm::kBlocks && tokens > 1;
}

CpuRecurrent::CpuRecurrent(const Plan& plan, const BoundWeights& weights, const CompileOptions& options,
                           int threads)
    : form_(options.sequence_form), conv_weights_(plan.ops.size()) {
  size_t keys = 0;
  size_t gates = 0;
  size_t scores = 0;
  const auto scratch = [this](int64_t floats) { scratch_stride_ = std::max(scratch_stride_, floats); };
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    if (const auto* conv = std::get_if<CausalConvOp>(&plan.ops[i])) {
      const std::vector<float>& source = weights.at(conv->weight).values;
      const auto kernel = static_cast<size_t>(conv->kernel);
      const auto channels = static_cast<size_t>(conv->input.width);
      std::vector<float>& target = conv_weights_[i];
      target.resize(kernel * channels);
      for (size_t c = 0; c < channels; ++c)
        for (size_t k = 0; k < kernel; ++k) target[k * channels + c] = source[c * kernel + k];
    } else if (const auto* delta = std::get_if<DeltaRuleOp>(&plan.ops[i])) {
      keys = std::max(keys, static_cast<size_t>(2 * delta->key_heads * delta->key_dim));
      gates = std::max(gates, static_cast<size_t>(2 * delta->value_heads));
      scores = std::max(scores, static_cast<size_t>(2 * delta->key_heads * kBlockTokens));
      scratch(delta_block_scratch(delta->key_dim, delta->value_dim));
    } else if (const auto* scan = std::get_if<HeadScanOp>(&plan.ops[i])) {
      scores = std::max(scores, static_cast<size_t>(scan->groups * kBlockTokens));
      scratch(scan_block_scratch(scan->head_dim, scan->states));
    }
  }
  // Not a multiple of 4096 bytes: the threads' scratches would compete for the same sets of the cache.
  if (scratch_stride_ > 0)
    scratch_stride_ = static_cast<int64_t>(round_up(static_cast<uint64_t>(scratch_stride_), 1024)) + 80;
  scratch_ = Buffer(static_cast<size_t>(scratch_stride_ * threads) * sizeof(float));
  scores_.resize(blocked(options.max_tokens, 2) ? scores * static_cast<size_t>(options.max_tokens) : 0);
  blocks_.reserve(static_cast<size_t>(options.max_tokens / kBlockTokens + options.max_sequences + 1));
  keys_.resize(keys * static_cast<size_t>(options.max_tokens));
  gates_.resize(gates * static_cast<size_t>(options.max_tokens));
}

uint64_t CpuRecurrent::scratch_bytes() const {
  uint64_t floats = keys_.size() + gates_.size() + scores_.size();
  for (const std::vector<float>& weights : conv_weights_) floats += weights.size();
  return floats * sizeof(float) + scratch_.size();
}

void CpuRecurrent::run(const CpuStep& step, const CausalConvOp& op, size_t index,
                       const BoundWeights& weights) const {
  constexpr int64_t kChannels = 64;
  for_ranges(step, op.group, op.layer, op.input.width, kChannels, op.kernel,
             [&](const Walk& walk, int64_t first, int64_t last, int) {
               ConvArgs args;
               args.input = rows_of(step, op.input, walk.first_token);
               args.output = output_of(step, op.output, walk.first_token);
               args.tokens = walk.tokens;
               args.kernel = op.kernel;
               args.channels = op.input.width;
               args.weights = conv_weights_[index].data();
               args.bias = vector_of(weights, op.bias);
               args.read = walk.read;
               args.write = walk.write;
               step.kernels.causal_conv(args, first, last);
               if (op.activation == Activation::kIdentity) return;
               ActivateArgs activate;
               activate.gate = args.output.data + first;
               activate.gate_stride = args.output.stride;
               activate.output = args.output.data + first;
               activate.output_stride = args.output.stride;
               activate.width = last - first;
               activate.activation = op.activation;
               step.kernels.activate(activate, 0, walk.tokens);
             });
}

void CpuRecurrent::run(const CpuStep& step, const TokenShiftOp& op, const BoundWeights& weights) const {
  constexpr int64_t kColumns = 256;
  const auto outputs = static_cast<int64_t>(op.outputs.size());
  for_ranges(step, op.group, op.layer, op.x.width, kColumns, 2 * outputs,
             [&](const Walk& walk, int64_t first, int64_t last, int) {
               ShiftArgs args;
               args.input = rows_of(step, op.x, walk.first_token);
               args.tokens = walk.tokens;
               args.read = walk.read;
               for (int64_t i = 0; i < outputs; ++i) {
                 const auto at = static_cast<size_t>(i);
                 args.output = output_of(step, op.outputs[at], walk.first_token);
                 args.mix = vector_of(weights, op.mixes[at]);
                 args.write = i + 1 == outputs ? walk.write : nullptr;
                 step.kernels.token_shift(args, first, last);
               }
             });
}

void CpuRecurrent::run(const CpuStep& step, const WkvOp& op, const BoundWeights& weights) const {
  constexpr int64_t kChannels = 64;
  constexpr int64_t kCost = 64;
  for_ranges(step, op.group, op.layer, op.k.width, kChannels, kCost,
             [&](const Walk& walk, int64_t first, int64_t last, int) {
               WkvArgs args;
               args.k = rows_of(step, op.k, walk.first_token);
               args.v = rows_of(step, op.v, walk.first_token);
               args.output = output_of(step, op.output, walk.first_token);
               args.tokens = walk.tokens;
               args.channels = op.k.width;
               args.decay = vector_of(weights, op.decay);
               args.first = vector_of(weights, op.first);
               args.read = walk.read;
               args.write = walk.write;
               step.kernels.wkv(args, first, last);
             });
}

void CpuRecurrent::run(const CpuStep& step, const SelectiveScanOp& op, const BoundWeights& weights) const {
  constexpr int64_t kChannels = 64;
  for_ranges(step, op.group, op.layer, op.x.width, kChannels, 16 * op.b.width,
             [&](const Walk& walk, int64_t first, int64_t last, int) {
               SelectiveScanArgs args;
               args.x = rows_of(step, op.x, walk.first_token);
               args.dt = rows_of(step, op.dt, walk.first_token);
               args.b = rows_of(step, op.b, walk.first_token);
               args.c = rows_of(step, op.c, walk.first_token);
               args.output = output_of(step, op.output, walk.first_token);
               args.tokens = walk.tokens;
               args.states = op.b.width;
               args.decay = vector_of(weights, op.decay);
               args.d = vector_of(weights, op.d);
               args.read = walk.read;
               args.write = walk.write;
               step.kernels.selective_scan(args, first, last);
             });
}

// block(sequence's first token, tokens, part, thread) for every block of a sequence that is computed by blocks, and every part.
template <class Body>
void CpuRecurrent::for_blocks(const CpuStep& step, int64_t from, int64_t parts, int64_t cost,
                              const Body& body) {
  blocks_.clear();
  for (size_t s = 0; s + 1 < step.input.sequence_offsets.size(); ++s) {
    const int64_t first = step.input.sequence_offsets[s];
    const int64_t last = step.input.sequence_offsets[s + 1];
    if (!blocked(last - first, from)) continue;
    for (int64_t token = first; token < last; token += kBlockTokens)
      blocks_.push_back({token, std::min(last - token, kBlockTokens)});
  }
  const auto task = [&](int64_t i, int thread) {
    const Block& block = blocks_[static_cast<size_t>(i / parts)];
    body(block.first_token, block.tokens, i % parts, scratch_.as<float>().data() + thread * scratch_stride_);
  };
  const int64_t tasks = static_cast<int64_t>(blocks_.size()) * parts;
  constexpr int64_t kWorthSharing = 16384;
  if (step.pool.threads() == 1 || tasks * kBlockTokens * cost < kWorthSharing) {
    for (int64_t i = 0; i < tasks; ++i) task(i, 0);
    return;
  }
  step.pool.run(tasks, [&task](int64_t i, int thread) { task(i, thread); });
}

void CpuRecurrent::run(const CpuStep& step, const HeadScanOp& op, const BoundWeights& weights) {
  const ConstRows all_b = rows_of(step, op.b, 0);
  const ConstRows all_c = rows_of(step, op.c, 0);
  const int64_t score_stride = op.groups * kBlockTokens;
  float* const scores = scores_.data();
  for_blocks(step, kScanBlocksFrom, op.groups, kBlockTokens * op.states,
             [&](int64_t token, int64_t tokens, int64_t group, float* scratch) {
               BlockScoresArgs args;
               args.right = {all_b.data + token * all_b.stride + group * op.states, all_b.stride};
               args.first = {{all_c.data + token * all_c.stride + group * op.states, all_c.stride},
                             {scores + token * score_stride + group * kBlockTokens, score_stride}};
               args.tokens = tokens;
               args.width = op.states;
               args.scratch = scratch;
               step.kernels.block_scores(args);
             });
  for_ranges(step, op.group, op.layer, op.heads, 1, 4 * op.head_dim * op.states,
             [&](const Walk& walk, int64_t first, int64_t last, int thread) {
               HeadScanArgs args;
               args.x = rows_of(step, op.x, walk.first_token);
               args.dt = rows_of(step, op.dt, walk.first_token);
               args.b = rows_of(step, op.b, walk.first_token);
               args.c = rows_of(step, op.c, walk.first_token);
               args.output = output_of(step, op.output, walk.first_token);
               args.tokens = walk.tokens;
               args.heads_per_group = op.heads / op.groups;
               args.head_dim = op.head_dim;
               args.states = op.states;
               args.decay = vector_of(weights, op.decay);
               args.dt_bias = vector_of(weights, op.dt_bias);
               args.d = vector_of(weights, op.d);
               args.dt_min = static_cast<float>(op.dt_min);
               args.dt_max = static_cast<float>(op.dt_max);
               args.read = walk.read;
               args.write = walk.write;
               if (!blocked(walk.tokens, kScanBlocksFrom)) {
                 step.kernels.head_scan(args, first, last);
                 return;
               }
               const ScanBlockArgs block{scores + walk.first_token * score_stride, score_stride,
                                         scratch_.as<float>().data() + thread * scratch_stride_};
               step.kernels.head_scan_blocked(args, block, first, last);
             });
}

void CpuRecurrent::run(const CpuStep& step, const DeltaRuleOp& op, const BoundWeights& weights) {
  const DeltaInputArgs inputs{rows_of(step, op.q, 0),
                              rows_of(step, op.k, 0),
                              rows_of(step, op.a, 0),
                              rows_of(step, op.b, 0),
                              op.key_heads,
                              op.value_heads,
                              op.key_dim,
                              vector_of(weights, op.decay),
                              vector_of(weights, op.dt_bias),
                              keys_.data(),
                              gates_.data()};
  step.for_rows(step.tokens, 2 * op.key_heads * op.key_dim + 64 * op.value_heads,
                [&](int64_t first, int64_t last) { step.kernels.delta_inputs(inputs, first, last); });
  const int64_t key_stride = 2 * op.key_heads * op.key_dim;
  const int64_t score_stride = 2 * op.key_heads * kBlockTokens;
  float* const scores = scores_.data();
  for_blocks(step, kDeltaBlocksFrom, op.key_heads, 2 * kBlockTokens * op.key_dim,
             [&](int64_t token, int64_t tokens, int64_t key_head, float* scratch) {
               const float* keys = keys_.data() + token * key_stride + 2 * key_head * op.key_dim;
               float* out = scores + token * score_stride + 2 * key_head * kBlockTokens;
               BlockScoresArgs args;
               args.right = {keys, key_stride};
               args.first = {{keys, key_stride}, {out, score_stride}};
               args.second = {{keys + op.key_dim, key_stride}, {out + kBlockTokens, score_stride}};
               args.tokens = tokens;
               args.width = op.key_dim;
               args.scratch = scratch;
               step.kernels.block_scores(args);
             });
  // Token by token a range of columns should stay in the first-level cache; blocks share more when they have whole heads.
  const int64_t gate_stride = 2 * op.value_heads;
  const auto sequences = static_cast<int64_t>(step.input.sequence_offsets.size()) - 1;
  const bool whole = blocks_.size() > 0 && op.value_heads * sequences >= 2 * step.pool.threads();
  const int64_t columns = whole ? op.value_dim : std::min(op.value_dim, kDeltaColumns);
  const int64_t ranges = ceil_divide(op.value_dim, columns);
  for_ranges(
      step, op.group, op.layer, op.value_heads * ranges, 1, 4 * op.key_dim * columns,
      [&](const Walk& walk, int64_t index, int64_t, int thread) {
        const int64_t head = index / ranges;
        const int64_t first = index % ranges * columns;
        const int64_t last = std::min(op.value_dim, first + columns);
        const int64_t key_head =
            op.head_map == HeadMap::kGrouped ? head / (op.value_heads / op.key_heads) : head % op.key_heads;
        DeltaArgs args;
        args.keys = keys_.data() + walk.first_token * key_stride + 2 * key_head * op.key_dim;
        args.key_stride = key_stride;
        args.gates = gates_.data() + walk.first_token * gate_stride + 2 * head;
        args.gate_stride = gate_stride;
        args.v = rows_of(step, op.v, walk.first_token);
        args.v.data += head * op.value_dim;
        args.output = output_of(step, op.output, walk.first_token);
        args.output.data += head * op.value_dim;
        args.tokens = walk.tokens;
        args.key_dim = op.key_dim;
        args.value_dim = op.value_dim;
        args.read = walk.read + head * op.key_dim * op.value_dim;
        args.write = walk.write + head * op.key_dim * op.value_dim;
        if (blocked(walk.tokens, kDeltaBlocksFrom)) {
          const DeltaBlockArgs block{scores + walk.first_token * score_stride + 2 * key_head * kBlockTokens,
                                     score_stride, scratch_.as<float>().data() + thread * scratch_stride_};
          step.kernels.delta_rule_blocked(args, block, first, last);
          return;
        }
        for (int64_t column = first; column < last; column += kDeltaColumns)
          step.kernels.delta_rule(args, column, std::min(last, column + kDeltaColumns));
      });
}

}  // namespace tessera::cpu
