// Phi-3.5-MoE: LayerNorm, biases in attention and head, sparsemixer routing (threshold twice the training jitter).
#include "arch/families.h"
#include "arch/moe_common.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.context = 131072});
  spec.head.bias = config.presence_or("lm_head_bias", false);
  AttentionSpec attention = read_attention(config, spec);
  attention.qkv_bias = attention.o_bias = config.presence_or("attention_bias", false);
  attention.rope = spec.add_rope(read_rope(config, attention.head_dim, {.theta = 1e6}).rope);
  attention.window = config.nullable_count_or("sliding_window", 0);
  MoeSpec moe = read_moe(config);
  moe.score = RouterScore::kSparsemixer;
  moe.sparsemixer_threshold = 2.0 * config.number_or("router_jitter_noise", 0.01);
  (void)config.number_or("input_jitter_noise", 0.0);  // noise of training only
  NormSpec norm = rms_norm(config, 1e-5);
  norm.kind = NormKind::kLayer;
  norm.bias = Presence::kRequired;
  spec.final_norm = norm;
  for (LayerSpec& layer : spec.layers)
    layer.sublayers = {sequential("attn", norm, attention), moe_sublayer(norm, moe, {})};
}

}  // namespace

const Architecture& phimoe_architecture() {
  static const Architecture architecture = {.family = "phimoe",
                                            .hf_names = {"PhimoeForCausalLM", "PhiMoEForCausalLM", "phimoe"},
                                            .build = build,
                                            .blocks = {"attention", "experts"}};
  return architecture;
}

}  // namespace tessera
