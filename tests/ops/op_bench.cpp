#include "ops/op_bench.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/isa.h"
#include "formats/format_info.h"
#include "formats/grouped.h"

namespace tessera::ops_test {

double normalised_error(std::span<const float> found, std::span<const float> expected) {
  if (found.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double difference = 0;
  double total = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    if (!std::isfinite(found[i])) return std::numeric_limits<double>::infinity();
    const double d = static_cast<double>(found[i]) - expected[i];
    difference += d * d;
    total += static_cast<double>(expected[i]) * expected[i];
  }
  return difference == 0 ? 0 : difference / std::max(total, 1e-30);
}

ValueId OpBench::input(int64_t width) {
  plan_.hidden_size = width;
  const ValueId id = value("input", width);
  EmbedOp embed;
  embed.table = matrix(Format::plain(DType::kF32), 1, width);
  embed.output = {id, 0, width};
  add(embed);
  return id;
}

ValueId OpBench::value(const std::string& name, int64_t width, RowSymbol rows) {
  Value value;
  value.name = name;
  value.rows = rows;
  value.width = width;
  int64_t& arena = rows == RowSymbol::kTokens ? plan_.token_arena : plan_.output_arena;
  value.offset = arena;
  arena += width;
  plan_.values.push_back(value);
  return static_cast<ValueId>(plan_.values.size()) - 1;
}

std::vector<float> OpBench::floats(int64_t count, float low, float high) {
  std::uniform_real_distribution<float> draw(low, high);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& v : values) v = draw(random_);
  return values;
}

// Block formats: random bytes, drawn again until the block decodes to moderate values. So every bit pattern that a file may hold
// is met, not only those our encoders write.
Weight OpBench::random_matrix(const Format& format, int64_t rows, int64_t columns, int64_t row_step) {
  if (format.is_grouped()) return random_grouped(format, rows, columns, row_step);
  const int64_t row_bytes = format_row_bytes(format, columns);
  Buffer buffer(static_cast<size_t>(row_bytes * rows * row_step));
  std::byte* data = buffer.data();
  const int64_t block = format_block(format);
  const int64_t block_bytes = format_row_bytes(format, block);
  std::vector<float> decoded(static_cast<size_t>(block));
  std::normal_distribution<float> normal(0, 0.5f);
  for (int64_t at = 0; at < row_bytes * rows * row_step; at += block_bytes) {
    if (format == Format::plain(DType::kF32)) {
      const float v = normal(random_);
      std::memcpy(data + at, &v, 4);
      continue;
    }
    Weight one{format, 1, block, {}};
    one.planes[0] = {data + at, block_bytes};
    bool good = false;
    while (!good) {
      for (int64_t i = 0; i < block_bytes; ++i) data[at + i] = static_cast<std::byte>(random_() & 255);
      decode_row(one, 0, 0, block, decoded.data());
      good = true;
      for (const float v : decoded)
        good = good && std::isfinite(v) && std::fabs(v) < 16 && (v == 0 || std::fabs(v) > 1e-6f);
    }
  }
  Weight weight{format, rows * row_step, columns, {}};
  weight.planes[0] = {data, row_bytes};
  weights_.own(std::move(buffer));
  return weight.slice_rows(0, rows, row_step);
}

