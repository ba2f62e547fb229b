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
// Rows of a task whose pieces are decoded into scratch: 64 rows of a chunk are 256 KB.
constexpr int64_t kDecodedRows = 64;

void skip_rows(Int8Activations& x, int64_t rows) {
  x.codes += rows * x.code_stride;
  x.scales += rows * x.block_stride;
  x.offsets += 2 * rows * x.block_stride;
  x.sums += 2 * rows * x.block_stride;
}

// The planes of a grouped format from a row on.
GroupedPlanes planes_from(const Weight& weight, int64_t row) {
  GroupedPlanes grouped{weight.format, {}, {}};
  for (size_t i = 0; i < 2; ++i) {
    const Plane& plane = weight.planes[i + 1];
    if (plane.data == nullptr) continue;
    grouped.planes[i] = plane.row(row);
    grouped.strides[i] = plane.row_stride;
  }
  return grouped;
}

// Which part of K a piece [first, last) of `columns` is.
Accumulate part_of(int64_t first, int64_t last, int64_t columns) {
  if (first == 0) return last == columns ? Accumulate::kWhole : Accumulate::kFirst;
  return last == columns ? Accumulate::kLast : Accumulate::kMiddle;
}

// What unquantised 16-bit weights are multiplied with by default.
enum class SixteenBit : uint8_t { kFloat32, kBf16 };

// Where experts are chosen or a state is carried along, rounding activations to bfloat16 is not a small step: measured on the
// reference checkpoints it moves logits by up to 5e-3 (normalised squared error: another expert, or a normed output near zero),
// against below 2e-4 elsewhere. Such plans keep float32 activations for 16-bit weights.
SixteenBit sixteen_bit_activations(const Plan& plan) {
  for (const Op& op : plan.ops) {
    if (std::holds_alternative<RouteOp>(op) || std::holds_alternative<DeltaRuleOp>(op) ||
        std::holds_alternative<SelectiveScanOp>(op) || std::holds_alternative<HeadScanOp>(op) ||
        std::holds_alternative<WkvOp>(op))
      return SixteenBit::kFloat32;
  }
  return SixteenBit::kBf16;
}

LinearMode choose_mode(const KernelTable& kernels, const FormatKernels& format, const Weight& weight,
                       ActivationType activations, SixteenBit sixteen_bit) {
  if (activations == ActivationType::kExact) return LinearMode::kFloat;
  // A scale serves sixteen columns at least.
  const bool groups_fit = !weight.format.is_grouped() || weight.format.group % 16 == 0;
  if (format.int8_dot != nullptr && format.int8_pack != nullptr && weight.columns % kQuantBlock == 0 &&
      groups_fit)
    return LinearMode::kInt8;
  if (sixteen_bit == SixteenBit::kBf16 && format.decode_bf16 != nullptr && kernels.bf16_dot != nullptr)
    return LinearMode::kBf16;
  return LinearMode::kFloat;
}

void add_segment(PreparedLinear& linear, const Weight& weight, int64_t column, const float* bias,
                 const KernelTable& kernels, ActivationType activations, SixteenBit sixteen_bit) {
  LinearSegment segment;
  segment.weight = weight;
  segment.kernels = &kernels.format(weight.format);
  segment.mode = choose_mode(kernels, *segment.kernels, weight, activations, sixteen_bit);
  segment.column = column;
  segment.bias = bias;
  linear.int8 = linear.int8 || segment.mode == LinearMode::kInt8;
  linear.bf16 = linear.bf16 || segment.mode == LinearMode::kBf16;
  linear.segments.push_back(segment);
}

