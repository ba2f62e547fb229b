// BLOOM (2022): ALiBi instead of positions, LayerNorm with bias (on the embedding too), tanh-GELU, qkv fused
// per head (GGUF converters write q, k, v one after another); the residual may be taken from the normed
// input.
#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect& dialect) {
  read_common(config, spec, {.tied = true, .context = 2048});
  AttentionSpec attention = read_attention(config, spec);
  if (!config.is_gguf())
    dialect.rows.push_back({{"layers.*.attn.q", "layers.*.attn.k", "layers.*.attn.v"},
                            {"h.*.self_attention.query_key_value"},
                            Transform::kNone,
                            attention.heads});
  attention.qkv_bias = attention.o_bias = Presence::kRequired;
  attention.alibi = Alibi::kAfterScale;
  FfnSpec ffn;
  ffn.width = config.size_or("intermediate_size", 4 * spec.hidden);
  ffn.gated = false;
  ffn.activation = Activation::kGeluTanh;
  ffn.up_bias = ffn.down_bias = Presence::kRequired;
  const NormSpec norm = layer_norm(config, Presence::kRequired);
  spec.embedding.norm = spec.final_norm = norm;
  const bool from_norm = config.flag_or("apply_residual_connection_post_layernorm", false);
  for (LayerSpec& layer : spec.layers) {
    add_decoder_layer(layer, norm, attention, ffn);
    if (!from_norm) continue;
    for (Sublayer& sublayer : layer.sublayers) sublayer.residual = ResidualFrom::kNormedInput;
  }
}

}  // namespace

const Architecture& bloom_architecture() {
  static const Architecture architecture = {
      .family = "bloom",
      .hf_names = {"BloomForCausalLM", "BloomModel", "bloom"},
      .gguf_names = {"bloom"},
      .build = build,
      .blocks = {"attention", "plain feed-forward"},
      .hf = {.rows = {{{"embed"}, {"word_embeddings"}},
                      {{"embed.norm"}, {"word_embeddings_layernorm"}},
                      {{"final_norm"}, {"ln_f"}},
                      {{"layers.*.attn.norm"}, {"h.*.input_layernorm"}},
                      {{"layers.*.attn.o"}, {"h.*.self_attention.dense"}},
                      {{"layers.*.ffn.norm"}, {"h.*.post_attention_layernorm"}},
                      {{"layers.*.ffn.up"}, {"h.*.mlp.dense_h_to_4h"}},
                      {{"layers.*.ffn.down"}, {"h.*.mlp.dense_4h_to_h"}}},
             .prefixes = {"transformer."}}};
  return architecture;
}

}  // namespace tessera
