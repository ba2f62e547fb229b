// Phi-3 and 4: Llama's layer with fused qkv and gate_up matrices, partial rope, longrope and a window on
// every layer.
#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.context = 4096});
  AttentionSpec attention = read_attention(config, spec);
  attention.rope = spec.add_rope(read_rope(config, attention.head_dim, {}).rope);
  attention.window = config.count_or("sliding_window", 0);
  const FfnSpec ffn = read_gated_ffn(config);
  const NormSpec norm = rms_norm(config, 1e-5);
  spec.final_norm = norm;
  for (LayerSpec& layer : spec.layers) add_decoder_layer(layer, norm, attention, ffn);
}

}  // namespace

const Architecture& phi3_architecture() {
  static const Architecture architecture = {
      .family = "phi3",
      .hf_names = {"Phi3ForCausalLM", "Phi3Model", "phi3"},
      .gguf_names = {"phi3"},
      .build = build,
      .gguf = {.rows = {{{"layers.*.ffn.gate", "layers.*.ffn.up"}, {"blk.*.ffn_up"}}}}};
  return architecture;
}

}  // namespace tessera
