#include "backend/cpu/cpu_linear.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked_math.h"
#include "formats/format_info.h"

namespace tessera::cpu {
namespace {

// From so many tokens on, decoding a row once into scratch is cheaper than decoding it in registers for every few tokens.
constexpr int64_t kFewFloatTokens = 7;
constexpr int64_t kFewBf16Tokens = 3;
// Rows decoded into scratch at a time: as many as this many bytes hold.
constexpr int64_t kDecodedBytes = 256 << 10;
constexpr int64_t kMostDecodedRows = 64;

int64_t decoded_rows(int64_t columns, int64_t element) {
  const int64_t rows = kDecodedBytes / std::max<int64_t>(1, columns * element);
  return std::clamp<int64_t>(rows / 4 * 4, 4, kMostDecodedRows);
}

LinearMode choose_mode(const KernelTable& kernels, const FormatKernels& format, const Weight& weight,
                       ActivationType activations) {
  if (activations == ActivationType::kExact) return LinearMode::kFloat;
  if (format.int8_dot != nullptr && format.int8_pack != nullptr && weight.columns % kQuantBlock == 0)
    return LinearMode::kInt8;
  if (format.decode_bf16 != nullptr && kernels.bf16_dot != nullptr) return LinearMode::kBf16;
  return LinearMode::kFloat;
}

}  // namespace

CpuLinear::CpuLinear(const Plan& plan, const BoundWeights& weights, const CompileOptions& options,
                     const KernelTable& kernels, int threads)
    : kernels_(kernels) {
  int64_t most_rows = 0;  // of any op's input
  bool int8 = false;
  bool bf16 = false;
  size_t most_tasks = 0;
  for (const Op& op : plan.ops) {
    PreparedLinear prepared;
    if (const auto* linear = std::get_if<LinearOp>(&op)) {
      int64_t column = 0;
      const Value& input = plan.values[static_cast<size_t>(linear->input.value)];
      most_rows =
          std::max(most_rows, input.rows == RowSymbol::kTokens ? options.max_tokens : options.max_outputs);
      size_t tasks = 0;
      for (const LinearPart& part : linear->parts) {
        const float* bias = part.bias < 0 ? nullptr : weights.at(part.bias).values.data();
        int64_t row = 0;
        for (const Weight& weight : weights.at(part.weight).parts) {
          if (row == part.rows) break;
          LinearSegment segment;
          // Only the first part.rows rows of the slot.
          segment.weight = weight.slice_rows(0, std::min(weight.rows, part.rows - row));
          segment.kernels = &kernels.format(weight.format);
          segment.mode = choose_mode(kernels, *segment.kernels, weight, options.activations);
          segment.column = column + row;
          segment.bias = bias == nullptr ? nullptr : bias + row;
          row += segment.weight.rows;
          largest_columns_ = std::max(largest_columns_, weight.columns);
          prepared.int8 = prepared.int8 || segment.mode == LinearMode::kInt8;
          prepared.bf16 = prepared.bf16 || segment.mode == LinearMode::kBf16;
          tasks += static_cast<size_t>(weight.rows / 4 + 8 * threads + 16);
          prepared.segments.push_back(segment);
        }
        column += part.rows;
      }
      int8 = int8 || prepared.int8;
      bf16 = bf16 || prepared.bf16;
      most_tasks = std::max(most_tasks, tasks);
    }
    ops_.push_back(std::move(prepared));
  }
  tasks_.reserve(most_tasks);

  const int64_t padded = static_cast<int64_t>(round_up(static_cast<uint64_t>(largest_columns_), 128));
  const auto rows = static_cast<size_t>(most_rows);
  const int64_t blocks = padded / kQuantBlock;
  if (int8) {
    int8_codes_ = Buffer(rows * static_cast<size_t>(padded));
    int8_scales_ = Buffer(rows * static_cast<size_t>(blocks) * sizeof(float));
    int8_offsets_ = Buffer(rows * static_cast<size_t>(blocks) * sizeof(int32_t));
    for (SpreadActivations& spread : spreads_)
      spread.bytes = Buffer(static_cast<size_t>(kMaxDotTokens * int8_spread_bytes(blocks)));
    int8_ = {reinterpret_cast<int8_t*>(int8_codes_.data()), padded, int8_scales_.as<float>().data(),
             int8_offsets_.as<int32_t>().data(), blocks};
  }
  if (bf16) bf16_ = Buffer(rows * static_cast<size_t>(padded) * sizeof(uint16_t));
  // decoded_rows() fills at most kDecodedBytes, or four rows.
  int64_t per_thread = std::max(kDecodedBytes, 4 * padded * static_cast<int64_t>(sizeof(float)));
  if (int8)
    per_thread =
        std::max(per_thread, kernels.tile_rows * (padded + blocks * static_cast<int64_t>(sizeof(float))));
  // Not a multiple of 4096: the threads' scratches would compete for the same sets of the cache.
  scratch_stride_ = static_cast<int64_t>(round_up(static_cast<uint64_t>(per_thread), 4096)) + 256;
  if (!plan.ops.empty()) scratch_ = Buffer(static_cast<size_t>(scratch_stride_ * threads));
}

uint64_t CpuLinear::scratch_bytes() const {
  uint64_t total =
      int8_codes_.size() + int8_scales_.size() + int8_offsets_.size() + bf16_.size() + scratch_.size();
  for (const SpreadActivations& spread : spreads_) total += spread.bytes.size();
  return total;
}

CpuLinear::SpreadActivations& CpuLinear::spread_for(SpreadFunction function) {
  for (SpreadActivations& spread : spreads_)
    if (spread.made_by == function) return spread;
  for (SpreadActivations& spread : spreads_)
    if (spread.made_by == nullptr) return spread;
  CHECK(false, "more orders of activations than {}", spreads_.size());
  return spreads_[0];
}

std::byte* CpuLinear::scratch(int thread) const {
  return const_cast<std::byte*>(scratch_.data()) + thread * scratch_stride_;
}

void CpuLinear::quantise(const CpuStep& step, const PreparedLinear& linear, const Source& source) {
  if (linear.int8) {
    step.for_rows(source.rows, source.columns, [&](int64_t first, int64_t last) {
      kernels_.quantise_int8(source.data, source.stride, source.columns, int8_, first, last);
    });
    if (source.rows <= kMaxDotTokens) {
      const int64_t blocks = source.columns / kQuantBlock;
      // Formats that share a spread function share its output.
      for (SpreadActivations& spread : spreads_) spread.made_by = nullptr;
      for (const LinearSegment& segment : linear.segments) {
        if (segment.mode != LinearMode::kInt8 || segment.kernels->int8_spread == nullptr) continue;
        SpreadActivations& target = spread_for(segment.kernels->int8_spread);
        if (target.made_by != nullptr) continue;
        target.made_by = segment.kernels->int8_spread;
        target.made_by(int8_, source.rows, blocks, target.bytes.data());
      }
    }
  }
  if (linear.bf16 && source.rows > kFewBf16Tokens) {
    auto* out = bf16_.as<uint16_t>().data();
    step.for_rows(source.rows, source.columns, [&](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; ++row)
        kernels_.to_bf16(source.data + row * source.stride, source.columns, out + row * source.columns);
    });
  }
}

