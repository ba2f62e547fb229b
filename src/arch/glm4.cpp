// GLM-4 (0414) and the text model of GLM-OCR: GLM's layer with norms after each block too. OCR has no biases,
// rotates whole heads by three position axes in contiguous sections, and may carry a draft layer at index n.
// GGUF files of models with sections hold q and k permuted for half-split rotation.
#include "arch/families.h"
#include "arch/moe_common.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, const CommonDefaults& defaults, Presence qkv_bias,
           double fraction, double eps) {
  read_common(config, spec, defaults);
  AttentionSpec attention = read_attention(config, spec, 128);
  attention.qkv_bias = qkv_bias;
  const bool permuted = config.is_gguf() && config.has("rope_sections");
  const RopeLayout layout = permuted ? RopeLayout::kHalfSplit : RopeLayout::kInterleaved;
  attention.rope =
      spec.add_rope(read_rope(config, attention.head_dim, {.fraction = fraction, .layout = layout}).rope);
  const FfnSpec ffn = read_gated_ffn(config);
  const NormSpec norm = rms_norm(config, eps);
  spec.final_norm = norm;
  for (LayerSpec& layer : spec.layers) add_decoder_layer(layer, {norm, norm, {}}, attention, ffn);
}

void build_glm4(ConfigReader& config, ModelSpec& spec, Dialect&) {
  config.fall_back({{"num_key_value_heads", 2}});
  build(config, spec, {.context = 131072}, config.presence_or("attention_bias", true), 0.5, 1.5625e-7);
}

void build_glm_ocr(ConfigReader& config, ModelSpec& spec, Dialect& dialect) {
  config.fall_back({{"num_key_value_heads", 8}});
  build(config, spec, {.context = 131072}, Presence::kAbsent, 1.0, 1e-5);
  ignore_draft_layers(config, spec, dialect);
}

}  // namespace

const Architecture& glm4_architecture() {
  static const Architecture architecture = {
      .family = "glm4",
      .hf_names = {"Glm4ForCausalLM", "Glm4Model", "glm4"},
      .gguf_names = {"glm4"},
      .build = build_glm4,
      .gguf = {.rows = {{{"layers.*.ffn.gate", "layers.*.ffn.up"}, {"blk.*.ffn_up"}}}}};
  return architecture;
}

const Architecture& glm_ocr_architecture() {
  static const Architecture architecture = {
      .family = "glm_ocr",
      .hf_names = {"GlmOcrForConditionalGeneration", "GlmOcrTextModel", "glm_ocr", "glm_ocr_text"},
      .build = build_glm_ocr,
      .hf = {.ignored = {"*visual.*"}}};
  return architecture;
}

}  // namespace tessera