// What chooses experts or decides how much of a state or an output is kept: a small error there is a large one later, so that
// the rows which compute it never see quantised activations. A gate as wide as what it gates is an activation like others.
std::vector<Slice> deciding_slices(const Plan& plan) {
  std::vector<Slice> slices;
  for (const Op& op : plan.ops) {
    if (const auto* route = std::get_if<RouteOp>(&op)) {
      slices.push_back(route->logits);
    } else if (const auto* gate = std::get_if<SigmoidGateOp>(&op)) {
      if (gate->gate.width < gate->x.width) slices.push_back(gate->gate);
    } else if (const auto* delta = std::get_if<DeltaRuleOp>(&op)) {
      slices.insert(slices.end(), {delta->a, delta->b});
    } else if (const auto* scan = std::get_if<SelectiveScanOp>(&op)) {
      slices.insert(slices.end(), {scan->dt, scan->b, scan->c});
    } else if (const auto* heads = std::get_if<HeadScanOp>(&op)) {
      slices.push_back(heads->dt);
    } else if (const auto* mix = std::get_if<MixStreamsOp>(&op)) {
      slices.push_back(mix->coefficients);
    }
  }
  return slices;
}

struct Stretch {
  int64_t columns;  // from the given one on that are alike
  bool decides;
};
Stretch stretch_at(const std::vector<Slice>& deciding, const Slice& output, int64_t column) {
  const int64_t at = output.offset + column;
  int64_t end = output.offset + output.width;
  bool decides = false;
  for (const Slice& slice : deciding) {
    if (slice.value != output.value || slice.offset + slice.width <= at) continue;
    decides = decides || slice.offset <= at;
    end = std::min(end, slice.offset <= at ? slice.offset + slice.width : slice.offset);
  }
  return {end - at, decides};
}

// Tasks of one product at most, see add_tasks().
size_t most_tasks_of(const LinearNeeds& needs, const KernelTable& kernels, int threads) {
  const int64_t tile = std::min<int64_t>(kernels.tile_rows, 8);
  const int64_t segments = needs.segments;
  return static_cast<size_t>(needs.groups * segments * (needs.segment_rows / tile + 3) +
                             segments * (16 * threads + 16));
}

}  // namespace

void add_segments(PreparedLinear& linear, std::span<const Weight> parts, int64_t rows, int64_t column,
                  const float* bias, const KernelTable& kernels, ActivationType activations) {
  int64_t row = 0;
  for (const Weight& weight : parts) {
    if (row == rows) break;
    const int64_t count = std::min(weight.rows, rows - row);
    add_segment(linear, weight.slice_rows(0, count), column + row, bias == nullptr ? nullptr : bias + row,
                kernels, activations, SixteenBit::kFloat32);
    row += count;
  }
}

