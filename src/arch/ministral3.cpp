// Ministral 3: Mistral's layer with yarn rope and queries scaled by position (1 + beta ln(1 + floor(p /
// context))).
#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.context = 262144});
  AttentionSpec attention = read_attention(config, spec, 128);
  const RopeResult rope = read_rope(
      config, attention.head_dim,
      {.theta = 1e6, .layout = config.is_gguf() ? RopeLayout::kInterleaved : RopeLayout::kHalfSplit});
  attention.rope = spec.add_rope(rope.rope);
  attention.query_scale_beta =
      config.is_gguf() ? config.number_or("query_scale_beta", 0.0) : rope.query_scale_beta;
  attention.query_scale_context = rope.rope.original_context;
  attention.window = config.nullable_count_or("sliding_window", 0);
  const FfnSpec ffn = read_gated_ffn(config);
  const NormSpec norm = rms_norm(config, 1e-5);
  spec.final_norm = norm;
  for (LayerSpec& layer : spec.layers) add_decoder_layer(layer, norm, attention, ffn);
}

}  // namespace

const Architecture& ministral3_architecture() {
  static const Architecture architecture = {
      .family = "ministral3",
      .hf_names = {"Ministral3ForCausalLM", "Ministral3Model", "ministral3"},
      .gguf_names = {"mistral3"},
      .build = build};
  return architecture;
}

}  // namespace tessera
