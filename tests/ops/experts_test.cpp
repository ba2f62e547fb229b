// Routing and experts against the reference: every score, groups, biases; expert formats, sizes and numbers of tokens, so that
// experts meet none, few and many of them; batches.
#include <fmt/format.h>

#include <cmath>

#include "formats/format_info.h"
#include "ops/op_bench.h"

namespace tessera::ops_test {
namespace {

void compare(OpBench& bench, Comparisons& comparisons, double bound, const std::string& what,
             const std::vector<int64_t>& token_counts, ActivationType activations = ActivationType::kExact) {
  const auto reference = reference_backend();
  for (const int64_t tokens : token_counts) {
    const std::vector<float> x = bench.floats(tokens * bench.plan().hidden_size, -2, 2);
    const OpOutputs expected = bench.run(*reference, exact_options(1, tokens), x);
    for (const cpu::KernelTable& kernels : all_kernels()) {
      const auto backend = cpu_backend(kernels);
      OpOutputs one;
      for (const int threads : {1, 2, 3}) {
        const std::string name =
            fmt::format("{} tokens {} threads {} {}", what, tokens, threads, kernels.name);
        CompileOptions options = exact_options(threads, tokens);
        options.activations = activations;
        const OpOutputs found = bench.run(*backend, options, x);
        comparisons.close(found, expected, bound, name);
        if (threads == 1)
          one = found;
        else
          comparisons.equal(found, one, name);
      }
    }
  }
}

TEST(Route, ScoresGroupsAndBiases) {
  Comparisons comparisons;
  for (const RouterScore score :
       {RouterScore::kSoftmax, RouterScore::kTopKSoftmax, RouterScore::kSigmoid, RouterScore::kSparsemixer}) {
    for (const auto& [experts, top_k, groups] :
         {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1}, {5, 2, 1}, {24, 6, 4}, {128, 8, 8}}) {
      for (const bool extras : {false, true}) {
        for (const GroupScore group_score : {GroupScore::kMax, GroupScore::kTopTwoSum}) {
          if (score == RouterScore::kSparsemixer && (extras || groups > 1)) continue;
          OpBench bench(static_cast<uint64_t>(experts + top_k));
          const ValueId x = bench.input(experts + 1);
          const ValueId y = bench.value("y", 2 * top_k);
          RouteOp op;
          op.logits = {x, 1, experts};
          op.output = {y, 0, 2 * top_k};
          op.top_k = top_k;
          op.score = score;
          op.groups = groups;
          op.top_groups = (groups + 1) / 2;
          op.group_score = group_score;
          op.renormalise = extras;
          op.renormalise_eps = extras ? 1e-9 : 0;
          op.scale = extras ? 1.5 : 1;
          op.sparsemixer_threshold = 0.5;
          if (extras) op.selection_bias = bench.vector(experts);
          if (extras) op.expert_scale = bench.vector(experts, 0.5, 2);
          bench.add(op);
          bench.output(y);
          compare(bench, comparisons, 1e-13, fmt::format("route {} of {}", top_k, experts), {1, 3, 40});
        }
      }
    }
  }
}

// Equal logits, and logits that are no numbers: the choice stays inside the experts.
TEST(Route, TiesAndBrokenLogits) {
  Comparisons comparisons;
  OpBench bench(1);
  const ValueId x = bench.input(6);
  const ValueId y = bench.value("y", 6);
  RouteOp op;
  op.logits = {x, 0, 6};
  op.output = {y, 0, 6};
  op.top_k = 3;
  bench.add(op);
  bench.output(y);
  const std::vector<float> equal(6, 0.25f);
  const OpOutputs expected = bench.run(*reference_backend(), exact_options(1, 1), equal);
  const std::vector<float> broken(6, std::nanf(""));
  for (const cpu::KernelTable& kernels : all_kernels()) {
    const auto backend = cpu_backend(kernels);
    comparisons.close(bench.run(*backend, exact_options(1, 1), equal), expected, 1e-13, "ties");
    const OpOutputs found = bench.run(*backend, exact_options(1, 1), broken);
    ASSERT_EQ(found.outputs.size(), 1u);
    for (int i = 0; i < 3; ++i) EXPECT_LT(found.outputs[0][static_cast<size_t>(i)], 6);
  }
}

struct ExpertsCase {
  int64_t experts, top_k, input, width;
  Format gate, up, down;
};

void check(const ExpertsCase& c, bool gated, bool extras, Comparisons& comparisons, double bound,
           ActivationType activations, const std::vector<int64_t>& tokens) {
  OpBench bench(static_cast<uint64_t>(c.experts * c.width));
  const ValueId x = bench.input(c.input + c.experts);
  const ValueId routes = bench.value("routes", 2 * c.top_k);
  const ValueId y = bench.value("y", c.input + 1);
  RouteOp route;
  route.logits = {x, c.input, c.experts};
  route.output = {routes, 0, 2 * c.top_k};
  route.top_k = c.top_k;
  bench.add(route);
  ExpertsOp op;
  op.input = {x, 0, c.input};
  op.routes = route.output;
  op.output = {y, 0, c.input};
  if (gated) op.gate = bench.experts(c.gate, c.experts, c.width, c.input);
  op.up = bench.experts(c.up, c.experts, c.width, c.input);
  op.down = bench.experts(c.down, c.experts, c.input, c.width);
  if (extras) {
    if (gated) op.gate_bias = bench.vector(c.experts * c.width);
    op.up_bias = bench.vector(c.experts * c.width);
    op.down_bias = bench.vector(c.experts * c.input);
    op.limit = 3;
    if (gated) op.up_offset = 1;
    op.activation = Activation::kGeluSigmoid;
  }
  op.experts = c.experts;
  op.top_k = c.top_k;
  op.width = c.width;
  bench.add(op);
  bench.add(ClampOp{{y, 0, c.input}, {x, 0, c.input}, 1e30});  // the columns that are compared
  bench.output(x);
  compare(
      bench, comparisons, bound,
      fmt::format("experts {} of {}, {} x {}, {}", c.top_k, c.experts, c.width, c.input, format_name(c.up)),
      tokens, activations);
}

TEST(Experts, SizesAndFormats) {
  Comparisons comparisons;
  const Format f32 = Format::plain(DType::kF32);
  const Format f16 = Format::plain(DType::kF16);
  const Format bf16 = Format::plain(DType::kBF16);
  const Format q8 = Format::block(FormatKind::kQ8_0);
  const Format q4 = Format::block(FormatKind::kQ4_0);
  for (const bool gated : {false, true}) {
    for (const bool extras : {false, true}) {
      check({1, 1, 9, 5, f32, f32, f32}, gated, extras, comparisons, 1e-10, ActivationType::kExact,
            {1, 2, 40});
      check({7, 3, 33, 21, f32, bf16, f16}, gated, extras, comparisons, 1e-10, ActivationType::kExact,
            {1, 9, 130});
      check({40, 4, 64, 96, q8, q4, q8}, gated, extras, comparisons, 1e-10, ActivationType::kExact,
            {1, 5, 300});
      check({40, 4, 64, 96, q8, q4, q8}, gated, extras, comparisons, 2e-3, ActivationType::kDefault,
            {1, 5, 300});
      check({6, 2, 128, 64, bf16, bf16, f16}, gated, extras, comparisons, 2e-3, ActivationType::kDefault,
            {1, 20, 100});
    }
  }
}

}  // namespace
}  // namespace tessera::ops_test
