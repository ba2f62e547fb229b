// GLM-4.5 with experts: half-split partial rope, optional RMSNorm on the heads of q and k, the V3-style router, one shared expert.
#include "arch/families.h"
#include "arch/moe_common.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect& dialect) {
  read_common(config, spec, {.context = 131072});
  AttentionSpec attention = read_attention(config, spec, 128);
  attention.qkv_bias = config.presence_or("attention_bias", false);
  const bool normed = config.has_tensor("blk.0.attn_q_norm.weight");
  if (config.flag_or("qk_layernorm", normed))
    attention.q_norm = attention.k_norm = head_rms_norm(config, attention.head_dim, 1e-5);
  attention.rope = spec.add_rope(read_rope(config, attention.head_dim, {.fraction = 0.5}).rope);
  const FfnSpec dense = read_gated_ffn(config);
  MoeSpec moe = read_moe(config);
  read_biased_router(config, moe);
  const int64_t shared_experts = config.count_or("n_shared_experts", 1);
  const int64_t first_sparse = config.count_or("first_k_dense_replace", 1);
  ignore_draft_layers(config, spec, dialect);
  const NormSpec norm = rms_norm(config, 1e-5);
  spec.final_norm = norm;
  for (size_t i = 0; i < spec.layers.size(); ++i)
    spec.layers[i].sublayers = {
        sequential("attn", norm, attention),
        static_cast<int64_t>(i) < first_sparse
            ? sequential("ffn", norm, dense)
            : moe_sublayer(norm, moe, shared_expert(moe, moe.width * shared_experts, false))};
}

}  // namespace

const Architecture& glm4_moe_architecture() {
  static const Architecture architecture = {
      .family = "glm4_moe",
      .hf_names = {"Glm4MoeForCausalLM", "glm4_moe"},
      .gguf_names = {"glm4moe"},
      .build = build,
      .blocks = {"attention", "gated feed-forward", "experts"},
      .gguf = {.rows = {{{"layers.*.ffn.norm"}, {"blk.*.post_attention_norm"}}}}};
  return architecture;
}

}  // namespace tessera
