// Positions of three axes (time, height, width; M-RoPE, arXiv 2409.12191): which axis turns which pair of a head, against the
// formula written out here, for contiguous and interleaved sections and both pair layouts.
#include <cmath>

#include "ops/op_bench.h"

namespace tessera::ops_test {
namespace {

// Contiguous: the first s0 pairs turn with time, the next s1 with height, the rest with width. Interleaved: pairs go
// time, height, width, time, ...; an axis whose s pairs are used up leaves its place to time.
size_t axis_of(const std::vector<int64_t>& sections, bool interleaved, int64_t pair) {
  if (!interleaved) {
    if (pair < sections[0]) return 0;
    return pair < sections[0] + sections[1] ? 1 : 2;
  }
  if (pair % 3 == 1 && pair < 3 * sections[1]) return 1;
  if (pair % 3 == 2 && pair < 3 * sections[2]) return 2;
  return 0;
}

TEST(RopeAxes, SectionsAgainstTheFormula) {
  constexpr int64_t kHeads = 3;
  constexpr int64_t kHeadDim = 40;  // of which 32 are rotated
  constexpr int64_t kDim = 32;
  constexpr int64_t kTokens = 29;
  Comparisons comparisons;
  for (const RopeLayout layout : {RopeLayout::kHalfSplit, RopeLayout::kInterleaved}) {
    for (const bool interleaved : {false, true}) {
      OpBench bench(9);
      const ValueId x = bench.input(kHeads * kHeadDim);
      RopeSpec rope;
      rope.layout = layout;
      rope.dim = kDim;
      rope.head_dim = kHeadDim;
      rope.theta = 5000;
      rope.sections = interleaved ? std::vector<int64_t>{6, 5, 5} : std::vector<int64_t>{4, 7, 5};
      rope.sections_interleaved = interleaved;
      bench.plan().ropes.push_back(rope);
      RopeOp op;
      op.x = {x, 0, kHeads * kHeadDim};
      op.heads = kHeads;
      op.head_dim = kHeadDim;
      bench.add(op);
      bench.output(x);
      const std::vector<float> rows = bench.floats(kTokens * kHeads * kHeadDim);
      std::vector<int32_t> positions(3 * kTokens);
      for (int32_t& p : positions) p = static_cast<int32_t>(bench.random()() % 300);

      OpOutputs expected;
      expected.outputs.push_back(rows);
      for (int64_t t = 0; t < kTokens; ++t) {
        for (int64_t head = 0; head < kHeads; ++head) {
          for (int64_t pair = 0; pair < kDim / 2; ++pair) {
            const size_t axis = axis_of(rope.sections, interleaved, pair);
            const double angle =
                positions[axis * kTokens + static_cast<size_t>(t)] *
                std::pow(rope.theta, -2.0 * static_cast<double>(pair) / static_cast<double>(kDim));
            const int64_t first = (t * kHeads + head) * kHeadDim;
            const int64_t a = layout == RopeLayout::kHalfSplit ? first + pair : first + 2 * pair;
            const int64_t b = layout == RopeLayout::kHalfSplit ? a + kDim / 2 : a + 1;
            const double u = rows[static_cast<size_t>(a)];
            const double v = rows[static_cast<size_t>(b)];
            expected.outputs[0][static_cast<size_t>(a)] =
                static_cast<float>(u * std::cos(angle) - v * std::sin(angle));
            expected.outputs[0][static_cast<size_t>(b)] =
                static_cast<float>(v * std::cos(angle) + u * std::sin(angle));
          }
        }
      }
      const auto check = [&](Backend& backend, const std::string& name) {
        const auto executable = backend.compile(bench.plan(), bench.weights(), exact_options(2, 64));
        ASSERT_TRUE(executable);
        const std::vector<int32_t> offsets{0, 11, kTokens};  // two sequences
        const std::vector<int32_t> past{0, 0};
        const std::vector<int32_t> lengths{11, kTokens - 11};
        StepInput input;
        input.embeddings = rows;
        input.positions = positions;
        input.sequence_offsets = offsets;
        input.past = past;
        input.rope_lengths = lengths;
        const auto ticket = (*executable)->submit(input);
        ASSERT_TRUE(ticket) << ticket.error().message;
        const auto output = (*executable)->wait(*ticket);
        OpOutputs found;
        found.outputs.emplace_back(output->hidden[0].second.begin(), output->hidden[0].second.end());
        comparisons.close(found, expected, 1e-10, name);
      };
      check(*reference_backend(), "reference");
      for (const cpu::KernelTable& kernels : all_kernels()) check(*cpu_backend(kernels), kernels.name);
    }
  }
}

}  // namespace
}  // namespace tessera::ops_test
