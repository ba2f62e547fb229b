// Falcon (Almazrouei et al., 2023). 7B: one norm feeds attention with a single key/value head and the feed-
// forward in parallel. 40B and 180B: a norm for each of the two. RW: sequential, biases, and ALiBi that is
// added before the softmax scale. The fused qkv is laid out by groups; GGUF converters write q, k, v one
// after another.
#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

LayerShape read_shape(ConfigReader& config) {
  if (config.is_gguf())  // 40B is known by its second norm
    return config.has_tensor("blk.0.attn_norm_2.weight") ? LayerShape::kParallelTwoNorms
                                                         : LayerShape::kParallel;
  const bool grouped = config.flag_or("new_decoder_architecture", false);
  const bool parallel = config.flag_or("parallel_attn", true);
  const int64_t norms = config.size_or("num_ln_in_parallel_attn", grouped ? 2 : 1);
  config.require(norms == 1 || (norms == 2 && grouped), "num_ln_in_parallel_attn",
                 "1, or 2 with new_decoder_architecture");
  if (norms == 2) return LayerShape::kParallelTwoNorms;
  return parallel ? LayerShape::kParallel : LayerShape::kSequential;
}

void read_heads(ConfigReader& config, AttentionSpec& attention, Dialect& dialect) {
  const bool grouped = config.flag_or("new_decoder_architecture", false);
  const bool multi_query = config.flag_or("multi_query", true);
  if (!grouped) attention.kv_heads = multi_query ? 1 : attention.heads;
  dialect.rows.push_back({{"layers.*.attn.q", "layers.*.attn.k", "layers.*.attn.v"},
                          {"h.*.self_attention.query_key_value"},
                          Transform::kNone,
                          attention.kv_heads});
}

void build(ConfigReader& config, ModelSpec& spec, Dialect& dialect) {
  read_common(config, spec, {.tied = true, .context = 2048});
  AttentionSpec attention = read_attention(config, spec);
  if (config.is_gguf())
    config.require(config.text_or("tensor_data_layout", "jploski") == "jploski", "tensor_data_layout",
                   "jploski");
  else
    read_heads(config, attention, dialect);
  const Presence bias = config.presence_or("use_bias", false);
  attention.qkv_bias = attention.o_bias = bias;
  const RopeSpec rope = read_rope(config, attention.head_dim, {}).rope;
  if (config.flag_or("alibi", false))
    attention.alibi = Alibi::kBeforeScale;
  else
    attention.rope = spec.add_rope(rope);
  FfnSpec ffn;
  ffn.width = config.size_or("intermediate_size", 4 * spec.hidden);
  ffn.gated = false;
  ffn.activation = config.choice<Activation>("activation", "gelu", {{"gelu", Activation::kGeluErf}});
  ffn.up_bias = ffn.down_bias = bias;
  const NormSpec norm = layer_norm(config, Presence::kRequired);
  spec.final_norm = norm;
  const LayerShape shape = read_shape(config);
  for (LayerSpec& layer : spec.layers) add_layer(layer, shape, norm, attention, ffn);
}

}  // namespace

const Architecture& falcon_architecture() {
  static const Architecture architecture = {
      .family = "falcon",
      .hf_names = {"FalconForCausalLM", "FalconModel", "falcon", "RWForCausalLM", "RefinedWeb",
                   "RefinedWebModel"},
      .gguf_names = {"falcon"},
      .build = build,
      .blocks = {"attention", "plain feed-forward"},
      .hf = {.rows = {{{"embed"}, {"word_embeddings"}},
                      {{"final_norm"}, {"ln_f"}},
                      {{"layers.*.attn.norm"}, {"h.*.input_layernorm"}},
                      {{"layers.*.attn.branch_norm"}, {"h.*.ln_attn"}},
                      {{"layers.*.ffn.branch_norm"}, {"h.*.ln_mlp"}},
                      {{"layers.*.ffn.norm"}, {"h.*.post_attention_layernorm"}},
                      {{"layers.*.attn.o"}, {"h.*.self_attention.dense"}},
                      {{"layers.*.ffn.up"}, {"h.*.mlp.dense_h_to_4h"}},
                      {{"layers.*.ffn.down"}, {"h.*.mlp.dense_4h_to_h"}}},
             .prefixes = {"transformer."}},
      .gguf = {.rows = {{{"layers.*.attn.branch_norm"}, {"blk.*.attn_norm_2"}},
                        {{"layers.*.ffn.branch_norm"}, {"blk.*.attn_norm"}}}}};
  return architecture;
}

}  // namespace tessera
