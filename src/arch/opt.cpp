// OPT (Zhang et al., 2022): learned positions from row 2 on, LayerNorm before each block or after its
// residual sum, ReLU; a narrower embedding and head with projections in the smallest model.
#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.tied = true, .context = 2048});
  spec.embedding.learned_positions = spec.context + 2;
  spec.embedding.position_offset = 2;
  const int64_t width = config.size_or("word_embed_proj_dim", spec.hidden);
  if (width != spec.hidden) spec.embedding.width = spec.head.width = width;
  AttentionSpec attention = read_attention(config, spec);
  const Presence bias = config.presence_or("use_bias", true);
  attention.qkv_bias = attention.o_bias = bias;
  const FfnSpec ffn = read_plain_ffn(config, "relu", bias);
  const NormSpec norm = layer_norm(config, Presence::kRequired);
  const bool before = config.flag_or("do_layer_norm_before", true);
  if (before && !config.flag_or("_remove_final_layer_norm", false)) spec.final_norm = norm;
  for (LayerSpec& layer : spec.layers) {
    if (before)
      add_decoder_layer(layer, norm, attention, ffn);
    else
      add_decoder_layer(layer, {{}, {}, norm}, attention, ffn);
  }
}

}  // namespace

const Architecture& opt_architecture() {
  static const Architecture architecture = {
      .family = "opt",
      .hf_names = {"OPTForCausalLM", "OPTModel", "opt"},
      .build = build,
      .blocks = {"attention", "plain feed-forward"},
      .hf = {.rows = {{{"embed.positions"}, {"embed_positions"}},
                      {{"embed.projection"}, {"project_in"}},
                      {{"head.projection"}, {"project_out"}},
                      {{"final_norm"}, {"final_layer_norm"}},
                      {{"layers.*.attn.norm"}, {"layers.*.self_attn_layer_norm"}},
                      {{"layers.*.attn.out_norm"}, {"layers.*.self_attn_layer_norm"}},
                      {{"layers.*.attn.o"}, {"layers.*.self_attn.out_proj"}},
                      {{"layers.*.ffn.norm"}, {"layers.*.final_layer_norm"}},
                      {{"layers.*.ffn.out_norm"}, {"layers.*.final_layer_norm"}},
                      {{"layers.*.ffn.up"}, {"layers.*.fc1"}},
                      {{"layers.*.ffn.down"}, {"layers.*.fc2"}}},
             .prefixes = {"model.decoder.", "decoder."}}};
  return architecture;
}

}  // namespace tessera
