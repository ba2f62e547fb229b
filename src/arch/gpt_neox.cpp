// GPT-NeoX and Pythia (Black et al., 2022): LayerNorm, biases, partial rope, qkv fused per head; attention
// and feed-forward in parallel, each with a norm of its own, or sequential.
#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect& dialect) {
  read_common(config, spec, {.context = 2048});
  AttentionSpec attention = read_attention(config, spec);
  dialect.rows.push_back({{"layers.*.attn.q", "layers.*.attn.k", "layers.*.attn.v"},
                          {"layers.*.attention.query_key_value"},
                          Transform::kNone,
                          attention.heads});
  attention.qkv_bias = attention.o_bias = config.presence_or("attention_bias", true);
  attention.rope = spec.add_rope(read_rope(config, attention.head_dim, {.fraction = 0.25}).rope);
  const FfnSpec ffn = read_plain_ffn(config, "gelu", Presence::kRequired);
  const NormSpec norm = layer_norm(config, Presence::kRequired);
  spec.final_norm = norm;
  const bool parallel = config.flag_or("use_parallel_residual", true);
  const LayerShape shape = parallel ? LayerShape::kParallelTwoNorms : LayerShape::kSequential;
  for (LayerSpec& layer : spec.layers) add_layer(layer, shape, norm, attention, ffn);
}

}  // namespace

const Architecture& gpt_neox_architecture() {
  static const Architecture architecture = {
      .family = "gpt_neox",
      .hf_names = {"GPTNeoXForCausalLM", "GPTNeoXModel", "gpt_neox"},
      .build = build,
      .blocks = {"attention", "plain feed-forward"},
      .hf = {.rows = {{{"embed"}, {"embed_in"}},
                      {{"final_norm"}, {"final_layer_norm"}},
                      {{"head"}, {"embed_out"}},
                      {{"layers.*.attn.branch_norm"}, {"layers.*.input_layernorm"}},
                      {{"layers.*.ffn.branch_norm"}, {"layers.*.post_attention_layernorm"}},
                      {{"layers.*.attn.o"}, {"layers.*.attention.dense"}},
                      {{"layers.*.ffn.up"}, {"layers.*.mlp.dense_h_to_4h"}},
                      {{"layers.*.ffn.down"}, {"layers.*.mlp.dense_4h_to_h"}}},
             .prefixes = {"gpt_neox."},
             .ignored = {"*.attention.bias", "*.attention.masked_bias"}}};
  return architecture;
}

}  // namespace tessera
