// AttendOp over paged state: heads, widths, windows, caps, sinks, slopes, both state types; the same positions computed whole,
// in chunks, token by token and beside other sequences; pages in any order.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ops/op_bench.h"

namespace tessera::ops_test {
namespace {

struct Shape3 {
  int64_t heads, kv_heads, head_dim, value_dim;
};

struct AttendCase {
  Shape3 shape{1, 1, 8, 8};
  int64_t window = 0;
  bool causal = true;
  double softcap = 0;
  double beta = 0;
  bool sinks = false;
  bool slopes = false;
  int page = 16;
  StateType state = StateType::kF32;
};

// Sequences as rows of inputs; a step takes so many tokens of each (0: not in the step).
struct Sequences {
  std::vector<std::vector<float>> rows;  // [length * width] each
  int64_t width = 0;
  [[nodiscard]] int64_t length(size_t s) const { return static_cast<int64_t>(rows[s].size()) / width; }
};

enum class PageOrder { kIdentity, kPermuted };

class AttendBench {
 public:
  AttendBench(const AttendCase& c, uint64_t seed) : bench_(seed), case_(c) {
    const Shape3& s = c.shape;
    const int64_t width = s.heads * s.head_dim + s.kv_heads * (s.head_dim + s.value_dim);
    x_ = bench_.input(width);
    const ValueId y = bench_.value("y", s.heads * s.value_dim + 1);
    // Two layers share the group; the second attends to its own copy with other inputs.
    StateGroup group;
    group.kind = c.window > 0 ? StateKind::kWindowed : StateKind::kPaged;
    group.window = c.window;
    for (int layer = 0; layer < 2; ++layer) {
      StateLayer entry;
      entry.layer = layer;
      entry.heads = s.kv_heads;
      entry.k_width = s.head_dim;
      entry.v_width = s.value_dim;
      group.layers.push_back(entry);
    }
    bench_.plan().states.push_back(group);
    AttendOp op;
    op.q = {x_, 0, s.heads * s.head_dim};
    op.k = {x_, s.heads * s.head_dim, s.kv_heads * s.head_dim};
    op.v = {x_, s.heads * s.head_dim + s.kv_heads * s.head_dim, s.kv_heads * s.value_dim};
    op.output = {y, 1, s.heads * s.value_dim};
    op.heads = s.heads;
    op.kv_heads = s.kv_heads;
    op.head_dim = s.head_dim;
    op.value_dim = s.value_dim;
    op.scale = 0.7;
    op.softcap = c.softcap;
    op.window = c.window;
    op.causal = c.causal;
    op.query_scale_beta = c.beta;
    op.query_scale_context = 10;
    if (c.sinks) op.sinks = bench_.vector(s.heads, -2, 2);
    if (c.slopes) op.alibi_slopes = bench_.floats(s.heads, 0, 0.2f);
    op.layer = 1;
    bench_.add(op);
    // A second op reads what the first has stored.
    const ValueId z = bench_.value("z", s.heads * s.value_dim);
    op.k = {};
    op.v = {};
    op.output = {z, 0, s.heads * s.value_dim};
    op.scale = 0.3;
    bench_.add(op);
    bench_.output(y);
    bench_.output(z);
  }

  [[nodiscard]] Sequences sequences(const std::vector<int64_t>& lengths) {
    Sequences result;
    result.width = bench_.plan().hidden_size;
    for (const int64_t length : lengths)
      result.rows.push_back(bench_.floats(length * result.width, -1.5f, 1.5f));
    return result;
  }