void CpuLinear::add_tasks(const LinearSegment& segment, const Source& source, int threads) {
  const int64_t rows = segment.weight.rows;
  int64_t tile = 0;
  bool re_laid = true;
  switch (segment.mode) {
    case LinearMode::kInt8:
      re_laid = source.rows > kMaxDotTokens;
      tile = kernels_.tile_rows;
      break;
    case LinearMode::kBf16:
      re_laid = source.rows > kFewBf16Tokens;
      tile = decoded_rows(source.columns, 2);
      break;
    case LinearMode::kFloat:
      re_laid = source.rows > kFewFloatTokens || segment.kernels->float_dot == nullptr;
      tile = decoded_rows(source.columns, 4);
      break;
  }
  if (!re_laid) tile = std::max<int64_t>(8, ceil_divide(rows, 8 * threads * 8) * 8);
  // Few tiles and many tokens: the tokens are split as well, so that no thread is idle.
  const int64_t tiles = ceil_divide(rows, tile);
  int64_t token_chunk = source.rows;
  if (threads > 1 && re_laid && tiles < 4 * threads)
    token_chunk = std::max<int64_t>(
        48, ceil_divide(ceil_divide(source.rows, ceil_divide(4 * threads, tiles)), 12) * 12);
  for (int64_t row = 0; row < rows; row += tile)
    for (int64_t token = 0; token < source.rows; token += token_chunk)
      tasks_.push_back(
          {&segment, row, std::min(tile, rows - row), token, std::min(token_chunk, source.rows - token)});
}

