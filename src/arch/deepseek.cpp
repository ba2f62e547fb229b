// DeepSeek V2 and V3: latent attention; dense first layers, then experts with ungated shared ones. V2 scores by softmax, greedy or
// limited to groups (by their best expert); V3 by sigmoid with a bias for choosing only. Rope is interleaved on disk. GGUF files of both
// bear one name, and may hold kv_b as two tensors, the keys' part transposed.
#include <cmath>

#include "arch/families.h"
#include "arch/moe_common.h"

namespace tessera {
namespace {

MlaSpec read_mla(ConfigReader& config, ModelSpec& spec, Dialect& dialect) {
  MlaSpec mla;
  mla.heads = config.size("num_attention_heads");
  mla.q_lora = config.nullable_count_or("q_lora_rank", 1536);
  mla.kv_lora = config.size_or("kv_lora_rank", 512);
  mla.rope_dim = config.size_or(config.is_gguf() ? "rotary_dim" : "qk_rope_head_dim", 64);
  const int64_t cached = config.count_or("head_dim", mla.rope_dim);  // of what is cached, or the head itself
  const int64_t cached_value = config.count_or("value_head_dim", 128);
  mla.nope_dim = config.size_or("qk_nope_head_dim", 128);
  if (config.is_gguf()) mla.nope_dim = config.size_or("qk_head_dim", cached) - mla.rope_dim;
  mla.value_dim = config.size_or("v_head_dim", config.is_gguf() ? cached_value : 128);
  const int64_t head = config.size_or("qk_head_dim", mla.nope_dim + mla.rope_dim);
  config.require(mla.nope_dim > 0 && head == mla.nope_dim + mla.rope_dim, "qk_head_dim",
                 "qk_nope_head_dim + qk_rope_head_dim");
  (void)config.count_or("num_key_value_heads", mla.heads);  // follows from the rest
  mla.bias = config.presence_or("attention_bias", false);
  mla.latent_norm = rms_norm(config);
  const bool interleaved = config.flag_or("rope_interleave", true);
  const RopeResult rope = read_rope(
      config, mla.rope_dim, {.layout = interleaved ? RopeLayout::kInterleaved : RopeLayout::kHalfSplit});
  mla.rope = spec.add_rope(rope.rope);
  mla.scale = rope.softmax_scale / std::sqrt(static_cast<double>(mla.nope_dim + mla.rope_dim));
  if (config.is_gguf())
    dialect.rows.push_back({.slots = {"layers.*.attn.kv_b"},
                            .groups = mla.heads,
                            .joined = {{"blk.*.attn_k_b", mla.nope_dim, Transform::kTranspose},
                                       {"blk.*.attn_v_b", mla.value_dim}}});
  return mla;
}

void read_v2_router(ConfigReader& config, MoeSpec& moe) {
  moe.score = config.choice<RouterScore>("scoring_func", "softmax", {{"softmax", RouterScore::kSoftmax}});
  moe.renormalise = config.flag_or("norm_topk_prob", false);
  moe.scale = config.number_or("routed_scaling_factor", 1.0);
  const int64_t groups = config.nullable_count_or("n_group", 1);
  const int64_t top_groups = config.nullable_count_or("topk_group", 1);
  // A GGUF file says no more than the groups.
  const char* method = config.is_gguf() && groups > 1 ? "group_limited_greedy" : "greedy";
  if (!config.choice<bool>("topk_method", method, {{"greedy", false}, {"group_limited_greedy", true}}))
    return;
  moe.groups = groups;
  moe.top_groups = top_groups;
  check_groups(config, moe);
}

void build(ConfigReader& config, ModelSpec& spec, Dialect& dialect, bool third) {
  read_common(config, spec, {.context = third ? 4096 : 2048});
  const MlaSpec mla = read_mla(config, spec, dialect);
  const FfnSpec dense = read_gated_ffn(config);
  MoeSpec moe = read_moe(config);
  const int64_t first_sparse = config.count_or("first_k_dense_replace", 0);
  const int64_t frequency = config.size_or("moe_layer_freq", 1);
  if (third || has_selection_bias(config, first_sparse))
    read_biased_router(config, moe);
  else
    read_v2_router(config, moe);
  const int64_t shared_experts = config.nullable_count_or("n_shared_experts", 1);
  std::optional<FfnSpec> shared;
  if (shared_experts > 0) shared = shared_expert(moe, moe.width * shared_experts, false);
  ignore_draft_layers(config, spec, dialect);
  const NormSpec norm = rms_norm(config);
  spec.final_norm = norm;
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const auto layer = static_cast<int64_t>(i);
    const bool sparse = layer >= first_sparse && layer % frequency == 0;
    spec.layers[i].sublayers = {sequential("attn", norm, mla),
                                sparse ? moe_sublayer(norm, moe, shared) : sequential("ffn", norm, dense)};
  }
}

void build_v2(ConfigReader& config, ModelSpec& spec, Dialect& dialect) {
  build(config, spec, dialect, false);
}
void build_v3(ConfigReader& config, ModelSpec& spec, Dialect& dialect) {
  build(config, spec, dialect, true);
}

Dialect hf() {
  return {.rows = {{{"layers.*.attn.q_a"}, {"layers.*.self_attn.q_a_proj"}},
                   {{"layers.*.attn.q_a_norm"}, {"layers.*.self_attn.q_a_layernorm"}},
                   {{"layers.*.attn.q_b"}, {"layers.*.self_attn.q_b_proj"}},
                   {{"layers.*.attn.kv_a"}, {"layers.*.self_attn.kv_a_proj_with_mqa"}},
                   {{"layers.*.attn.kv_a_norm"}, {"layers.*.self_attn.kv_a_layernorm"}},
                   {{"layers.*.attn.kv_b"}, {"layers.*.self_attn.kv_b_proj"}}}};
}

}  // namespace

const Architecture& deepseek_v2_architecture() {
  static const Architecture architecture = {.family = "deepseek_v2",
                                            .hf_names = {"DeepseekV2ForCausalLM", "deepseek_v2"},
                                            .gguf_names = {"deepseek2"},
                                            .build = build_v2,
                                            .blocks = {"latent attention", "gated feed-forward", "experts"},
                                            .hf = hf()};
  return architecture;
}

const Architecture& deepseek_v3_architecture() {
  static const Architecture architecture = {.family = "deepseek_v3",
                                            .hf_names = {"DeepseekV3ForCausalLM", "deepseek_v3"},
                                            .build = build_v3,
                                            .blocks = {"latent attention", "gated feed-forward", "experts"},
                                            .hf = hf()};
  return architecture;
}

}  // namespace tessera
