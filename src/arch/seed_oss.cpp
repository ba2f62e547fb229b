// Seed-OSS (2025): Llama's layer with a bias on q, k and v and a head width of its own.
#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  config.fall_back({{"num_key_value_heads", 8}});
  read_common(config, spec, {.context = 524288});
  AttentionSpec attention = read_attention(config, spec, 128);
  attention.qkv_bias = config.presence_or("attention_bias", true);
  attention.rope = spec.add_rope(read_rope(config, attention.head_dim, {}).rope);
  const FfnSpec ffn = read_gated_ffn(config);
  const NormSpec norm = rms_norm(config);
  spec.final_norm = norm;
  for (LayerSpec& layer : spec.layers) add_decoder_layer(layer, norm, attention, ffn);
}

}  // namespace

const Architecture& seed_oss_architecture() {
  static const Architecture architecture = {
      .family = "seed_oss",
      .hf_names = {"SeedOssForCausalLM", "SeedOssModel", "seed_oss"},
      .gguf_names = {"seed_oss"},
      .build = build,
      .gguf = {.rows = {{{"layers.*.ffn.norm"}, {"blk.*.post_attention_norm"}}}}};
  return architecture;
}

}  // namespace tessera
