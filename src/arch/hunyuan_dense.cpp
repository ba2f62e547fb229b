// Hunyuan (dense, V1): Llama's layer with RMSNorm on the heads of q and k after rope; a fixed alpha grows the
// rope's base.
#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.context = 2048});
  AttentionSpec attention = read_attention(config, spec);
  attention.qkv_bias = attention.o_bias = config.presence_or("attention_bias", false);
  attention.rope = spec.add_rope(read_rope(config, attention.head_dim, {}).rope);
  (void)config.flag_or("qk_layernorm",
                       true);  // the reference norms whatever it says; the gains are in every file
  attention.q_norm = attention.k_norm = head_rms_norm(config, attention.head_dim, 1e-5);
  attention.norm_order = NormOrder::kAfterRope;
  const FfnSpec ffn = read_gated_ffn(config);
  const NormSpec norm = rms_norm(config, 1e-5);
  spec.final_norm = norm;
  for (LayerSpec& layer : spec.layers) add_decoder_layer(layer, norm, attention, ffn);
}

}  // namespace

const Architecture& hunyuan_dense_architecture() {
  static const Architecture architecture = {
      .family = "hunyuan_dense",
      .hf_names = {"HunYuanDenseV1ForCausalLM", "HunYuanDenseV1Model", "hunyuan_v1_dense"},
      .gguf_names = {"hunyuan-dense"},
      .build = build,
      .hf = {.rows = {{{"layers.*.attn.q_norm"}, {"layers.*.self_attn.query_layernorm"}},
                      {{"layers.*.attn.k_norm"}, {"layers.*.self_attn.key_layernorm"}}}}};
  return architecture;
}

}  // namespace tessera