  // Outputs of every sequence in turn, positions in order.
  [[nodiscard]] OpOutputs run(Backend& backend, int threads, const Sequences& sequences,
                              const std::vector<std::vector<int64_t>>& steps, PageOrder order) {
    OpOutputs result;
    CompileOptions options = exact_options(threads, 4096);
    options.state = case_.state;
    options.page_positions = case_.page;
    auto executable = backend.compile(bench_.plan(), bench_.weights(), options);
    if (!executable) {
      ADD_FAILURE() << executable.error().message;
      return result;
    }
    const size_t count = sequences.rows.size();
    int64_t pages = 0;
    for (size_t s = 0; s < count; ++s) pages += (sequences.length(s) + case_.page - 1) / case_.page;
    std::vector<int32_t> numbers(static_cast<size_t>(pages + 3));
    std::iota(numbers.begin(), numbers.end(), 0);
    if (order == PageOrder::kPermuted) std::shuffle(numbers.begin(), numbers.end(), bench_.random());
    auto state = (*executable)->allocate_state({{pages + 3}, 0});
    if (!state) {
      ADD_FAILURE() << state.error().message;
      return result;
    }
    std::vector<std::vector<int32_t>> tables(count);
    size_t next = 0;
    for (size_t s = 0; s < count; ++s)
      for (int64_t p = 0; p < (sequences.length(s) + case_.page - 1) / case_.page; ++p)
        tables[s].push_back(numbers[next++]);

    std::vector<std::vector<std::vector<float>>> outputs(2, std::vector<std::vector<float>>(count));
    std::vector<int64_t> done(count, 0);
    for (const std::vector<int64_t>& step : steps) {
      std::vector<float> embeddings;
      std::vector<int32_t> positions, offsets{0}, past, lengths, page_list, page_offsets{0};
      std::vector<size_t> members;
      for (size_t s = 0; s < count; ++s) {
        if (step[s] == 0) continue;
        members.push_back(s);
        const auto begin = sequences.rows[s].begin() + done[s] * sequences.width;
        embeddings.insert(embeddings.end(), begin, begin + step[s] * sequences.width);
        for (int64_t i = 0; i < step[s]; ++i) positions.push_back(static_cast<int32_t>(done[s] + i));
        offsets.push_back(offsets.back() + static_cast<int32_t>(step[s]));
        past.push_back(static_cast<int32_t>(done[s]));
        lengths.push_back(static_cast<int32_t>(done[s] + step[s]));
        std::vector<int32_t> table = tables[s];
        table.resize(static_cast<size_t>((done[s] + step[s] + case_.page - 1) / case_.page));
        // Pages behind the window have been given back.
        if (case_.window > 0)
          for (int64_t p = 0; (p + 1) * case_.page <= done[s] - case_.window + 1; ++p)
            table[static_cast<size_t>(p)] = -1;
        page_list.insert(page_list.end(), table.begin(), table.end());
        page_offsets.push_back(static_cast<int32_t>(page_list.size()));
      }
      const std::vector<PageTable> page_tables{{page_list, page_offsets}};
      StepInput input;
      input.state = state->get();
      input.embeddings = embeddings;
      input.positions = positions;
      input.sequence_offsets = offsets;
      input.past = past;
      input.rope_lengths = lengths;
      input.page_tables = page_tables;
      const auto ticket = (*executable)->submit(input);
      if (!ticket) {
        ADD_FAILURE() << ticket.error().message;
        return result;
      }
      const auto output = (*executable)->wait(*ticket);
      for (size_t o = 0; o < 2; ++o) {
        const std::span<const float> values = output->hidden[o].second;
        const int64_t width = static_cast<int64_t>(values.size()) / offsets.back();
        const int64_t skip = o == 0 ? 1 : 0;  // the first column of y is not written
        for (size_t m = 0; m < members.size(); ++m)
          for (int64_t t = offsets[m]; t < offsets[m + 1]; ++t)
            outputs[o][members[m]].insert(outputs[o][members[m]].end(), values.begin() + t * width + skip,
                                          values.begin() + (t + 1) * width);
      }
      for (size_t s = 0; s < count; ++s) done[s] += step[s];
    }
    for (const auto& output : outputs)
      for (const auto& sequence : output) result.outputs.push_back(sequence);
    return result;
  }

