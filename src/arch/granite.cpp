// Granite (dense): Llama's layer with four multipliers: on the embedding, on what each block adds to the
// residual, on the scores and (as a divisor) on the logits. GGUF files permute the rows of q and k.
#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.context = 2048});
  spec.embedding.scale = config.number_or("embedding_multiplier", 1.0);
  const char* divisor = config.is_gguf() ? "logit_scale" : "logits_scaling";
  spec.head.scale = 1.0 / config.number_or(divisor, 1.0);
  AttentionSpec attention = read_attention(config, spec);
  attention.scale = config.number_or("attention_multiplier", 1.0);
  const RopeLayout layout = config.is_gguf() ? RopeLayout::kInterleaved : RopeLayout::kHalfSplit;
  attention.rope = spec.add_rope(read_rope(config, attention.head_dim, {.layout = layout}).rope);
  const FfnSpec ffn = read_gated_ffn(config);
  const NormSpec norm = rms_norm(config);
  spec.final_norm = norm;
  const double alpha = config.number_or("residual_multiplier", 1.0);
  for (LayerSpec& layer : spec.layers) {
    add_decoder_layer(layer, norm, attention, ffn);
    for (Sublayer& sublayer : layer.sublayers) sublayer.alpha = alpha;
  }
}

}  // namespace

const Architecture& granite_architecture() {
  static const Architecture architecture = {.family = "granite",
                                            .hf_names = {"GraniteForCausalLM", "GraniteModel", "granite"},
                                            .gguf_names = {"granite"},
                                            .build = build,
                                            .hf = {},
                                            .gguf = {}};
  return architecture;
}

}  // namespace tessera
