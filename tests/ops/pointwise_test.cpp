// Ops that work row by row, against the reference, on every instruction set and several thread counts.
#include <fmt/format.h>

#include "ops/op_bench.h"

namespace tessera::ops_test {
namespace {

// Runs the bench's plan on all backends for several token counts.
void compare(OpBench& bench, Comparisons& comparisons, double bound, const std::string& what, float low = -3,
             float high = 3) {
  const auto reference = reference_backend();
  for (const int64_t tokens : {1, 2, 7, 130}) {
    const std::vector<float> x = bench.floats(tokens * bench.plan().hidden_size, low, high);
    std::vector<int32_t> outputs;
    for (int32_t t = 0; t < tokens; t += 3) outputs.push_back(t);
    const OpOutputs expected = bench.run(*reference, exact_options(1, tokens), x, outputs);
    for (const cpu::KernelTable& kernels : all_kernels()) {
      const auto backend = cpu_backend(kernels);
      OpOutputs one;
      for (const int threads : {1, 2, 3}) {
        const std::string name =
            fmt::format("{} tokens {} threads {} {}", what, tokens, threads, kernels.name);
        const OpOutputs found = bench.run(*backend, exact_options(threads, tokens), x, outputs);
        comparisons.close(found, expected, bound, name);
        if (threads == 1)
          one = found;
        else
          comparisons.equal(found, one, name);
      }
    }
  }
}

TEST(Norm, KindsGroupsGainsAndBiases) {
  Comparisons comparisons;
  for (const NormKind kind : {NormKind::kRms, NormKind::kLayer}) {
    for (const auto& [width, group] :
         {std::pair<int64_t, int64_t>{1, 1}, {7, 7}, {64, 64}, {96, 24}, {300, 100}, {2048, 2048}}) {
      for (const bool gain : {false, true}) {
        for (const bool bias : {false, true}) {
          for (const bool per_row : {false, true}) {
            OpBench bench(static_cast<uint64_t>(width));
            const ValueId x = bench.input(width + 6);
            const ValueId y = bench.value("y", width + 1);
            NormOp op;
            op.input = {x, 3, width};
            op.output = {y, 1, width};
            op.kind = kind;
            op.eps = 1e-5;
            op.group = group;
            op.gain_per_row = per_row;
            if (gain) op.gain = bench.vector(per_row ? width : group);
            if (bias) op.bias = bench.vector(per_row ? width : group);
            bench.add(op);
            op.input = op.output;  // in place
            bench.add(op);
            bench.output(y);
            // A group of one value has no variance: rounding is all there is.
            compare(bench, comparisons, 1e-11, fmt::format("norm {} {}", width, group));
          }
        }
      }
    }
  }
}

TEST(Rope, LayoutsWidthsAndScalings) {
  Comparisons comparisons;
  for (const RopeLayout layout : {RopeLayout::kHalfSplit, RopeLayout::kInterleaved}) {
    for (const auto& [heads, head_dim, dim] :
         {std::tuple<int64_t, int64_t, int64_t>{1, 2, 2}, {3, 64, 64}, {4, 80, 20}, {2, 100, 50}}) {
      for (const RopeScaling scaling : {RopeScaling::kNone, RopeScaling::kLinear, RopeScaling::kDynamic}) {
        OpBench bench(3);
        const ValueId x = bench.input(heads * head_dim + 2);
        RopeSpec spec;
        spec.layout = layout;
        spec.dim = dim;
        spec.head_dim = head_dim;
        spec.scaling = scaling;
        spec.factor = scaling == RopeScaling::kNone ? 1.0 : 4.0;
        spec.original_context = 64;
        spec.amplitude = 1.25;
        if (dim == 2 && scaling == RopeScaling::kDynamic) continue;  // dim / (dim - 2)
        bench.plan().ropes.push_back(spec);
        RopeOp op;
        op.x = {x, 1, heads * head_dim};
        op.heads = heads;
        op.head_dim = head_dim;
        op.rope = 0;
        bench.add(op);
        bench.output(x);
        compare(bench, comparisons, 1e-11, fmt::format("rope {} {}", head_dim, dim));
      }
    }
  }
}

TEST(Activate, EveryFunction) {
  Comparisons comparisons;
  for (const Activation activation :
       {Activation::kSilu, Activation::kGeluErf, Activation::kGeluTanh, Activation::kRelu,
        Activation::kReluSquared, Activation::kSigmoid, Activation::kTanh, Activation::kIdentity}) {
    for (const int64_t width : {1, 5, 33, 512}) {
      for (const bool gated : {false, true}) {
        OpBench bench(static_cast<uint64_t>(width));
        const ValueId x = bench.input(2 * width + 1);
        const ValueId y = bench.value("y", width);
        ActivateOp op;
        op.gate = {x, 0, width};
        if (gated) op.up = {x, width + 1, width};
        op.output = {y, 0, width};
        op.activation = activation;
        bench.add(op);
        bench.output(y);
        compare(bench, comparisons, 1e-11, fmt::format("{} {}", activation_name(activation), width), -6, 6);
        // Far out, where exponentials leave the range of float32.
        compare(bench, comparisons, 1e-11, fmt::format("{} {} far", activation_name(activation), width), -200,
                200);
      }
    }
  }
}

TEST(Combine, TermsFactorsAndSlots) {
  Comparisons comparisons;
  for (const int64_t width : {1, 19, 256}) {
    for (const int terms : {0, 1, 3}) {
      for (const bool residual : {false, true}) {
        OpBench bench(static_cast<uint64_t>(width + terms));
        const ValueId x = bench.input(4 * width);
        CombineOp op;
        if (residual) op.residual = {x, 0, width};
        for (int i = 0; i < terms; ++i) {
          CombineTerm term;
          term.value = {x, (i + 1) * width, width};
          term.factor = 0.5 + i;
          if (i == 1) term.factor_slot = bench.vector(1);
          op.terms.push_back(term);
        }
        op.alpha = 1.5;
        op.beta = 0.75;
        if (terms == 3) op.beta_slot = bench.vector(1);
        if (terms == 0 && !residual) continue;
        const ValueId y = bench.value("y", width);
        op.output = {y, 0, width};
        bench.add(op);
        bench.output(y);
        compare(bench, comparisons, 1e-11, fmt::format("combine {} terms", terms));
      }
    }
  }
}

TEST(Rows, GatherThenScaleLogits) {
  Comparisons comparisons;
  for (const double softcap : {0.0, 5.0}) {
    for (const int64_t width : {1, 30, 1000}) {
      OpBench bench(static_cast<uint64_t>(width));
      const ValueId x = bench.input(width + 1);
      const ValueId y = bench.value("y", width, RowSymbol::kOutputs);
      bench.add(GatherRowsOp{{x, 1, width}, {y, 0, width}});
      ScaleLogitsOp scale;
      scale.x = {y, 0, width};
      scale.scale = 3.0;
      scale.softcap = softcap;
      bench.add(scale);
      bench.output(y);
      compare(bench, comparisons, 1e-11, fmt::format("logits {} {}", width, softcap));
    }
  }
}

TEST(Clamp, InAndOutOfPlace) {
  Comparisons comparisons;
  for (const int64_t width : {1, 37}) {
    OpBench bench(5);
    const ValueId x = bench.input(width);
    const ValueId y = bench.value("y", width);
    bench.add(ClampOp{{x, 0, width}, {y, 0, width}, 1.5});
    bench.add(ClampOp{{x, 0, width}, {x, 0, width}, 0.5});
    bench.output(x);
    bench.output(y);
    compare(bench, comparisons, 1e-14, "clamp");
  }
}

TEST(Sparsify, InAndOutOfPlace) {
  Comparisons comparisons;
  for (const int64_t width : {2, 45, 512}) {
    OpBench bench(6);
    const ValueId x = bench.input(width);
    const ValueId y = bench.value("y", width);
    bench.add(SparsifyOp{{x, 0, width}, {y, 0, width}, 0.4});
    bench.add(SparsifyOp{{x, 0, width}, {x, 0, width}, 0.0});
    bench.output(x);
    bench.output(y);
    // What is left of a value just above the cutoff has lost most of its digits.
    compare(bench, comparisons, 1e-9, "sparsify");
  }
}

TEST(SigmoidGate, PerColumnAndPerGroup) {
  Comparisons comparisons;
  for (const auto& [width, groups] : {std::pair<int64_t, int64_t>{1, 1}, {48, 48}, {60, 4}, {21, 3}}) {
    OpBench bench(8);
    const ValueId x = bench.input(width + groups);
    const ValueId y = bench.value("y", width);
    bench.add(SigmoidGateOp{{x, 0, width}, {x, width, groups}, {y, 0, width}});
    bench.output(y);
    compare(bench, comparisons, 1e-11, "sigmoid gate");
  }
}

TEST(PositionEmbed, AddsRowsAndRefusesPositionsBeyondTheTable) {
  Comparisons comparisons;
  for (const Format& format :
       {Format::plain(DType::kF32), Format::plain(DType::kF16), Format::plain(DType::kBF16)}) {
    OpBench bench(9);
    const ValueId x = bench.input(33);
    PositionEmbedOp op;
    op.table = bench.matrix(format, 140, 33);
    op.offset = 2;
    op.x = {x, 0, 33};
    bench.add(op);
    bench.output(x);
    compare(bench, comparisons, 1e-13, "positions");
    auto executable =
        cpu_backend(all_kernels().front())->compile(bench.plan(), bench.weights(), exact_options(1, 1));
    ASSERT_TRUE(executable);
    const std::vector<float> embeddings = bench.floats(33);
    const std::vector<int32_t> positions{138};
    const std::vector<int32_t> offsets{0, 1};
    const std::vector<int32_t> zero{0};
    StepInput input;
    input.embeddings = embeddings;
    input.positions = positions;
    input.sequence_offsets = offsets;
    input.past = zero;
    input.rope_lengths = zero;
    const auto ticket = (*executable)->submit(input);
    ASSERT_FALSE(ticket);
    EXPECT_NE(ticket.error().message.find("138"), std::string::npos) << ticket.error().message;
  }
}

}  // namespace
}  // namespace tessera::ops_test
