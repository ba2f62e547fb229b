// Latent attention: shapes for which the absorbed and the expanded form are chosen, both state types, odd pages, weights in
// several formats and parts.
#include <fmt/format.h>

#include "ops/sequence_bench.h"

namespace tessera::ops_test {
namespace {

struct MlaCase {
  int64_t heads, nope_dim, rope_dim, value_dim, kv_lora;
  int page = 16;
  StateType state = StateType::kF32;
};

// `behind` is the column where the rotated key begins: right behind the latent, or elsewhere.
void check(const MlaCase& c, const std::vector<Format>& formats, int64_t gap, Comparisons& comparisons,
           const std::vector<int64_t>& lengths) {
  OpBench bench(static_cast<uint64_t>(c.heads * c.kv_lora + gap));
  const int64_t q = c.heads * (c.nope_dim + c.rope_dim);
  const ValueId x = bench.input(q + c.kv_lora + gap + c.rope_dim);
  const ValueId y = bench.value("y", c.heads * c.value_dim);
  StateGroup group;
  StateLayer layer;
  layer.heads = 1;
  layer.k_width = c.kv_lora + c.rope_dim;
  group.layers = {layer, layer};
  bench.plan().states.push_back(group);
  MlaAttendOp op;
  op.q = {x, 0, q};
  op.latent = {x, q, c.kv_lora};
  op.k_rope = {x, q + c.kv_lora + gap, c.rope_dim};
  const int64_t rows = c.heads * (c.nope_dim + c.value_dim);
  op.kv_b = formats.size() == 1
                ? bench.matrix(formats[0], rows, c.kv_lora)
                : bench.joined(formats, rows / static_cast<int64_t>(formats.size()), c.kv_lora);
  op.output = {y, 0, c.heads * c.value_dim};
  op.heads = c.heads;
  op.nope_dim = c.nope_dim;
  op.rope_dim = c.rope_dim;
  op.value_dim = c.value_dim;
  op.scale = 0.2;
  op.layer = 1;
  bench.add(op);
  bench.output(y);
  CompileOptions options = exact_options(1, 256);
  options.state = c.state;
  options.page_positions = c.page;
  for (const auto& [form, name] :
       {std::pair{LatentForm::kAuto, "as chosen"}, std::pair{LatentForm::kAbsorbed, "absorbed"},
        std::pair{LatentForm::kExpanded, "expanded"}}) {
    options.latent_form = form;
    compare_sequences(bench, comparisons, 1e-10,
                      fmt::format("mla {} heads of {}+{}/{} over {}, page {}, {}", c.heads, c.nope_dim,
                                  c.rope_dim, c.value_dim, c.kv_lora, c.page, name),
                      options, lengths, Ways::kClose);
  }
}

TEST(MlaAttend, BothForms) {
  Comparisons comparisons;
  const Format f32 = Format::plain(DType::kF32);
  const Format bf16 = Format::plain(DType::kBF16);
  const Format q8 = Format::block(FormatKind::kQ8_0);
  for (const StateType state : {StateType::kF32, StateType::kF16}) {
    // 2 * kv_lora < nope_dim + value_dim: absorbed always.
    check({3, 33, 8, 40, 32, 16, state}, {f32}, 0, comparisons, {150, 1, 66});
    check({80, 24, 3, 24, 16, 7, state}, {bf16}, 5, comparisons, {70, 1, 9});
    check({1, 20, 1, 19, 16, 16, state}, {f32}, 0, comparisons, {1, 140});
    // Much larger latents: expanded from two tokens on, absorbed for one.
    check({3, 16, 8, 12, 96, 16, state}, {f32}, 0, comparisons, {150, 1, 66});
    check({4, 17, 5, 20, 160, 5, state}, {q8}, 3, comparisons, {130, 2, 5});
    check({6, 16, 8, 16, 64, 32, state}, {bf16, q8, f32}, 0, comparisons, {100, 30});
    // A format without a product of its own: values are copied too.
    check({2, 16, 8, 16, 256, 16, state}, {Format::block(FormatKind::kQ6K)}, 0, comparisons, {40, 1});
  }
}

}  // namespace
}  // namespace tessera::ops_test
