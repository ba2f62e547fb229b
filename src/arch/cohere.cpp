// Cohere Command R: LayerNorm without bias feeds attention and feed-forward in parallel, interleaved rope,
// scaled logits, optional LayerNorm on the heads of q and k with a gain of its own for each head.
#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.tied = true, .context = 8192});
  spec.head.scale = config.number_or("logit_scale", 0.0625);
  AttentionSpec attention = read_attention(config, spec);
  attention.rope =
      spec.add_rope(read_rope(config, attention.head_dim, {.layout = RopeLayout::kInterleaved}).rope);
  const NormSpec norm = layer_norm(config, Presence::kAbsent);
  // A GGUF file says it by its tensors.
  if (config.flag_or("qk_layernorm", config.has_tensor("blk.0.attn_q_norm.weight")))
    attention.q_norm = attention.k_norm = per_head(norm, attention.head_dim, NormSpec::Gain::kPerRow);
  const FfnSpec ffn = read_gated_ffn(config);
  spec.final_norm = norm;
  for (LayerSpec& layer : spec.layers) add_layer(layer, LayerShape::kParallel, norm, attention, ffn);
}

}  // namespace

const Architecture& cohere_architecture() {
  static const Architecture architecture = {.family = "cohere",
                                            .hf_names = {"CohereForCausalLM", "CohereModel", "cohere"},
                                            .gguf_names = {"command-r"},
                                            .build = build};
  return architecture;
}

}  // namespace tessera