CpuLinear::CpuLinear(const Plan& plan, const BoundWeights& weights, const CompileOptions& options,
                     const KernelTable& kernels, int threads, std::span<const LinearNeeds> others)
    : kernels_(kernels) {
  int64_t most_rows = 0;  // of any op's input
  int64_t spread_rows = kMaxDotTokens;
  bool int8 = false;
  bool bf16 = false;
  size_t most_tasks = 0;
  for (const LinearNeeds& needs : others) {
    most_rows = std::max(most_rows, needs.rows);
    spread_rows = std::max(spread_rows, std::min(needs.rows, kMaxDotTokens * needs.groups));
    largest_columns_ = std::max(largest_columns_, needs.columns);
    int8 = int8 || needs.int8;
    bf16 = bf16 || needs.bf16;
    most_tasks = std::max(most_tasks, most_tasks_of(needs, kernels, threads));
  }
  const std::vector<Slice> deciding = deciding_slices(plan);
  const SixteenBit sixteen_bit = sixteen_bit_activations(plan);
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
          // Only the first part.rows rows of the slot.
          const int64_t last = row + std::min(weight.rows, part.rows - row);
          const int64_t before = row;
          while (row < last) {
            const Stretch stretch = stretch_at(deciding, linear->output, column + row);
            const int64_t count = std::min(stretch.columns, last - row);
            add_segment(prepared, weight.slice_rows(row - before, count), column + row,
                        bias == nullptr ? nullptr : bias + row, kernels,
                        stretch.decides ? ActivationType::kExact : options.activations, sixteen_bit);
            row += count;
            tasks += static_cast<size_t>(count / 4 + 8 * threads + 16);
          }
          largest_columns_ = std::max(largest_columns_, weight.columns);
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
    int8_offsets_ = Buffer(rows * static_cast<size_t>(blocks) * 2 * sizeof(int32_t));
    int8_sums_ = Buffer(rows * static_cast<size_t>(blocks) * 2 * sizeof(float));
    for (SpreadActivations& spread : spreads_)
      spread.bytes = Buffer(static_cast<size_t>(spread_rows * int8_spread_bytes(blocks)));
    int8_ = {reinterpret_cast<int8_t*>(int8_codes_.data()),
             padded,
             int8_scales_.as<float>().data(),
             int8_offsets_.as<int32_t>().data(),
             blocks,
             int8_sums_.as<float>().data()};
  }
  if (bf16) bf16_ = Buffer(rows * static_cast<size_t>(padded) * sizeof(uint16_t));
  int64_t per_thread =
      kDecodedRows * std::max(kFloatChunk * int64_t{sizeof(float)}, kBf16Chunk * int64_t{sizeof(uint16_t)});
  per_thread = std::max(
      per_thread, kernels.tile_rows * kTileBlocks * (kQuantBlock + 4 * static_cast<int64_t>(sizeof(float))));
  // Not a multiple of 4096: the threads' scratches would compete for the same sets of the cache.
  scratch_stride_ = static_cast<int64_t>(round_up(static_cast<uint64_t>(per_thread), 4096)) + 256;
  if (!plan.ops.empty()) scratch_ = Buffer(static_cast<size_t>(scratch_stride_ * threads));
}

uint64_t CpuLinear::scratch_bytes() const {
  uint64_t total = int8_codes_.size() + int8_scales_.size() + int8_offsets_.size() + int8_sums_.size() +
                   bf16_.size() + scratch_.size();
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

void CpuLinear::quantise(const CpuStep& step, std::span<const LinearGroup> groups, const Source& source) {
  bool int8 = false;
  bool bf16 = false;
  for (const LinearGroup& group : groups) {
    int8 = int8 || group.linear->int8;
    bf16 = bf16 || (group.linear->bf16 && group.rows > kFewBf16Tokens);
  }
  if (int8) {
    step.for_rows(source.rows, source.columns, [&](int64_t first, int64_t last) {
      kernels_.quantise_int8(source.data, source.stride, source.columns, int8_, first, last);
    });
    spread(groups, source);
  }
  if (bf16) {
    auto* out = bf16_.as<uint16_t>().data();
    step.for_rows(source.rows, source.columns, [&](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; ++row)
        kernels_.to_bf16(source.data + row * source.stride, source.columns, out + row * source.columns);
    });
  }
}

// For groups of few rows. Formats that share a spread function share its output.
void CpuLinear::spread(std::span<const LinearGroup> groups, const Source& source) {
  for (SpreadActivations& spread : spreads_) spread.made_by = nullptr;
  const int64_t blocks = source.columns / kQuantBlock;
  int64_t spread_row = 0;
  for (const LinearGroup& group : groups) {
    if (group.rows > kMaxDotTokens) continue;
    Int8Activations x = int8_;
    skip_rows(x, group.first_row);
    const std::vector<LinearSegment>& segments = group.linear->segments;
    for (size_t i = 0; i < segments.size(); ++i) {
      const SpreadFunction function = segments[i].kernels->int8_spread;
      if (segments[i].mode != LinearMode::kInt8 || function == nullptr) continue;
      bool made = false;
      for (size_t j = 0; j < i && !made; ++j)
        made = segments[j].mode == LinearMode::kInt8 && segments[j].kernels->int8_spread == function;
      if (made) continue;
      SpreadActivations& target = spread_for(function);
      target.made_by = function;
      function(x, group.rows, blocks, target.bytes.data() + spread_row * int8_spread_bytes(blocks));
    }
    spread_row += group.rows;
  }
}