// Grouped formats: any codes (but NaN), scales that keep the values moderate.
Weight OpBench::random_grouped(const Format& format, int64_t rows, int64_t columns, int64_t row_step) {
  const int64_t all = rows * row_step;
  Weight weight{format, all, columns, {}};
  const auto plane = [&](size_t i, int64_t stride, int64_t count) {
    Buffer buffer(static_cast<size_t>(stride * count));
    weight.planes[i] = {buffer.data(), count > 1 ? stride : 0};
    std::byte* data = buffer.data();
    weights_.own(std::move(buffer));
    return data;
  };
  const int64_t row_bytes = format_row_bytes(format, columns);
  std::byte* codes = plane(0, row_bytes, all);
  for (int64_t i = 0; i < row_bytes * all; ++i) {
    auto code = static_cast<uint8_t>(random_() & 255);
    if (format.kind == FormatKind::kFloat8Group && (code & 127) == 127) code = 0x38;
    codes[i] = std::byte{code};
  }
  const int64_t groups = group_count(format, columns);
  const bool float8 = format.kind == FormatKind::kFloat8Group;
  const std::vector<float> scales = floats(groups * all, float8 ? 0.001f : 0.01f, float8 ? 0.01f : 0.1f);
  if (format.kind == FormatKind::kIndexGroup) {
    std::byte* pairs = plane(1, groups * 8, all);
    for (int64_t i = 0; i < groups * all; ++i) {
      store(pairs + 8 * i, scales[static_cast<size_t>(i)]);
      store(pairs + 8 * i + 4, static_cast<float>(random_() & ((1u << format.bits) - 1)));
    }
    std::byte* list = plane(2, columns * 4, 1);
    for (int64_t k = 0; k < columns; ++k)
      store(list + 4 * k, static_cast<int32_t>(random_() % static_cast<uint64_t>(groups)));
    return weight.slice_rows(0, rows, row_step);
  }
  const auto fill_scales = [&](size_t i, float sign) {
    const int64_t size = dtype_size(format.element);
    std::byte* data = plane(i, groups * size, all);
    for (int64_t g = 0; g < groups * all; ++g) {
      const float scale = sign * scales[static_cast<size_t>(g)];
      if (format.element == DType::kF8E8M0)
        store(data + g, static_cast<uint8_t>(float8 ? 117 + g % 3 : 121 + g % 4));
      else if (format.element == DType::kF8E4M3)
        store(data + g, static_cast<uint8_t>(8 + g % 24));
      else if (format.element == DType::kF16)
        store(data + 2 * g, to_half(scale).bits);
      else if (format.element == DType::kBF16)
        store(data + 2 * g, to_bfloat16(scale).bits);
      else
        store(data + 4 * g, scale);
    }
  };
  fill_scales(1, 1);
  if (format.kind == FormatKind::kMlxAffine) fill_scales(2, -5);
  if (format.kind == FormatKind::kZeroGroup) {
    std::byte* zeros = plane(2, groups * 2, all);
    for (int64_t g = 0; g < groups * all; ++g)
      store(zeros + 2 * g, static_cast<uint16_t>(random_() % ((1u << format.bits) + 1)));
  }
  return weight.slice_rows(0, rows, row_step);
}

std::vector<Format> matrix_formats() {
  std::vector<Format> formats{Format::plain(DType::kF32), Format::plain(DType::kF16),
                              Format::plain(DType::kBF16)};
  for (const FormatInfo& info : format_table())
    if (info.decode != nullptr) formats.push_back(Format::block(info.kind));
  for (const int bits : {2, 3, 4, 5, 6, 8})
    formats.push_back(Format::grouped(FormatKind::kMlxAffine, DType::kBF16, bits, 64));
  const auto add = [&](FormatKind kind, DType scales, int bits, int64_t group) {
    formats.push_back(Format::grouped(kind, scales, bits, group));
  };
  add(FormatKind::kMlxAffine, DType::kF16, 4, 32);
  add(FormatKind::kMlxAffine, DType::kF32, 4, 128);
  add(FormatKind::kMlcGroup, DType::kF16, 4, 32);
  add(FormatKind::kOffsetGroup, DType::kBF16, 4, 128);
  add(FormatKind::kOffsetGroup, DType::kF16, 8, 0);
  add(FormatKind::kZeroGroup, DType::kF16, 4, 32);
  add(FormatKind::kZeroGroup, DType::kF16, 8, 128);
  add(FormatKind::kZeroGroup, DType::kF16, 3, 8);
  add(FormatKind::kIndexGroup, DType::kF32, 4, 32);
  add(FormatKind::kInt8Group, DType::kBF16, 8, 0);
  add(FormatKind::kFloat8Group, DType::kF32, 8, 128);
  add(FormatKind::kFloat8Group, DType::kBF16, 8, 0);
  add(FormatKind::kFloat8Group, DType::kF8E8M0, 8, 32);
  add(FormatKind::kFloat4Group, DType::kF8E8M0, 4, 32);
  add(FormatKind::kFloat4Group, DType::kF8E4M3, 4, 16);
  return formats;
}

WeightId OpBench::matrix(const Format& format, int64_t rows, int64_t columns, int64_t row_step) {
  BoundSlot slot;
  slot.slot.name = fmt::format("matrix.{}", weights_.slots().size());
  slot.slot.shape = Shape({rows, columns});
  slot.parts.push_back(random_matrix(format, rows, columns, row_step));
  return weights_.add(std::move(slot));
}

