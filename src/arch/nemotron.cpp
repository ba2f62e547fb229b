// Nemotron (3 8B, 4, Minitron): LayerNorm with bias whose file holds gain - 1 (converters to GGUF add the 1),
// a plain squared-ReLU feed-forward, partial rope.
#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.context = 4096});
  AttentionSpec attention = read_attention(config, spec);
  attention.rope = spec.add_rope(read_rope(config, attention.head_dim, {.fraction = 0.5}).rope);
  const FfnSpec ffn = read_plain_ffn(config, "relu2", Presence::kAbsent);
  NormSpec norm = layer_norm(config, Presence::kRequired);
  if (!config.is_gguf()) norm.eps = config.number_or("norm_eps", 1e-5);
  (void)config.has("rms_norm_eps");  // GGUF files repeat the number under this name
  spec.final_norm = norm;
  for (LayerSpec& layer : spec.layers) add_decoder_layer(layer, norm, attention, ffn);
}

}  // namespace

const Architecture& nemotron_architecture() {
  static const Architecture architecture = {
      .family = "nemotron",
      .hf_names = {"NemotronForCausalLM", "NemotronModel", "nemotron"},
      .gguf_names = {"nemotron"},
      .build = build,
      .blocks = {"attention", "plain feed-forward"},
      .hf = {.rows = {{{"final_norm"}, {"norm"}, Transform::kAddOne},
                      {{"layers.*.attn.norm"}, {"layers.*.input_layernorm"}, Transform::kAddOne},
                      {{"layers.*.ffn.norm"}, {"layers.*.post_attention_layernorm"}, Transform::kAddOne}}}};
  return architecture;
}

}  // namespace tessera
