// StarCoder 2 (Lozhkov et al., 2024): LayerNorm with bias, grouped-query attention with rope and a window,
// plain tanh-GELU feed-forward, a bias on every matrix. (Converted to GGUF the window is lost.)
#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  config.fall_back({{"num_key_value_heads", 2}});
  read_common(config, spec, {.tied = true, .context = 4096});
  AttentionSpec attention = read_attention(config, spec);
  const Presence bias = config.presence_or("use_bias", true);
  attention.qkv_bias = attention.o_bias = bias;
  attention.rope = spec.add_rope(read_rope(config, attention.head_dim, {}).rope);
  attention.window = config.count_or("sliding_window", 0);
  const FfnSpec ffn = read_plain_ffn(config, "gelu_pytorch_tanh", bias);
  const NormSpec norm = layer_norm(config, Presence::kRequired);
  spec.final_norm = norm;
  for (LayerSpec& layer : spec.layers) add_decoder_layer(layer, norm, attention, ffn);
}

}  // namespace

const Architecture& starcoder2_architecture() {
  static const Architecture architecture = {
      .family = "starcoder2",
      .hf_names = {"Starcoder2ForCausalLM", "Starcoder2Model", "starcoder2"},
      .gguf_names = {"starcoder2"},
      .build = build,
      .blocks = {"attention", "plain feed-forward"},
      .hf = {.rows = {{{"layers.*.ffn.up"}, {"layers.*.mlp.c_fc"}},
                      {{"layers.*.ffn.down"}, {"layers.*.mlp.c_proj"}}}}};
  return architecture;
}

}  // namespace tessera
