// ERNIE 4.5 (dense): Llama's layer with interleaved rope and a head width of its own.
#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  config.fall_back({{"num_key_value_heads", 2}});
  read_common(config, spec, {.tied = true, .context = 131072});
  AttentionSpec attention = read_attention(config, spec, 128);
  attention.rope = spec.add_rope(
      read_rope(config, attention.head_dim, {.theta = 5e5, .layout = RopeLayout::kInterleaved}).rope);
  const FfnSpec ffn = read_gated_ffn(config);
  const NormSpec norm = rms_norm(config, 1e-5);
  spec.final_norm = norm;
  for (LayerSpec& layer : spec.layers) add_decoder_layer(layer, norm, attention, ffn);
}

}  // namespace

const Architecture& ernie4_5_architecture() {
  static const Architecture architecture = {.family = "ernie4_5",
                                            .hf_names = {"Ernie4_5ForCausalLM", "Ernie4_5Model", "ernie4_5"},
                                            .gguf_names = {"ernie4_5"},
                                            .build = build};
  return architecture;
}

}  // namespace tessera
