#include "backend/cpu/cpu_mla.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/checked_math.h"
#include "formats/format_info.h"

namespace tessera::cpu {
namespace {

// Tokens whose absorbed queries are held at a time, and queries that pass over a page together.
constexpr int64_t kAbsorbedTokens = 64;
constexpr int64_t kBlockQueries = 64;

// By the multiplications of the two forms, for `tokens` tokens of a sequence of `positions` (per head).
bool expanded_is_chosen(LatentForm form, const MlaAttendOp& op, int64_t tokens, int64_t positions) {
  if (form != LatentForm::kAuto) return form == LatentForm::kExpanded;
  const int64_t matrix = (op.nope_dim + op.value_dim) * op.latent.width;
  const int64_t pairs = tokens * positions - tokens * (tokens - 1) / 2;
  const int64_t absorbed = tokens * matrix + pairs * (2 * op.latent.width + op.rope_dim);
  const int64_t expanded = positions * matrix + pairs * (op.nope_dim + op.rope_dim + op.value_dim);
  return expanded < absorbed;
}

// Rows of a matrix in float32: where they lie, or decoded.
struct FloatRows {
  const float* data;
  int64_t stride;
};
FloatRows float_rows(const KernelTable& kernels, const BoundSlot& slot, int64_t first, int64_t count,
                     float* scratch) {
  const Weight* part = slot.parts.data();
  while (first >= part->rows) first -= (part++)->rows;
  if (part->format == Format::plain(DType::kF32) && first + count <= part->rows)
    return {reinterpret_cast<const float*>(part->planes[0].row(first)),
            part->planes[0].row_stride / static_cast<int64_t>(sizeof(float))};
  const int64_t columns = part->columns;
  for (int64_t row = 0; row < count; ++row, ++first) {
    while (first >= part->rows) first -= (part++)->rows;
    const FormatKernels& format = kernels.format(part->format);
    float* out = scratch + row * columns;
    if (format.decode != nullptr)
      format.decode(part->planes[0].row(first), columns, out);
    else
      decode_row(*part, first, 0, columns, out);
  }
  return {scratch, columns};
}

FloatDotArgs float_product(const float* weights, int64_t weight_stride, int64_t rows, int64_t columns,
                           const float* x, int64_t x_stride, int64_t tokens, float* out, int64_t out_stride) {
  return {reinterpret_cast<const std::byte*>(weights),
          weight_stride * static_cast<int64_t>(sizeof(float)),
          rows,
          columns,
          x,
          x_stride,
          tokens,
          nullptr,
          out,
          out_stride};
}

int64_t rounded(int64_t floats) {
  return static_cast<int64_t>(round_up(static_cast<uint64_t>(floats), 16));
}

int64_t workspace_queries(int64_t max_tokens) {
  return rounded(std::max(max_tokens, kBlockQueries));
}

}  // namespace

// The rows of one layer's latents of one sequence.
class CpuMla::Pages {
 public:
  Pages(const CpuStep& step, const MlaAttendOp& op, int64_t sequence)
      : page_positions_(step.options.page_positions),
        element_(step.options.state == StateType::kF16 ? CacheElement::kF16 : CacheElement::kF32),
        row_bytes_((op.latent.width + op.rope_dim) * (element_ == CacheElement::kF16 ? 2 : 4)),
        page_bytes_(static_cast<int64_t>(step.state->layout(op.group).bytes)),
        base_(step.state->layer(op.group, op.layer)) {
    const PageTable& table = step.input.page_tables[static_cast<size_t>(op.group)];
    pages_ = table.pages.data() + table.offsets[static_cast<size_t>(sequence)];
  }

  // Calls body(position, rows, count) for the pieces of [first, last) that lie together.
  template <class Body>
  void for_pieces(int64_t first, int64_t last, const Body& body) const {
    while (first < last) {
      const int64_t slot = first % page_positions_;
      const int64_t count = std::min(last - first, page_positions_ - slot);
      body(first, base_ + pages_[first / page_positions_] * page_bytes_ + slot * row_bytes_, count);
      first += count;
    }
  }
  [[nodiscard]] CacheElement element() const { return element_; }
  [[nodiscard]] DType type() const { return element_ == CacheElement::kF16 ? DType::kF16 : DType::kF32; }
  [[nodiscard]] int64_t row_bytes() const { return row_bytes_; }
  [[nodiscard]] std::byte* base() const { return base_; }
  [[nodiscard]] int64_t page_bytes() const { return page_bytes_; }
  [[nodiscard]] const int32_t* pages() const { return pages_; }

