// OLMoE: RMSNorm over the whole projections of q and k; softmax over all experts, not renormalised unless asked.
#include "arch/families.h"
#include "arch/moe_common.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.context = 4096});
  AttentionSpec attention = read_attention(config, spec);
  attention.qkv_bias = attention.o_bias = config.presence_or("attention_bias", false);
  attention.q_norm = attention.k_norm = rms_norm(config, 1e-5);
  attention.clip = config.number_or("clip_qkv", 0.0);
  attention.clip_place = ClipPlace::kNormed;
  attention.rope = spec.add_rope(read_rope(config, attention.head_dim, {}).rope);
  MoeSpec moe = read_moe(config);
  moe.renormalise = config.flag_or("norm_topk_prob", false);
  const NormSpec norm = rms_norm(config, 1e-5);
  spec.final_norm = norm;
  for (LayerSpec& layer : spec.layers)
    layer.sublayers = {sequential("attn", norm, attention), moe_sublayer(norm, moe, {})};
}

}  // namespace

const Architecture& olmoe_architecture() {
  static const Architecture architecture = {.family = "olmoe",
                                            .hf_names = {"OlmoeForCausalLM", "OlmoeModel", "olmoe"},
                                            .gguf_names = {"olmoe"},
                                            .build = build,
                                            .blocks = {"attention", "experts"}};
  return architecture;
}

}  // namespace tessera
