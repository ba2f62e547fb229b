// StableLM (2 and 3B): LayerNorm with bias, rope on a quarter of each head, optional bias on q, k and v,
// optional LayerNorm of each head of q and k, sequential or parallel.
#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.context = 4096});
  AttentionSpec attention = read_attention(config, spec);
  attention.qkv_bias = config.presence_or("qkv_bias", false);
  attention.rope = spec.add_rope(read_rope(config, attention.head_dim, {.fraction = 0.25}).rope);
  const NormSpec norm = layer_norm(config, Presence::kRequired);
  config.require(!config.has("norm_eps") || config.number_or("norm_eps", 0) == norm.eps, "norm_eps",
                 "the same number as layer_norm_eps, which is the one that counts");
  // A GGUF file says it by its tensors.
  if (config.flag_or("qk_layernorm", config.has_tensor("blk.0.attn_q_norm.weight"))) {
    attention.q_norm = per_head(norm, attention.head_dim, NormSpec::Gain::kPerRow);
    attention.q_norm->bias = Presence::kAbsent;
    attention.k_norm = attention.q_norm;
  }
  const FfnSpec ffn = read_gated_ffn(config);
  spec.final_norm = norm;
  const bool parallel = config.flag_or("use_parallel_residual", false);
  const LayerShape shape = parallel ? LayerShape::kParallel : LayerShape::kSequential;
  for (LayerSpec& layer : spec.layers) add_layer(layer, shape, norm, attention, ffn);
}

}  // namespace

const Architecture& stablelm_architecture() {
  static const Architecture architecture = {
      .family = "stablelm",
      .hf_names = {"StableLmForCausalLM", "StableLmModel", "stablelm"},
      .gguf_names = {"stablelm"},
      .build = build,
      .hf = {.rows = {{{"layers.*.attn.q_norm"}, {"layers.*.self_attn.q_layernorm.norms.#"}},
                      {{"layers.*.attn.k_norm"}, {"layers.*.self_attn.k_layernorm.norms.#"}}}}};
  return architecture;
}

}  // namespace tessera