 private:
  OpBench bench_;
  AttendCase case_;
  ValueId x_ = -1;
};

std::vector<AttendCase> cases() {
  std::vector<AttendCase> all;
  const std::vector<Shape3> shapes{{1, 1, 8, 8},   {4, 2, 64, 64},   {6, 1, 20, 33},
                                   {9, 3, 40, 24}, {8, 8, 128, 128}, {16, 1, 96, 16}};
  for (const Shape3& shape : shapes) {
    for (const StateType state : {StateType::kF32, StateType::kF16}) {
      AttendCase plain;
      plain.shape = shape;
      plain.state = state;
      all.push_back(plain);
      AttendCase window = plain;
      window.window = 21;
      all.push_back(window);
    }
    AttendCase extras;
    extras.shape = shape;
    extras.softcap = 2.0;
    extras.beta = 0.4;
    extras.sinks = true;
    extras.slopes = true;
    all.push_back(extras);
    AttendCase pages = extras;
    pages.page = 7;
    pages.window = 5;
    all.push_back(pages);
    AttendCase wide;
    wide.shape = shape;
    wide.page = 32;
    all.push_back(wide);
  }
  return all;
}

std::string name(const AttendCase& c) {
  return fmt::format("{}/{} heads of {}/{} window {} page {} {}", c.shape.heads, c.shape.kv_heads,
                     c.shape.head_dim, c.shape.value_dim, c.window, c.page,
                     c.state == StateType::kF16 ? "f16" : "f32");
}

TEST(Attend, EqualsTheReferenceInEveryWay) {
  Comparisons comparisons;
  const auto reference = reference_backend();
  for (const AttendCase& c : cases()) {
    AttendBench bench(c, 5);
    const Sequences sequences = bench.sequences({150, 1, 37});
    std::vector<std::vector<int64_t>> single;
    std::vector<std::vector<int64_t>> chunks;
    for (int64_t i = 0; i < 150; ++i) single.push_back({1, i < 1, i < 37});
    for (int64_t i = 0; i < 150; i += 7)
      chunks.push_back({std::min<int64_t>(7, 150 - i), i == 7, std::clamp<int64_t>(37 - i, 0, 7)});
    const OpOutputs expected = bench.run(*reference, 1, sequences, {{150, 1, 37}}, PageOrder::kIdentity);
    for (const cpu::KernelTable& kernels : all_kernels()) {
      const auto backend = cpu_backend(kernels);
      const std::string what = name(c) + " " + kernels.name;
      const OpOutputs whole = bench.run(*backend, 1, sequences, {{150, 1, 37}}, PageOrder::kIdentity);
      comparisons.close(whole, expected, 1e-11, what);
      comparisons.equal(bench.run(*backend, 3, sequences, {{150, 1, 37}}, PageOrder::kIdentity), whole,
                        what + " threads");
      comparisons.equal(bench.run(*backend, 2, sequences, {{150, 1, 37}}, PageOrder::kPermuted), whole,
                        what + " pages");
      comparisons.equal(bench.run(*backend, 1, sequences, chunks, PageOrder::kPermuted), whole,
                        what + " chunks");
      comparisons.equal(bench.run(*backend, 2, sequences, single, PageOrder::kPermuted), whole,
                        what + " token by token");
    }
  }
}

TEST(Attend, BothWays) {
  Comparisons comparisons;
  const auto reference = reference_backend();
  for (const int64_t window : {0, 9}) {
    AttendCase c;
    c.shape = {6, 3, 32, 16};
    c.causal = false;
    c.window = window;
    AttendBench bench(c, 6);
    const Sequences sequences = bench.sequences({50, 3, 129});
    const OpOutputs expected = bench.run(*reference, 1, sequences, {{50, 3, 129}}, PageOrder::kIdentity);
    for (const cpu::KernelTable& kernels : all_kernels())
      for (const int threads : {1, 2})
        comparisons.close(
            bench.run(*cpu_backend(kernels), threads, sequences, {{50, 3, 129}}, PageOrder::kPermuted),
            expected, 1e-11, name(c));
  }
}

TEST(Attend, LongContextAndLargeScores) {
  Comparisons comparisons;
  const auto reference = reference_backend();
  AttendCase c;
  c.shape = {4, 2, 16, 16};
  c.state = StateType::kF16;
  AttendBench bench(c, 7);
  Sequences sequences = bench.sequences({2100});
  // Scores of some hundreds: one position takes nearly all the weight, wherever it lies.
  for (size_t i = 0; i < sequences.rows[0].size(); i += 7) sequences.rows[0][i] *= 15;
  const OpOutputs expected = bench.run(*reference, 1, sequences, {{2096}, {3}, {1}}, PageOrder::kIdentity);
  for (const cpu::KernelTable& kernels : all_kernels())
    comparisons.close(
        bench.run(*cpu_backend(kernels), 2, sequences, {{2096}, {3}, {1}}, PageOrder::kPermuted), expected,
        1e-9, kernels.name);
}

// Copies of pages and slots are whole, and out of range is refused.
TEST(State, CopiesPagesAndRefusesOthers) {
  AttendCase c;
  AttendBench bench(c, 8);
  OpBench plain(1);
  StateGroup paged;
  StateLayer layer;
  layer.heads = 2;
  layer.k_width = 8;
  layer.v_width = 8;
  paged.layers = {layer, layer};
  StateGroup fixed;
  fixed.kind = StateKind::kFixed;
  layer.values = 10;
  fixed.layers = {layer};
  const ValueId x = plain.input(4);
  plain.output(x);
  plain.plan().states = {paged, fixed};
  const auto backend = cpu_backend(all_kernels().front());
  auto executable = backend->compile(plain.plan(), plain.weights(), exact_options(1, 4));
  ASSERT_TRUE(executable);
  EXPECT_EQ((*executable)->page_bytes(0), 2u * 16 * 2 * 16 * 4);
  EXPECT_EQ((*executable)->page_bytes(1), 0u);
  EXPECT_EQ((*executable)->slot_bytes(), 64u);
  auto state = (*executable)->allocate_state({{3, 0}, 2});
  ASSERT_TRUE(state);
  EXPECT_EQ((*state)->bytes(), 3u * 2 * 16 * 2 * 16 * 4 + 2 * 64);
  EXPECT_TRUE((*state)->copy_page(0, 0, 2));
  EXPECT_FALSE((*state)->copy_page(0, 0, 3));
  EXPECT_FALSE((*state)->copy_page(1, 0, 0));
  EXPECT_FALSE((*state)->copy_page(0, -1, 0));
  EXPECT_TRUE((*state)->copy_slot(0, 1));
  EXPECT_FALSE((*state)->copy_slot(0, 2));
  EXPECT_TRUE((*state)->clear_slot(1));
  EXPECT_FALSE((*state)->clear_slot(-1));
  EXPECT_FALSE((*executable)->allocate_state({{3}, 0}));
  EXPECT_FALSE((*executable)->allocate_state({{int64_t{1} << 60, 0}, 0}));
}

}  // namespace
}  // namespace tessera::ops_test
