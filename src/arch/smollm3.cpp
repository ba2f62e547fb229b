// SmolLM3: Llama's layer, tied head, and every fourth layer without rotation.
#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.tied = true, .context = 32768});
  AttentionSpec attention = read_attention(config, spec);
  attention.qkv_bias = attention.o_bias = config.presence_or("attention_bias", false);
  const int rope = spec.add_rope(
      read_rope(
          config, attention.head_dim,
          {.theta = 2e6, .layout = config.is_gguf() ? RopeLayout::kInterleaved : RopeLayout::kHalfSplit})
          .rope);
  // 1: this layer rotates. GGUF files do not say; there the published pattern holds.
  const std::vector<double> rotates = config.numbers("no_rope_layers");
  const int64_t interval = config.size_or("no_rope_layer_interval", 4);
  config.require(rotates.empty() || rotates.size() == spec.layers.size(), "no_rope_layers",
                 "one entry per layer");
  const std::vector<int64_t> windows = late_layer_windows(config, spec);
  FfnSpec ffn = read_gated_ffn(config);
  ffn.up_bias = ffn.down_bias = config.presence_or("mlp_bias", false);
  const NormSpec norm = rms_norm(config);
  spec.final_norm = norm;
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const bool rotate = i < rotates.size() ? rotates[i] != 0.0 : static_cast<int64_t>(i + 1) % interval != 0;
    if (rotate)
      attention.rope = rope;
    else
      attention.rope.reset();
    attention.window = windows[i];
    add_decoder_layer(spec.layers[i], norm, attention, ffn);
  }
}

}  // namespace

const Architecture& smollm3_architecture() {
  static const Architecture architecture = {.family = "smollm3",
                                            .hf_names = {"SmolLM3ForCausalLM", "SmolLM3Model", "smollm3"},
                                            .gguf_names = {"smollm3"},
                                            .build = build};
  return architecture;
}

}  // namespace tessera