void CpuLinear::add_tasks(const LinearSegment& segment, const LinearGroup& group, int64_t spread_row,
                          int64_t groups, int threads) {
  const int64_t rows = segment.weight.rows;
  int64_t tile = 0;
  bool re_laid = true;
  switch (segment.mode) {
    case LinearMode::kInt8:
      re_laid = group.rows > kMaxDotTokens;
      tile = kernels_.tile_rows;
      break;
    case LinearMode::kBf16:
      re_laid = group.rows > kFewBf16Tokens;
      tile = kDecodedRows;
      break;
    case LinearMode::kFloat:
      re_laid = group.rows > kFewFloatTokens || segment.kernels->float_dot == nullptr;
      tile = kDecodedRows;
      break;
  }
  if (!re_laid) {
    const int64_t pieces = ceil_divide(8 * threads, groups);
    tile = std::max<int64_t>(8, ceil_divide(rows, pieces * 8) * 8);
  }
  // Few tiles and many tokens: the tokens are split as well, so that no thread is idle.
  const int64_t tiles = ceil_divide(rows, tile) * groups;
  int64_t token_chunk = group.rows;
  if (threads > 1 && re_laid && tiles < 4 * threads)
    token_chunk =
        std::max<int64_t>(48, ceil_divide(ceil_divide(group.rows, ceil_divide(4 * threads, tiles)), 12) * 12);
  for (int64_t row = 0; row < rows; row += tile)
    for (int64_t token = 0; token < group.rows; token += token_chunk)
      tasks_.push_back({&segment, row, std::min(tile, rows - row), group.first_row + token,
                        std::min(token_chunk, group.rows - token), group.rows, spread_row});
}

