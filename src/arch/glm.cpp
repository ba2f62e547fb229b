// GLM (4-9B, Edge): Llama's layer with interleaved rope on half of each head, a bias on q, k and v, and gate
// and up in one matrix.
#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  config.fall_back({{"num_key_value_heads", 2}});
  read_common(config, spec, {.context = 131072});
  AttentionSpec attention = read_attention(config, spec, 128);
  attention.qkv_bias = config.presence_or("attention_bias", true);
  attention.rope = spec.add_rope(
      read_rope(config, attention.head_dim, {.fraction = 0.5, .layout = RopeLayout::kInterleaved}).rope);
  const FfnSpec ffn = read_gated_ffn(config);
  const NormSpec norm = rms_norm(config, 1.5625e-7);
  spec.final_norm = norm;
  for (LayerSpec& layer : spec.layers) add_decoder_layer(layer, norm, attention, ffn);
}

}  // namespace

const Architecture& glm_architecture() {
  static const Architecture architecture = {
      .family = "glm",
      .hf_names = {"GlmForCausalLM", "GlmModel", "glm"},
      .gguf_names = {"chatglm"},
      .build = build,
      .gguf = {.rows = {{{"layers.*.ffn.gate", "layers.*.ffn.up"}, {"blk.*.ffn_up"}}}}};
  return architecture;
}

}  // namespace tessera