 private:
  int64_t page_positions_;
  CacheElement element_;
  int64_t row_bytes_;
  int64_t page_bytes_;
  std::byte* base_;
  const int32_t* pages_;
};

CpuMla::CpuMla(const Plan& plan, const BoundWeights& weights, const CompileOptions& options,
               const KernelTable& kernels, ThreadPool& pool)
    : form_(options.latent_form),
      most_tokens_(options.max_tokens),
      absorbed_(plan, weights, options, kernels, pool) {
  int64_t queries = 0;
  int64_t mixes = 0;
  int64_t tasks = 0;
  const int64_t tokens = std::min(options.max_tokens, kAbsorbedTokens);
  for (const Op& op : plan.ops) {
    const auto* mla = std::get_if<MlaAttendOp>(&op);
    if (mla == nullptr) continue;
    const int64_t width = mla->latent.width + mla->rope_dim;
    const int64_t floats = rounded((mla->nope_dim + mla->value_dim) * mla->latent.width) +
                           rounded(kLatentStep * width) +
                           rounded(kLatentStep * (mla->nope_dim + mla->rope_dim + mla->value_dim)) +
                           kBlockQueries * kLatentStep + 4 * workspace_queries(options.max_tokens);
    scratch_stride_ = std::max(scratch_stride_, floats);
    queries = std::max(queries, tokens * mla->heads * width);
    mixes = std::max(mixes, tokens * mla->heads * mla->latent.width);
    tasks = std::max(tasks, mla->heads * std::max(tokens, options.max_sequences));
  }
  tasks_.reserve(static_cast<size_t>(tasks));
  // Not a multiple of 4096 bytes: the threads' scratches would compete for the same sets of the cache.
  if (scratch_stride_ > 0) scratch_stride_ = rounded(scratch_stride_) + 80;
  scratch_ = Buffer(static_cast<size_t>(scratch_stride_ * pool.threads()) * sizeof(float));
  std::ranges::fill(scratch_.as<float>(), 0.0f);
  queries_ = Buffer(static_cast<size_t>(queries) * sizeof(float));
  mixes_ = Buffer(static_cast<size_t>(mixes) * sizeof(float));
}

uint64_t CpuMla::scratch_bytes() const {
  return scratch_.size() + queries_.size() + mixes_.size();
}

CpuMla::Workspace CpuMla::workspace(const MlaAttendOp& op, int thread) {
  float* next = scratch_.as<float>().data() + thread * scratch_stride_;
  const auto take = [&next](int64_t floats) {
    float* place = next;
    next += rounded(floats);
    return place;
  };
  const int64_t queries = workspace_queries(most_tokens_);
  Workspace w{};
  w.weights = take((op.nope_dim + op.value_dim) * op.latent.width);
  w.latents = take(kLatentStep * (op.latent.width + op.rope_dim));
  w.keys = take(kLatentStep * (op.nope_dim + op.rope_dim + op.value_dim));
  w.scores = take(kBlockQueries * kLatentStep);
  w.maxima = take(queries);
  w.totals = take(queries);
  w.corrections = take(queries);
  w.visible = reinterpret_cast<int32_t*>(take(queries));
  return w;
}

void CpuMla::store(const CpuStep& step, const MlaAttendOp& op) {
  const int64_t width = op.latent.width + op.rope_dim;
  const bool together =
      op.latent.value == op.k_rope.value && op.latent.offset + op.latent.width == op.k_rope.offset;
  // Values of one head, without keys, are rows as they come.
  AttendArgs args;
  args.kv_heads = 1;
  args.value_dim = width;
  args.page_positions = step.options.page_positions;
  args.slots = step.state->layout(op.group).slots;
  for (size_t s = 0; s + 1 < step.input.sequence_offsets.size(); ++s) {
    const Pages pages(step, op, static_cast<int64_t>(s));
    args.pool = pages.base();
    args.page_bytes = pages.page_bytes();
    args.element = pages.element();
    AttendSequence sequence;
    sequence.pages = pages.pages();
    sequence.first_token = step.input.sequence_offsets[s];
    sequence.tokens = step.input.sequence_offsets[s + 1] - sequence.first_token;
    sequence.past = step.input.past[s];
    if (together) {
      args.v = step.data(op.latent);
      args.v_stride = step.stride(op.latent);
      step.for_rows(sequence.tokens, width, [&](int64_t first, int64_t last) {
        step.kernels.store_kv(args, sequence, 0, first, last);
      });
      continue;
    }
    float* row = workspace(op, 0).latents;
    args.v = row;
    args.v_stride = 0;
    for (int64_t t = 0; t < sequence.tokens; ++t) {
      const int64_t token = sequence.first_token + t;
      std::copy_n(step.data(op.latent) + token * step.stride(op.latent), op.latent.width, row);
      std::copy_n(step.data(op.k_rope) + token * step.stride(op.k_rope), op.rope_dim, row + op.latent.width);
      step.kernels.store_kv(args, sequence, 0, t, t + 1);
    }
  }
}

void CpuMla::run(const CpuStep& step, const MlaAttendOp& op, size_t index, const BoundWeights& weights) {
  store(step, op);
  const auto sequences = static_cast<int64_t>(step.input.sequence_offsets.size()) - 1;
  const auto offset = [&](int64_t s) -> int64_t {
    return step.input.sequence_offsets[static_cast<size_t>(s)];
  };
  const auto expanded = [&](int64_t s) {
    const int64_t tokens = offset(s + 1) - offset(s);
    return expanded_is_chosen(form_, op, tokens, step.input.past[static_cast<size_t>(s)] + tokens);
  };

  tasks_.clear();
  for (int64_t s = 0; s < sequences; ++s)
    for (int64_t head = 0; head < op.heads && expanded(s); ++head)
      tasks_.push_back({s, 0, offset(s + 1) - offset(s), head, head + 1});
  if (!tasks_.empty()) {
    const auto attend = [&](int64_t i, int thread) {
      attend_expanded(step, op, weights, tasks_[static_cast<size_t>(i)], thread);
    };
    step.pool.run(static_cast<int64_t>(tasks_.size()),
                  [&attend](int64_t i, int thread) { attend(i, thread); });
  }

  for (int64_t s = 0; s < sequences;) {
    if (expanded(s)) {
      ++s;
      continue;
    }
    const int64_t first = offset(s);
    while (s < sequences && !expanded(s)) ++s;
    for (int64_t token = first; token < offset(s); token += kAbsorbedTokens)
      run_absorbed(step, op, index, token, std::min(offset(s), token + kAbsorbedTokens));
  }
}

// Tokens [first, last) of the step.
void CpuMla::run_absorbed(const CpuStep& step, const MlaAttendOp& op, size_t index, int64_t first,
                          int64_t last) {
  const int64_t lora = op.latent.width;
  const int64_t width = lora + op.rope_dim;
  const int64_t head_dim = op.nope_dim + op.rope_dim;
  float* queries = queries_.as<float>().data();
  float* mixes = mixes_.as<float>().data();
  const auto absorb = [&](int64_t head, int) {
    const float* q = step.data(op.q) + first * step.stride(op.q) + head * head_dim;
    absorbed_.absorb(index, head, q, step.stride(op.q), last - first, queries + head * width,
                     op.heads * width);
    for (int64_t t = 0; t < last - first; ++t)
      std::copy_n(q + t * step.stride(op.q) + op.nope_dim, op.rope_dim,
                  queries + (t * op.heads + head) * width + lora);
  };
  step.pool.run(op.heads, [&absorb](int64_t head, int thread) { absorb(head, thread); });

  // Blocks of whole tokens, or of heads of one token.
  const int64_t wanted = ceil_divide(2 * step.pool.threads(), last - first);
  const int64_t head_block = std::min(
      kBlockQueries, std::max<int64_t>(std::min<int64_t>(4, op.heads), ceil_divide(op.heads, wanted)));
  const int64_t token_block =
      head_block < op.heads
          ? 1
          : std::max<int64_t>(
                1, std::min(kBlockQueries / op.heads, ceil_divide(last - first, 2 * step.pool.threads())));
  tasks_.clear();
  const auto sequences = static_cast<int64_t>(step.input.sequence_offsets.size()) - 1;
  for (int64_t s = 0; s < sequences; ++s) {
    const int64_t begin = step.input.sequence_offsets[static_cast<size_t>(s)];
    const int64_t from = std::max(first, begin) - begin;
    const int64_t to =
        std::min<int64_t>(last, step.input.sequence_offsets[static_cast<size_t>(s) + 1]) - begin;
    for (int64_t t = from; t < to; t += token_block)
      for (int64_t head = 0; head < op.heads; head += head_block)
        tasks_.push_back({s, t, std::min(to, t + token_block), head, std::min(op.heads, head + head_block)});
  }
  const auto attend = [&](int64_t i, int thread) {
    attend_latents(step, op, tasks_[static_cast<size_t>(i)], first, thread);
  };
  step.pool.run(static_cast<int64_t>(tasks_.size()), [&attend](int64_t i, int thread) { attend(i, thread); });

  const auto expand = [&](int64_t head, int) {
    absorbed_.expand(index, head, mixes + head * lora, op.heads * lora, last - first,
                     step.data(op.output) + first * step.stride(op.output) + head * op.value_dim,
                     step.stride(op.output));
  };
  step.pool.run(op.heads, [&expand](int64_t head, int thread) { expand(head, thread); });
}

// Scores, softmax and mix of latents for the absorbed queries of a task; `first_row` is the step's token of queries_[0].
void CpuMla::attend_latents(const CpuStep& step, const MlaAttendOp& op, const Task& task, int64_t first_row,
                            int thread) {
  const Pages pages(step, op, task.sequence);
  const Workspace w = workspace(op, thread);
  const auto s = static_cast<size_t>(task.sequence);
  const int64_t lora = op.latent.width;
  const int64_t width = lora + op.rope_dim;
  const int64_t heads = task.last_head - task.first_head;
  const int64_t queries = (task.last - task.first) * heads;  // they lie one after another
  const int64_t place =
      (step.input.sequence_offsets[s] + task.first - first_row) * op.heads + task.first_head;
  const float* q = queries_.as<float>().data() + place * width;
  float* mixes = mixes_.as<float>().data() + place * lora;
  const int64_t past = step.input.past[s];
  const int64_t end = past + task.last;
  std::fill_n(w.maxima, queries, -INFINITY);
  std::fill_n(w.totals, queries, 0.0f);
  for (int64_t begin = 0; begin < end; begin += kLatentStep) {
    const int64_t stop = std::min(end, begin + kLatentStep);
    pages.for_pieces(begin, stop, [&](int64_t position, const std::byte* rows, int64_t count) {
      step.kernels.plain[static_cast<size_t>(pages.type())].float_dot(
          {rows, pages.row_bytes(), count, width, q, width, queries, nullptr, w.scores + (position - begin),
           kLatentStep});
    });
    for (int64_t n = 0; n < queries; ++n)
      w.visible[n] = static_cast<int32_t>(std::min(kLatentStep, past + task.first + n / heads + 1 - begin));
    step.kernels.latent_softmax(
        {w.scores, queries, w.visible, static_cast<float>(op.scale), w.maxima, w.totals, w.corrections});
    pages.for_pieces(begin, stop, [&](int64_t position, const std::byte* rows, int64_t count) {
      LatentMixArgs args;
      args.shares = w.scores + (position - begin);
      args.share_stride = kLatentStep;
      args.queries = queries;
      if (position > 0) args.corrections = w.corrections;
      args.values = rows;
      args.value_stride = pages.row_bytes();
      args.element = pages.element();
      args.count = count;
      args.width = lora;
      args.output = {mixes, lora};
      step.kernels.latent_mix(args);
      std::fill_n(w.corrections, queries, 1.0f);  // applied
    });
  }
  for (int64_t n = 0; n < queries; ++n) step.kernels.scale(mixes + n * lora, lora, 1.0f / w.totals[n]);
}

// One head of a sequence: keys and values of kLatentStep positions at a time, then all tokens that see them.
void CpuMla::attend_expanded(const CpuStep& step, const MlaAttendOp& op, const BoundWeights& weights,
                             const Task& task, int thread) {
  const Pages pages(step, op, task.sequence);
  const Workspace w = workspace(op, thread);
  const KernelTable& kernels = step.kernels;
  const FormatKernels& f32 = kernels.plain[static_cast<size_t>(DType::kF32)];
  const auto s = static_cast<size_t>(task.sequence);
  const int64_t lora = op.latent.width;
  const int64_t width = lora + op.rope_dim;
  const int64_t key_dim = op.nope_dim + op.rope_dim;
  const int64_t stride = key_dim + op.value_dim;  // of expanded rows: [nope | rope | value]
  const int64_t past = step.input.past[s];
  const int64_t tokens = task.last;
  const int64_t first_row = step.input.sequence_offsets[s];
  const int64_t head = task.first_head;
  const float* q = step.data(op.q) + first_row * step.stride(op.q) + head * key_dim;
  const Rows output{step.data(op.output) + first_row * step.stride(op.output) + head * op.value_dim,
                    step.stride(op.output)};
  const FloatRows matrix = float_rows(kernels, weights.at(op.kv_b), head * (op.nope_dim + op.value_dim),
                                      op.nope_dim + op.value_dim, w.weights);
  std::fill_n(w.maxima, tokens, -INFINITY);
  std::fill_n(w.totals, tokens, 0.0f);
  for (int64_t begin = 0; begin < past + tokens; begin += kLatentStep) {
    const int64_t count = std::min(kLatentStep, past + tokens - begin);
    pages.for_pieces(begin, begin + count, [&](int64_t position, const std::byte* rows, int64_t piece) {
      for (int64_t i = 0; i < piece; ++i)
        kernels.plain[static_cast<size_t>(pages.type())].decode(rows + i * pages.row_bytes(), width,
                                                                w.latents + (position - begin + i) * width);
    });
    f32.float_dot(float_product(matrix.data, matrix.stride, op.nope_dim, lora, w.latents, width, count,
                                w.keys, stride));
    f32.float_dot(float_product(matrix.data + op.nope_dim * matrix.stride, matrix.stride, op.value_dim, lora,
                                w.latents, width, count, w.keys + key_dim, stride));
    for (int64_t i = 0; i < count; ++i)
      std::copy_n(w.latents + i * width + lora, op.rope_dim, w.keys + i * stride + op.nope_dim);
    for (int64_t first = std::max<int64_t>(0, begin - past); first < tokens; first += kBlockQueries) {
      const int64_t queries = std::min(kBlockQueries, tokens - first);
      f32.float_dot(float_product(w.keys, stride, count, key_dim, q + first * step.stride(op.q),
                                  step.stride(op.q), queries, w.scores, kLatentStep));
      for (int64_t n = 0; n < queries; ++n)
        w.visible[n] = static_cast<int32_t>(std::min(kLatentStep, past + first + n + 1 - begin));
      kernels.latent_softmax({w.scores, queries, w.visible, static_cast<float>(op.scale), w.maxima + first,
                              w.totals + first, w.corrections});
      LatentMixArgs args;
      args.shares = w.scores;
      args.share_stride = kLatentStep;
      args.queries = queries;
      if (begin > 0) args.corrections = w.corrections;
      args.values = reinterpret_cast<const std::byte*>(w.keys + key_dim);
      args.value_stride = stride * static_cast<int64_t>(sizeof(float));
      args.count = count;
      args.width = op.value_dim;
      args.output = {output.data + first * output.stride, output.stride};
      kernels.latent_mix(args);
    }
  }
  for (int64_t t = 0; t < tokens; ++t)
    kernels.scale(output.data + t * output.stride, op.value_dim, 1.0f / w.totals[t]);
}

}  // namespace tessera::cpu