void CpuLinear::run_task(const Task& task, const Source& source, const LinearTarget& target, int thread) {
  const LinearSegment& segment = *task.segment;
  const Weight& weight = segment.weight;
  const Plane& plane = weight.planes[0];
  const std::byte* rows = plane.row(task.first_row);
  const float* bias = segment.bias == nullptr ? nullptr : segment.bias + task.first_row;
  const int64_t out_stride = target.stride;
  float* out = target.data + task.first_token * out_stride + segment.column + task.first_row;

  if (segment.mode == LinearMode::kInt8) {
    const int64_t blocks = source.columns / kQuantBlock;
    Int8Activations x = int8_;
    skip_rows(x, task.first_token);
    if (task.group_rows <= kMaxDotTokens) {
      const std::byte* spread = segment.kernels->int8_spread == nullptr
                                    ? nullptr
                                    : spread_for(segment.kernels->int8_spread).bytes.data() +
                                          task.spread_row * int8_spread_bytes(blocks);
      segment.kernels->int8_dot({rows, plane.row_stride, task.rows, blocks, x, task.tokens, bias, out,
                                 out_stride, spread, planes_from(weight, task.first_row)});
      return;
    }
    auto* codes = reinterpret_cast<uint8_t*>(scratch(thread));
    const int64_t tile_values = kernels_.tile_rows * kTileBlocks;
    auto* scales = reinterpret_cast<float*>(scratch(thread) + tile_values * kQuantBlock);
    const bool halves = segment.kernels->int8_halves;
    float* mins = segment.kernels->int8_mins ? scales + 2 * tile_values : nullptr;
    const GroupedPlanes grouped = planes_from(weight, task.first_row);
    for (int64_t first = 0; first < blocks; first += kTileBlocks) {
      const int64_t count = std::min(kTileBlocks, blocks - first);
      segment.kernels->int8_pack(
          {rows, plane.row_stride, task.rows, first, count, blocks, codes, scales, mins, grouped});
      Int8Activations piece = x;
      piece.codes += first * kQuantBlock;
      piece.scales += first;
      piece.offsets += 2 * first;
      piece.sums += 2 * first;
      const Int8TileArgs args{
          codes,       scales, task.rows, count,      piece,
          task.tokens, bias,   out,       out_stride, part_of(first, first + count, blocks),
          mins};
      halves ? kernels_.int8_tile_halves(args) : kernels_.int8_tile(args);
    }
    return;
  }
  if (segment.mode == LinearMode::kBf16 && task.group_rows > kFewBf16Tokens) {
    auto* decoded = reinterpret_cast<uint16_t*>(scratch(thread));
    const auto* x = bf16_.as<uint16_t>().data() + task.first_token * source.columns;
    for (int64_t first = 0; first < source.columns; first += kBf16Chunk) {
      const int64_t count = std::min(kBf16Chunk, source.columns - first);
      const int64_t skip = format_row_bytes(weight.format, first);
      for (int64_t r = 0; r < task.rows; ++r)
        segment.kernels->decode_bf16(plane.row(task.first_row + r) + skip, count, decoded + r * count);
      kernels_.bf16_dot({decoded, count, task.rows, count, x + first, source.columns, task.tokens, bias, out,
                         out_stride, part_of(first, first + count, source.columns)});
    }
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
  if (is_f32 || (segment.kernels->float_dot != nullptr && task.group_rows <= kFewFloatTokens)) {
    segment.kernels->float_dot(args);
    return;
  }
  auto* decoded = reinterpret_cast<float*>(scratch(thread));
  const float* x = args.x;
  for (int64_t first = 0; first < source.columns; first += kFloatChunk) {
    const int64_t count = std::min(kFloatChunk, source.columns - first);
    args.accumulate = part_of(first, first + count, source.columns);
    args.x = x + first;
    args.columns = count;
    args.weights = reinterpret_cast<const std::byte*>(decoded);
    args.row_stride = count * static_cast<int64_t>(sizeof(float));
    for (int64_t start = 0; start < task.rows; start += kDecodedRows) {
      args.rows = std::min(kDecodedRows, task.rows - start);
      args.bias = bias == nullptr ? nullptr : bias + start;
      args.out = out + start;
      for (int64_t r = 0; r < args.rows; ++r) {
        const int64_t row = task.first_row + start + r;
        if (segment.kernels->decode != nullptr)
          segment.kernels->decode(plane.row(row) + format_row_bytes(weight.format, first), count,
                                  decoded + r * count);
        else
          decode_row(weight, row, first, count, decoded + r * count);
      }
      kernels_.plain[static_cast<size_t>(DType::kF32)].float_dot(args);
    }
  }
}

void CpuLinear::run(const CpuStep& step, size_t op) {
  const auto& linear = std::get<LinearOp>(step.plan.ops[op]);
  const LinearSource source{step.data(linear.input), step.stride(linear.input), step.rows(linear.input),
                            linear.input.width};
  const LinearGroup group{&ops_[op], 0, source.rows};
  multiply(step, source, std::span(&group, 1), {step.data(linear.output), step.stride(linear.output)});
}

void CpuLinear::multiply(const CpuStep& step, const LinearSource& source, std::span<const LinearGroup> groups,
                         const LinearTarget& target) {
  if (source.rows == 0) return;
  quantise(step, groups, source);
  tasks_.clear();
  int64_t spread_row = 0;
  for (const LinearGroup& group : groups) {
    for (const LinearSegment& segment : group.linear->segments)
      add_tasks(segment, group, spread_row, static_cast<int64_t>(groups.size()), step.pool.threads());
    if (group.rows <= kMaxDotTokens) spread_row += group.rows;
  }
  const auto body = [&](int64_t i, int thread) {
    run_task(tasks_[static_cast<size_t>(i)], source, target, thread);
  };
  step.pool.run(static_cast<int64_t>(tasks_.size()), [&body](int64_t i, int thread) { body(i, thread); });
}

}  // namespace tessera::cpu
