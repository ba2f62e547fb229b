#include "ops/op_bench.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/isa.h"
#include "formats/format_info.h"

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
