// GPT-2 (Radford et al., 2019): learned positions, LayerNorm, biases, plain tanh-GELU feed-forward; matrices
// are stored transposed (GGUF converters turn them).
#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.tied = true, .context = 1024});
  spec.embedding.learned_positions = spec.context;
  AttentionSpec attention = read_attention(config, spec);
  attention.qkv_bias = attention.o_bias = Presence::kRequired;
  const double scale = config.flag_or("scale_attn_weights", true) ? attention.scale : 1.0;
  const bool by_layer = config.flag_or("scale_attn_by_inverse_layer_idx", false);
  FfnSpec ffn;
  ffn.width = config.size_or("intermediate_size", 4 * spec.hidden);
  ffn.gated = false;
  ffn.activation = read_activation(config, "gelu_new");
  ffn.up_bias = ffn.down_bias = Presence::kRequired;
  const NormSpec norm = layer_norm(config, Presence::kRequired);
  spec.final_norm = norm;
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    attention.scale = by_layer ? scale / static_cast<double>(i + 1) : scale;
    add_decoder_layer(spec.layers[i], norm, attention, ffn);
  }
}

}  // namespace

const Architecture& gpt2_architecture() {
  static const Architecture architecture = {
      .family = "gpt2",
      .hf_names = {"GPT2LMHeadModel", "GPT2Model", "gpt2"},
      .gguf_names = {"gpt2"},
      .build = build,
      .blocks = {"attention", "plain feed-forward"},
      .hf = {.rows = {{{"embed"}, {"wte"}},
                      {{"embed.positions"}, {"wpe"}},
                      {{"final_norm"}, {"ln_f"}},
                      {{"layers.*.attn.norm"}, {"h.*.ln_1"}},
                      {{"layers.*.attn.q", "layers.*.attn.k", "layers.*.attn.v"},
                       {"h.*.attn.c_attn"},
                       Transform::kTranspose},
                      {{"layers.*.attn.o"}, {"h.*.attn.c_proj"}, Transform::kTranspose},
                      {{"layers.*.ffn.norm"}, {"h.*.ln_2"}},
                      {{"layers.*.ffn.up"}, {"h.*.mlp.c_fc"}, Transform::kTranspose},
                      {{"layers.*.ffn.down"}, {"h.*.mlp.c_proj"}, Transform::kTranspose}},
             .prefixes = {"transformer."}}};
  return architecture;
}

}  // namespace tessera
