// Gemma (2024): Llama's layer with norms that store gain - 1 (converters to GGUF add the 1), the embedding
// scaled by sqrt(hidden) in float32 and a tanh-GELU gate. Its first configs say "gelu" and mean the tanh
// form.
#include <cmath>

#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.tied = true, .context = 8192});
  spec.embedding.scale = std::sqrt(static_cast<double>(spec.hidden));
  AttentionSpec attention = read_attention(config, spec, 256);
  attention.rope = spec.add_rope(read_rope(config, attention.head_dim, {}).rope);
  FfnSpec ffn = read_gated_ffn(config, "gelu_pytorch_tanh");
  if (!config.has("hidden_activation") && ffn.activation == Activation::kGeluErf)
    ffn.activation = Activation::kGeluTanh;
  const NormSpec norm = rms_norm(config);
  spec.final_norm = norm;
  for (LayerSpec& layer : spec.layers) add_decoder_layer(layer, norm, attention, ffn);
}

}  // namespace

const Architecture& gemma_architecture() {
  static const Architecture architecture = {
      .family = "gemma",
      .hf_names = {"GemmaForCausalLM", "GemmaModel", "gemma"},
      .gguf_names = {"gemma"},
      .build = build,
      .hf = {.rows = {{{"final_norm"}, {"norm"}, Transform::kAddOne},
                      {{"layers.*.attn.norm"}, {"layers.*.input_layernorm"}, Transform::kAddOne},
                      {{"layers.*.ffn.norm"}, {"layers.*.post_attention_layernorm"}, Transform::kAddOne}}}};
  return architecture;
}

}  // namespace tessera
