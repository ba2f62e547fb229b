// Ops with a state of fixed size, against the reference: odd widths and shipped sizes, several sequences, whole and in pieces, in
// every form.
#include <fmt/format.h>

#include "ops/sequence_bench.h"

namespace tessera::ops_test {
namespace {

const std::vector<int64_t> kLengths{70, 1, 2, 33};

// A state group of one layer before and one behind the op's, so that offsets count.
void add_fixed_state(OpBench& bench, int64_t values) {
  StateGroup group;
  group.kind = StateKind::kFixed;
  for (const int64_t size : {int64_t{5}, values, int64_t{3}}) {
    StateLayer layer;
    layer.values = size;
    group.layers.push_back(layer);
  }
  bench.plan().states.push_back(group);
}

TEST(CausalConv, KernelsWidthsAndActivations) {
  Comparisons comparisons;
  for (const int64_t width : {1, 5, 64, 131}) {
    for (const int64_t kernel : {1, 2, 4, 9}) {
      for (const bool extras : {false, true}) {
        OpBench bench(static_cast<uint64_t>(width * kernel));
        const ValueId x = bench.input(width + 2);
        const ValueId y = bench.value("y", width);
        add_fixed_state(bench, width * (kernel - 1));
        CausalConvOp op;
        op.input = {x, 1, width};
        op.output = {y, 0, width};
        op.weight = bench.vector(width * kernel);
        if (extras) op.bias = bench.vector(width);
        op.kernel = kernel;
        op.activation = extras ? Activation::kSilu : Activation::kIdentity;
        op.layer = 1;
        bench.add(op);
        bench.output(y);
        compare_sequences(bench, comparisons, 1e-11, fmt::format("conv {} of {}", kernel, width),
                          exact_options(1, 128), kLengths, Ways::kSameBits);
      }
    }
  }
}

TEST(TokenShift, Widths) {
  Comparisons comparisons;
  for (const int64_t width : {1, 7, 64, 301}) {
    OpBench bench(static_cast<uint64_t>(width));
    const ValueId x = bench.input(width + 1);
    add_fixed_state(bench, width);
    TokenShiftOp op;
    op.x = {x, 1, width};
    for (const char* name : {"a", "b", "c"}) {
      const ValueId y = bench.value(name, width);
      op.outputs.push_back({y, 0, width});
      op.mixes.push_back(bench.vector(width, 0, 1));
    }
    op.layer = 1;
    bench.add(op);
    for (const Slice& output : op.outputs) bench.output(output.value);
    compare_sequences(bench, comparisons, 1e-12, fmt::format("shift {}", width), exact_options(1, 128),
                      kLengths, Ways::kSameBits);
  }
}

TEST(Wkv, WidthsAndLargeKeys) {
  Comparisons comparisons;
  for (const int64_t width : {1, 19, 64, 200}) {
    for (const float most : {2.0f, 60.0f}) {
      OpBench bench(static_cast<uint64_t>(width));
      const ValueId x = bench.input(2 * width + 1);
      const ValueId y = bench.value("y", width);
      add_fixed_state(bench, 3 * width);
      WkvOp op;
      op.k = {x, 0, width};
      op.v = {x, width + 1, width};
      op.output = {y, 0, width};
      op.decay = bench.vector(width, -3, -0.01f);
      op.first = bench.vector(width);
      op.layer = 1;
      bench.add(op);
      bench.output(y);
      compare_sequences(bench, comparisons, most > 10 ? 1e-9 : 1e-11, fmt::format("wkv {} {}", width, most),
                        exact_options(1, 128), kLengths, Ways::kSameBits, -most, most);
    }
  }
}

TEST(SelectiveScan, ChannelsAndStates) {
  Comparisons comparisons;
  for (const int64_t channels : {1, 21, 64, 150}) {
    for (const int64_t states : {1, 8, 16, 37}) {
      OpBench bench(static_cast<uint64_t>(channels * states));
      const ValueId x = bench.input(2 * channels + 2 * states);
      const ValueId y = bench.value("y", channels);
      add_fixed_state(bench, channels * states);
      SelectiveScanOp op;
      op.x = {x, 0, channels};
      op.dt = {x, channels, channels};
      op.b = {x, 2 * channels, states};
      op.c = {x, 2 * channels + states, states};
      op.output = {y, 0, channels};
      op.decay = bench.vector(channels * states, -4, -0.01f);
      op.d = bench.vector(channels);
      op.layer = 1;
      bench.add(op);
      bench.output(y);
      compare_sequences(bench, comparisons, 1e-10, fmt::format("scan {} of {}", channels, states),
                        exact_options(1, 128), kLengths, Ways::kSameBits, -3, 3);
    }
  }
}

// The forms of an op along a sequence that tests force, and several lengths: less than a block, whole blocks, a rest.
struct Form {
  SequenceForm form;
  const char* name;
  Ways ways;
};
constexpr Form kForms[] = {{SequenceForm::kTokens, "by tokens", Ways::kSameBits},
                           {SequenceForm::kBlocks, "by blocks", Ways::kClose},
                           {SequenceForm::kAuto, "as chosen", Ways::kClose}};

struct ScanShape {
  int64_t heads, head_dim, states, groups;
};

void head_scan(OpBench& bench, const ScanShape& s, double most) {
  const int64_t inner = s.heads * s.head_dim;
  const int64_t bc = s.groups * s.states;
  const ValueId x = bench.input(inner + s.heads + 2 * bc);
  const ValueId y = bench.value("y", inner);
  add_fixed_state(bench, inner * s.states);
  HeadScanOp op;
  op.x = {x, 0, inner};
  op.dt = {x, inner, s.heads};
  op.b = {x, inner + s.heads, bc};
  op.c = {x, inner + s.heads + bc, bc};
  op.output = {y, 0, inner};
  op.decay = bench.vector(s.heads, -2, -0.01f);
  op.dt_bias = bench.vector(s.heads);
  op.d = bench.vector(s.heads);
  op.heads = s.heads;
  op.head_dim = s.head_dim;
  op.states = s.states;
  op.groups = s.groups;
  op.dt_min = most > 0 ? 0.3 : 0;
  op.dt_max = most;
  op.layer = 1;
  bench.add(op);
  bench.output(y);
}

TEST(HeadScan, HeadsGroupsBoundsAndForms) {
  Comparisons comparisons;
  for (const ScanShape& s : {ScanShape{1, 1, 1, 1}, {4, 16, 16, 2}, {6, 9, 33, 3}, {3, 64, 128, 1}}) {
    for (const double most : {0.0, 0.8}) {
      for (const Form& form : kForms) {
        OpBench bench(static_cast<uint64_t>(s.heads * s.states));
        head_scan(bench, s, most);
        CompileOptions options = exact_options(1, 128);
        options.sequence_form = form.form;
        compare_sequences(bench, comparisons, 1e-11,
                          fmt::format("head scan {} of {} {}", s.heads, s.states, form.name), options,
                          kLengths, form.ways);
      }
    }
  }
}

// As published models have it: 32 heads of 64, 128 states, one group; several blocks and a rest, state carried between steps.
TEST(HeadScan, ShippedSize) {
  Comparisons comparisons;
  for (const Form& form : kForms) {
    OpBench bench(5);
    head_scan(bench, {32, 64, 128, 1}, 0);
    CompileOptions options = exact_options(1, 384);
    options.sequence_form = form.form;
    compare_sequences(bench, comparisons, 1e-11, fmt::format("head scan as shipped {}", form.name), options,
                      {300, 65, 7}, form.ways);
  }
}

struct DeltaShape {
  int64_t key_heads, value_heads, key_dim, value_dim;
};

void delta_rule(OpBench& bench, const DeltaShape& s, HeadMap map, float least_decay) {
  const int64_t keys = s.key_heads * s.key_dim;
  const int64_t values = s.value_heads * s.value_dim;
  const ValueId x = bench.input(2 * keys + values + 2 * s.value_heads);
  const ValueId y = bench.value("y", values);
  add_fixed_state(bench, s.value_heads * s.key_dim * s.value_dim);
  DeltaRuleOp op;
  op.q = {x, 0, keys};
  op.k = {x, keys, keys};
  op.v = {x, 2 * keys, values};
  op.a = {x, 2 * keys + values, s.value_heads};
  op.b = {x, 2 * keys + values + s.value_heads, s.value_heads};
  op.output = {y, 0, values};
  op.decay = bench.vector(s.value_heads, least_decay, -0.01f);
  op.dt_bias = bench.vector(s.value_heads);
  op.key_heads = s.key_heads;
  op.value_heads = s.value_heads;
  op.key_dim = s.key_dim;
  op.value_dim = s.value_dim;
  op.head_map = map;
  op.layer = 1;
  bench.add(op);
  bench.output(y);
}

TEST(DeltaRule, HeadsMapsWidthsAndForms) {
  Comparisons comparisons;
  for (const DeltaShape& s :
       {DeltaShape{1, 1, 1, 1}, {2, 4, 16, 16}, {2, 6, 7, 37}, {1, 2, 128, 128}, {3, 3, 33, 100}}) {
    for (const HeadMap map : {HeadMap::kGrouped, HeadMap::kTiled}) {
      for (const Form& form : kForms) {
        OpBench bench(static_cast<uint64_t>(s.key_dim * s.value_dim));
        delta_rule(bench, s, map, -1);
        CompileOptions options = exact_options(1, 128);
        options.sequence_form = form.form;
        compare_sequences(bench, comparisons, 1e-10,
                          fmt::format("delta rule {} by {} {}", s.key_dim, s.value_dim, form.name), options,
                          kLengths, form.ways);
      }
    }
  }
}

// Decays so strong that what a block's first token leaves at its end is below the smallest float.
TEST(DeltaRule, StrongDecay) {
  Comparisons comparisons;
  for (const Form& form : kForms) {
    OpBench bench(11);
    delta_rule(bench, {2, 2, 24, 24}, HeadMap::kGrouped, -60);
    CompileOptions options = exact_options(1, 128);
    options.sequence_form = form.form;
    compare_sequences(bench, comparisons, 1e-10, fmt::format("strong decay {}", form.name), options, kLengths,
                      form.ways);
  }
}

// As published models have it: keys of 128, 32 value heads; several blocks and a rest, state carried between steps.
TEST(DeltaRule, ShippedSize) {
  Comparisons comparisons;
  for (const Form& form : kForms) {
    OpBench bench(7);
    delta_rule(bench, {16, 32, 128, 128}, HeadMap::kGrouped, -1);
    CompileOptions options = exact_options(1, 384);
    options.sequence_form = form.form;
    compare_sequences(bench, comparisons, 1e-10, fmt::format("delta rule as shipped {}", form.name), options,
                      {300, 65, 7}, form.ways);
  }
}

TEST(Streams, MixesMagnitudesAndColumns) {
  Comparisons comparisons;
  for (const int64_t width : {1, 23, 64}) {
    for (const int64_t streams : {1, 2, 4}) {
      OpBench bench(static_cast<uint64_t>(width * streams));
      const ValueId x = bench.input((streams + 1) * width + streams * streams);
      const Slice input{x, 0, streams * width};
      const Slice actual{x, streams * width, width};
      const ValueId predicted = bench.value("predicted", streams * width);
      const ValueId corrected = bench.value("corrected", streams * width);
      const ValueId matched = bench.value("matched", streams * width);
      MixStreamsOp mix;
      mix.input = input;
      mix.coefficients = {x, (streams + 1) * width, streams * streams};
      mix.output = {predicted, 0, streams * width};
      mix.streams = streams;
      bench.add(mix);
      mix.kind = MixStreamsOp::Kind::kCorrect;
      mix.coefficients.width = streams;
      mix.actual = actual;
      mix.active = streams - 1;
      mix.output.value = corrected;
      bench.add(mix);
      bench.add(ScaleColumnsOp{input, bench.vector(streams * width), {matched, 0, streams * width}});
      bench.add(MatchMagnitudeOp{{matched, 0, streams * width}, streams, 1e-5});
      for (const ValueId id : {predicted, corrected, matched}) bench.output(id);
      compare_sequences(bench, comparisons, 1e-11, fmt::format("streams {} of {}", streams, width),
                        exact_options(1, 128), kLengths, Ways::kSameBits);
    }
  }
}

}  // namespace
}  // namespace tessera::ops_test