WeightId OpBench::joined(const std::vector<Format>& formats, int64_t rows_each, int64_t columns) {
  BoundSlot slot;
  slot.slot.name = fmt::format("joined.{}", weights_.slots().size());
  slot.slot.shape = Shape({rows_each * static_cast<int64_t>(formats.size()), columns});
  for (const Format& format : formats) slot.parts.push_back(random_matrix(format, rows_each, columns, 1));
  return weights_.add(std::move(slot));
}

WeightId OpBench::experts(const Format& format, int64_t experts, int64_t rows, int64_t columns) {
  BoundSlot slot;
  slot.slot.name = fmt::format("experts.{}", weights_.slots().size());
  slot.slot.shape = Shape({experts, rows, columns});
  const Weight all = random_matrix(format, experts * rows, columns, 1);
  for (int64_t e = 0; e < experts; ++e) slot.parts.push_back(all.slice_rows(e * rows, rows));
  return weights_.add(std::move(slot));
}

WeightId OpBench::vector(int64_t size, float low, float high) {
  BoundSlot slot;
  slot.slot.name = fmt::format("vector.{}", weights_.slots().size());
  slot.slot.role = SlotRole::kVector;
  slot.slot.shape = Shape({size});
  slot.values = floats(size, low, high);
  return weights_.add(std::move(slot));
}

void OpBench::output(ValueId id) {
  plan_.logits = id;
  plan_.hidden.push_back({plan_.values[static_cast<size_t>(id)].name, id});
}

OpOutputs OpBench::run(Backend& backend, const CompileOptions& options, std::span<const float> embeddings,
                       std::span<const int32_t> output_rows) const {
  OpOutputs run;
  auto executable = backend.compile(plan_, weights_, options);
  if (!executable) {
    ADD_FAILURE() << executable.error().message;
    return run;
  }
  const auto tokens = static_cast<int32_t>(embeddings.size() / static_cast<size_t>(plan_.hidden_size));
  std::vector<int32_t> positions(static_cast<size_t>(tokens));
  for (int32_t i = 0; i < tokens; ++i) positions[static_cast<size_t>(i)] = i;
  const std::vector<int32_t> offsets{0, tokens};
  const std::vector<int32_t> past{0};
  const std::vector<int32_t> lengths{tokens};
  StepInput input;
  input.embeddings = embeddings;
  input.positions = positions;
  input.sequence_offsets = offsets;
  input.past = past;
  input.rope_lengths = lengths;
  input.output_rows = output_rows;
  const auto ticket = (*executable)->submit(input);
  if (!ticket) {
    ADD_FAILURE() << ticket.error().message;
    return run;
  }
  const auto output = (*executable)->wait(*ticket);
  if (!output) {
    ADD_FAILURE() << output.error().message;
    return run;
  }
  for (const auto& [name, values] : output->hidden) run.outputs.emplace_back(values.begin(), values.end());
  return run;
}

const std::vector<cpu::KernelTable>& all_kernels() {
  return cpu::available_kernels();
}

std::unique_ptr<Backend> cpu_backend(const cpu::KernelTable& kernels) {
  return make_cpu_backend(kernels);
}

std::unique_ptr<Backend> reference_backend() {
  auto backend = make_backend("reference");
  return backend ? std::move(*backend) : nullptr;
}

CompileOptions exact_options(int threads, int64_t tokens) {
  CompileOptions options;
  options.activations = ActivationType::kExact;
  options.state = StateType::kF32;
  options.threads = threads;
  options.max_tokens = tokens;
  options.max_outputs = tokens;
  return options;
}

void Comparisons::close(const OpOutputs& found, const OpOutputs& expected, double bound,
                        const std::string& what) {
  ASSERT_EQ(found.outputs.size(), expected.outputs.size()) << what;
  for (size_t i = 0; i < found.outputs.size(); ++i) {
    EXPECT_FALSE(expected.outputs[i].empty()) << what;
    EXPECT_LT(normalised_error(found.outputs[i], expected.outputs[i]), bound) << what << ", output " << i;
    ++count_;
  }
}

void Comparisons::equal(const OpOutputs& found, const OpOutputs& expected, const std::string& what) {
  ASSERT_EQ(found.outputs.size(), expected.outputs.size()) << what;
  for (size_t i = 0; i < found.outputs.size(); ++i) {
    ASSERT_EQ(found.outputs[i].size(), expected.outputs[i].size()) << what;
    EXPECT_EQ(std::memcmp(found.outputs[i].data(), expected.outputs[i].data(),
                          found.outputs[i].size() * sizeof(float)),
              0)
        << what << ", output " << i;
    ++count_;
  }
}

}  // namespace tessera::ops_test
