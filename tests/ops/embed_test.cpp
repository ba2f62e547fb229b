// Embedding rows gathered from tables of every format, bit for bit, and the choice of an instruction set by name.
#include <fmt/format.h>

#include <cstdlib>

#include "backend/cpu/cpu_backend.h"
#include "formats/format_info.h"
#include "ops/op_bench.h"

namespace tessera::ops_test {
namespace {

OpOutputs run_tokens(Backend& backend, const Plan& plan, const BoundWeights& weights,
                     std::span<const int32_t> tokens, int threads) {
  OpOutputs run;
  auto executable =
      backend.compile(plan, weights, exact_options(threads, static_cast<int64_t>(tokens.size())));
  EXPECT_TRUE(executable);
  const std::vector<int32_t> positions(tokens.size());
  const std::vector<int32_t> offsets{0, static_cast<int32_t>(tokens.size())};
  const std::vector<int32_t> zero{0};
  StepInput input;
  input.tokens = tokens;
  input.positions = positions;
  input.sequence_offsets = offsets;
  input.past = zero;
  input.rope_lengths = zero;
  const auto ticket = (*executable)->submit(input);
  EXPECT_TRUE(ticket) << (ticket ? "" : ticket.error().message);
  if (!ticket) return run;
  const auto output = (*executable)->wait(*ticket);
  EXPECT_TRUE(output);
  for (const auto& [name, values] : output->hidden) run.outputs.emplace_back(values.begin(), values.end());
  return run;
}

TEST(Embed, EveryFormatBitForBit) {
  Comparisons comparisons;
  const auto reference = reference_backend();
  for (const Format& format : matrix_formats()) {
    for (const float scale : {1.0f, 45.25f}) {
      OpBench bench(21);
      const int64_t width = format.is_plain() ? 77 : 512;
      const ValueId x = bench.value("x", width + 1);
      bench.plan().hidden_size = width;
      bench.plan().vocabulary = 36;
      EmbedOp op;
      op.table = bench.joined({format, format, format}, 12, width);
      op.scale = scale;
      op.output = {x, 1, width};
      bench.add(op);
      bench.output(x);
      for (const size_t count : {size_t{1}, size_t{70}}) {
        std::vector<int32_t> tokens(count);
        for (int32_t& token : tokens) token = static_cast<int32_t>(bench.random()() % 36);
        const OpOutputs expected = run_tokens(*reference, bench.plan(), bench.weights(), tokens, 1);
        for (const cpu::KernelTable& kernels : all_kernels())
          for (const int threads : {1, 2})
            comparisons.equal(
                run_tokens(*cpu_backend(kernels), bench.plan(), bench.weights(), tokens, threads), expected,
                fmt::format("{} {}", format_name(format), kernels.name));
      }
    }
  }
}

TEST(InstructionSets, AreChosenByName) {
  int checked = 0;
  const char* before = std::getenv("TESSERA_ISA");
  const std::string kept = before == nullptr ? "" : before;
  for (const cpu::KernelTable& kernels : all_kernels()) {
    ::setenv("TESSERA_ISA", kernels.name, 1);
    auto backend = make_cpu_backend();
    ASSERT_TRUE(backend);
    EXPECT_NE((*backend)->description().find(kernels.description), std::string::npos)
        << (*backend)->description();
    ++checked;
  }
  EXPECT_GT(checked, 0);
  ::setenv("TESSERA_ISA", "mmx", 1);
  const auto unknown = make_backend("cpu");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("mmx"), std::string::npos);
  EXPECT_NE(unknown.error().message.find("portable"), std::string::npos);
  if (before == nullptr)
    ::unsetenv("TESSERA_ISA");
  else
    ::setenv("TESSERA_ISA", kept.c_str(), 1);
}

}  // namespace
}  // namespace tessera::ops_test
