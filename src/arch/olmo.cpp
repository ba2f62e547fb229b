// OLMo (Groeneveld et al., 2024): LayerNorm without parameters; q, k and v may be clipped. GGUF files permute
// the rows of q and k.
#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.context = 2048});
  AttentionSpec attention = read_attention(config, spec);
  attention.clip = config.nullable_number_or("clip_qkv", 0.0);
  const RopeLayout layout = config.is_gguf() ? RopeLayout::kInterleaved : RopeLayout::kHalfSplit;
  attention.rope = spec.add_rope(read_rope(config, attention.head_dim, {.layout = layout}).rope);
  const FfnSpec ffn = read_gated_ffn(config);
  NormSpec norm = layer_norm(config, Presence::kAbsent);
  norm.gain = Presence::kAbsent;
  spec.final_norm = norm;
  for (LayerSpec& layer : spec.layers) add_decoder_layer(layer, norm, attention, ffn);
}

}  // namespace

const Architecture& olmo_architecture() {
  static const Architecture architecture = {.family = "olmo",
                                            .hf_names = {"OlmoForCausalLM", "OlmoModel", "olmo"},
                                            .gguf_names = {"olmo"},
                                            .build = build};
  return architecture;
}

}  // namespace tessera
