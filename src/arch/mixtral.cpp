// Mixtral: Mistral's layer with experts, softmax over the chosen ones (equal to renormalising). GGUF files bear Llama's name.
#include "arch/families.h"
#include "arch/moe_common.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.context = 131072});
  AttentionSpec attention = read_attention(config, spec);
  const RopeLayout layout = config.is_gguf() ? RopeLayout::kInterleaved : RopeLayout::kHalfSplit;
  attention.rope =
      spec.add_rope(read_rope(config, attention.head_dim, {.theta = 1e6, .layout = layout}).rope);
  attention.window = config.nullable_count_or("sliding_window", 0);
  MoeSpec moe = read_moe(config);
  moe.score = RouterScore::kTopKSoftmax;
  (void)config.number_or("router_jitter_noise", 0.0);  // noise of training only
  const NormSpec norm = rms_norm(config, 1e-5);
  spec.final_norm = norm;
  for (LayerSpec& layer : spec.layers)
    layer.sublayers = {sequential("attn", norm, attention), moe_sublayer(norm, moe, {})};
}

}  // namespace

const Architecture& mixtral_architecture() {
  static const Architecture architecture = {.family = "mixtral",
                                            .hf_names = {"MixtralForCausalLM", "MixtralModel", "mixtral"},
                                            .gguf_names = {"llama"},
                                            .gguf_key = "num_experts",
                                            .build = build,
                                            .blocks = {"attention", "experts"}};
  return architecture;
}

}  // namespace tessera