void CpuLinear::run_task(const CpuStep& step, const Task& task, const Source& source, const Slice& output,
                         int thread) {
  const LinearSegment& segment = *task.segment;
  const Weight& weight = segment.weight;
  const Plane& plane = weight.planes[0];
  const std::byte* rows = plane.row(task.first_row);
  const float* bias = segment.bias == nullptr ? nullptr : segment.bias + task.first_row;
  const int64_t out_stride = step.stride(output);
  float* out = step.data(output) + task.first_token * out_stride + segment.column + task.first_row;

  if (segment.mode == LinearMode::kInt8) {
    const int64_t blocks = source.columns / kQuantBlock;
    Int8Activations x = int8_;
    x.codes += task.first_token * x.code_stride;
    x.scales += task.first_token * x.block_stride;
    x.offsets += task.first_token * x.block_stride;
    if (source.rows <= kMaxDotTokens) {
      const std::byte* spread = segment.kernels->int8_spread == nullptr
                                    ? nullptr
                                    : spread_for(segment.kernels->int8_spread).bytes.data();
      segment.kernels->int8_dot(
          {rows, plane.row_stride, task.rows, blocks, x, task.tokens, bias, out, out_stride, spread});
      return;
    }
    auto* codes = reinterpret_cast<uint8_t*>(scratch(thread));
    auto* scales = reinterpret_cast<float*>(scratch(thread) + kernels_.tile_rows * source.columns);
    segment.kernels->int8_pack({rows, plane.row_stride, task.rows, blocks, codes, scales});
    kernels_.int8_tile({codes, scales, task.rows, blocks, x, task.tokens, bias, out, out_stride});
    return;
  }
  if (segment.mode == LinearMode::kBf16 && source.rows > kFewBf16Tokens) {
    auto* decoded = reinterpret_cast<uint16_t*>(scratch(thread));
    for (int64_t r = 0; r < task.rows; ++r)
      segment.kernels->decode_bf16(plane.row(task.first_row + r), source.columns,
                                   decoded + r * source.columns);
    kernels_.bf16_dot({decoded, source.columns, task.rows, source.columns,
                       bf16_.as<uint16_t>().data() + task.first_token * source.columns, source.columns,
                       task.tokens, bias, out, out_stride});
    return;
  }
  FloatDotArgs args{rows,
                    plane.row_stride,
                    task.rows,
                    source.columns,
                    source.data + task.first_token * source.stride,
                    source.stride,
                    task.tokens,
                    bias,
                    out,
                    out_stride};
  const bool is_f32 = weight.format == Format::plain(DType::kF32);
  if (is_f32 || (segment.kernels->float_dot != nullptr && source.rows <= kFewFloatTokens)) {
    segment.kernels->float_dot(args);
    return;
  }
  auto* decoded = reinterpret_cast<float*>(scratch(thread));
  const int64_t most = decoded_rows(source.columns, sizeof(float));
  for (int64_t start = 0; start < task.rows; start += most) {
    const int64_t count = std::min(most, task.rows - start);
    for (int64_t r = 0; r < count; ++r) {
      const int64_t row = task.first_row + start + r;
      if (segment.kernels->decode != nullptr)
        segment.kernels->decode(plane.row(row), source.columns, decoded + r * source.columns);
      else
        decode_row(weight, row, 0, source.columns, decoded + r * source.columns);
    }
    args.weights = reinterpret_cast<const std::byte*>(decoded);
    args.row_stride = source.columns * static_cast<int64_t>(sizeof(float));
    args.rows = count;
    args.bias = bias == nullptr ? nullptr : bias + start;
    args.out = out + start;
    kernels_.plain[static_cast<size_t>(DType::kF32)].float_dot(args);
  }
}

void CpuLinear::run(const CpuStep& step, size_t op) {
  const auto& linear = std::get<LinearOp>(step.plan.ops[op]);
  const PreparedLinear& prepared = ops_[op];
  const Source source{step.data(linear.input), step.stride(linear.input), step.rows(linear.input),
                      linear.input.width};
  if (source.rows == 0) return;
  quantise(step, prepared, source);
  tasks_.clear();
  for (const LinearSegment& segment : prepared.segments) add_tasks(segment, source, step.pool.threads());
  const auto body = [&](int64_t i, int thread) {
    run_task(step, tasks_[static_cast<size_t>(i)], source, linear.output, thread);
  };
  step.pool.run(static_cast<int64_t>(tasks_.size()), [&body](int64_t i, int thread) { body(i, thread); });
}

}  // namespace tessera::cpu
