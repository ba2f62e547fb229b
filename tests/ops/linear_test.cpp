// LinearOp: every format x odd shapes x tokens x instruction set x threads against the reference.
#include <fmt/format.h>

#include <array>
#include <cctype>

#include "formats/format_info.h"
#include "ops/op_bench.h"

namespace tessera::ops_test {
namespace {

// One op with parts of 1, 3, 17 and 128 rows, with and without bias, one of every second row.
void build(OpBench& bench, const Format& format, int64_t columns) {
  const ValueId x = bench.input(columns + 8);
  LinearOp op;
  op.input = {x, 5, columns};  // neither aligned nor the whole row
  int64_t width = 0;
  for (const int64_t rows : {1, 3, 17, 128}) {
    LinearPart part;
    part.weight = bench.matrix(format, rows, columns, rows == 17 ? 2 : 1);
    part.rows = rows;
    if (rows != 3) part.bias = bench.vector(rows);
    op.parts.push_back(part);
    width += rows;
  }
  const ValueId y = bench.value("y", width + 3);
  op.output = {y, 2, width};
  bench.add(op);
  bench.output(y);
}

std::vector<int64_t> column_counts(const Format& format) {
  const int64_t block = format_block(format);
  if (format.is_grouped()) {
    const int64_t step = format.group == 0 ? 32 : format.group;
    // Up to more than a super-block of 256; the large steps are whole ones anyway.
    if (step >= 128) return {step, 3 * step};
    return {step, 3 * step, 9 * step};
  }
  if (block == 1) return {1, 7, 45, 160};
  if (block == 32) return {32, 96, 224, 544};
  return {block, 3 * block};
}

class LinearFormats : public ::testing::TestWithParam<Format> {};

TEST_P(LinearFormats, EqualTheReference) {
  const Format format = GetParam();
  Comparisons comparisons;
  const auto reference = reference_backend();
  uint64_t seed = 1;
  for (const int64_t columns : column_counts(format)) {
    OpBench bench(seed++);
    build(bench, format, columns);
    for (const int64_t tokens : {1, 2, 4, 7, 33, 130}) {
      const std::vector<float> x = bench.floats(tokens * (columns + 8), -2, 2);
      const OpOutputs expected = bench.run(*reference, exact_options(1, tokens), x);
      for (const cpu::KernelTable& kernels : all_kernels()) {
        const auto backend = cpu_backend(kernels);
        std::array<OpOutputs, 2> first;
        for (const int threads : {1, 2, 3}) {
          for (const ActivationType activations : {ActivationType::kExact, ActivationType::kDefault}) {
            // Formats without a faster way compute the same thing either way.
            const cpu::FormatKernels& fast = kernels.format(format);
            if (activations == ActivationType::kDefault && fast.int8_dot == nullptr &&
                fast.decode_bf16 == nullptr)
              continue;
            CompileOptions options = exact_options(threads, tokens);
            options.activations = activations;
            const OpOutputs found = bench.run(*backend, options, x);
            const bool exact = activations == ActivationType::kExact;
            const std::string what =
                fmt::format("{} {} columns {} tokens {} threads {} {}", format_name(format), columns, tokens,
                            threads, kernels.name, exact ? "exact" : "default");
            comparisons.close(found, expected, exact ? 1e-11 : 5e-4, what);
            OpOutputs& one = first[exact ? 0 : 1];
            if (threads == 1)
              one = found;
            else
              comparisons.equal(found, one, what + " against one thread");
          }
        }
      }
    }
  }
}

// With exact activations a token gets the same bits whatever is computed with it.
TEST_P(LinearFormats, TokensDoNotDependOnTheBatch) {
  const Format format = GetParam();
  const int64_t columns = column_counts(format).back();
  Comparisons comparisons;
  OpBench bench(7);
  build(bench, format, columns);
  const int64_t width = columns + 8;
  for (const int64_t tokens : {2, 7, 33}) {
    const std::vector<float> x = bench.floats(tokens * width, -2, 2);
    for (const cpu::KernelTable& kernels : all_kernels()) {
      const auto backend = cpu_backend(kernels);
      const OpOutputs together = bench.run(*backend, exact_options(2, tokens), x);
      ASSERT_EQ(together.outputs.size(), 1u);
      OpOutputs alone;
      alone.outputs.emplace_back();
      for (int64_t t = 0; t < tokens; ++t) {
        const OpOutputs one =
            bench.run(*backend, exact_options(2, 1),
                      std::span(x).subspan(static_cast<size_t>(t * width), static_cast<size_t>(width)));
        ASSERT_EQ(one.outputs.size(), 1u);
        alone.outputs[0].insert(alone.outputs[0].end(), one.outputs[0].begin(), one.outputs[0].end());
      }
      // Columns 0, 1 and the last are not written; both runs hold zeros there.
      comparisons.equal(alone, together,
                        fmt::format("{} tokens {} {}", format_name(format), tokens, kernels.name));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, LinearFormats, ::testing::ValuesIn(matrix_formats()),
                         [](const ::testing::TestParamInfo<Format>& tested) {
                           std::string name = format_name(tested.param);
                           for (char& c : name)
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           return name;
                         });

// Parts and joined weights of different formats in one op, more outputs than tiles, several ops in a row.
TEST(Linear, MixedFormatsInOneOp) {
  Comparisons comparisons;
  const auto reference = reference_backend();
  OpBench bench(11);
  const int64_t columns = 512;
  const ValueId x = bench.input(columns);
  const std::vector<Format> formats{Format::block(FormatKind::kQ8_0), Format::plain(DType::kF32),
                                    Format::block(FormatKind::kQ4_0), Format::plain(DType::kBF16),
                                    Format::block(FormatKind::kQ6K)};
  LinearOp op;
  op.input = {x, 0, columns};
  LinearPart joined;
  joined.weight = bench.joined(formats, 37, columns);
  joined.rows = 5 * 37 - 10;  // the last rows are not wanted
  joined.bias = bench.vector(5 * 37);
  LinearPart other;
  other.weight = bench.matrix(Format::block(FormatKind::kQ4_0), 512, columns);
  other.rows = 512;
  op.parts = {joined, other};
  const ValueId y = bench.value("y", joined.rows + other.rows);
  op.output = {y, 0, joined.rows + other.rows};
  bench.add(op);
  LinearOp second;
  second.input = {y, joined.rows, 512};
  LinearPart part;
  part.weight = bench.matrix(Format::block(FormatKind::kQ8_0), 65, 512);
  part.rows = 65;
  second.parts = {part};
  const ValueId z = bench.value("z", 65);
  second.output = {z, 0, 65};
  bench.add(second);
  bench.output(y);
  bench.output(z);
  for (const int64_t tokens : {1, 3, 5, 100}) {
    const std::vector<float> embeddings = bench.floats(tokens * columns);
    const OpOutputs expected = bench.run(*reference, exact_options(1, tokens), embeddings);
    for (const cpu::KernelTable& kernels : all_kernels()) {
      for (const int threads : {1, 2}) {
        CompileOptions options = exact_options(threads, tokens);
        const auto backend = cpu_backend(kernels);
        comparisons.close(bench.run(*backend, options, embeddings), expected, 1e-11, kernels.name);
        options.activations = ActivationType::kDefault;
        comparisons.close(bench.run(*backend, options, embeddings), expected, 1e-3, kernels.name);
      }
    }
  }
}

// Wide rows before and after narrow ones: scratch is shared by all ops.
TEST(Linear, WidthsOfEverySize) {
  Comparisons comparisons;
  const auto reference = reference_backend();
  for (const Format& format :
       {Format::block(FormatKind::kQ8_0), Format::plain(DType::kF16), Format::block(FormatKind::kQ5_0)}) {
    OpBench bench(12);
    const ValueId x = bench.input(24576);
    for (const int64_t columns : {32, 1024, 2048, 24576, 5632}) {
      LinearOp op;
      op.input = {x, 0, columns};
      LinearPart part;
      part.weight = bench.matrix(format, 70, columns);
      part.rows = 70;
      op.parts = {part};
      const ValueId y = bench.value("y", 70);
      op.output = {y, 0, 70};
      bench.add(op);
      bench.output(y);
    }
    const std::vector<float> embeddings = bench.floats(12 * 24576);
    const OpOutputs expected = bench.run(*reference, exact_options(1, 12), embeddings);
    for (const cpu::KernelTable& kernels : all_kernels()) {
      CompileOptions options = exact_options(2, 12);
      comparisons.close(bench.run(*cpu_backend(kernels), options, embeddings), expected, 1e-11, kernels.name);
      options.activations = ActivationType::kDefault;
      comparisons.close(bench.run(*cpu_backend(kernels), options, embeddings), expected, 1e-3, kernels.name);
    }
  }
}

// Activations that 8 bits hold badly: zero blocks, one outlier, tiny values.
TEST(Linear, UnusualActivations) {
  Comparisons comparisons;
  const auto reference = reference_backend();
  const int64_t columns = 256;
  for (const FormatKind kind : {FormatKind::kQ8_0, FormatKind::kQ4_0}) {
    OpBench bench(13);
    build(bench, Format::block(kind), columns);
    for (const int64_t tokens : {1, 9}) {
      std::vector<float> x = bench.floats(tokens * (columns + 8));
      for (size_t i = 0; i < x.size(); ++i) {
        if (i % 256 < 64) x[i] = 0;
        if (i % 97 == 0) x[i] = 50;
        if (i % 256 > 200) x[i] *= 1e-38f;
      }
      const OpOutputs expected = bench.run(*reference, exact_options(1, tokens), x);
      for (const cpu::KernelTable& kernels : all_kernels()) {
        CompileOptions options = exact_options(2, tokens);
        options.activations = ActivationType::kDefault;
        comparisons.close(bench.run(*cpu_backend(kernels), options, x), expected, 1e-3, kernels.name);
      }
    }
  }
}

}  // namespace
}  // namespace tessera::ops_test
