// LFM2 and LFM2-MoE: gated short convolutions, every few layers attention with RMSNorm on the heads of q and k; the dense width is
// adjusted (2/3, then rounded up; in GGUF files it is already); experts are chosen by sigmoid + bias.
#include "arch/families.h"
#include "arch/moe_common.h"

namespace tessera {
namespace {

int64_t adjusted_width(ConfigReader& config) {
  int64_t width = config.has("block_ff_dim") ? config.size("block_ff_dim") : config.size("intermediate_size");
  const bool adjust = config.flag_or("block_auto_adjust_ff_dim", true);
  const double multiplier = config.number_or("block_ffn_dim_multiplier", 1.0);
  const int64_t multiple = config.size_or("block_multiple_of", 256);
  if (!adjust || config.is_gguf()) return width;
  width = static_cast<int64_t>(multiplier * static_cast<double>(2 * width / 3));
  return (width + multiple - 1) / multiple * multiple;
}

std::vector<bool> listed_layers(ConfigReader& config, const ModelSpec& spec) {
  std::vector<bool> attends(spec.layers.size(), false);
  config.require(config.is_gguf() || config.has("layer_types") || config.has("full_attn_idxs"), "layer_types",
                 "layer_types or full_attn_idxs");
  for (const double index : config.numbers("full_attn_idxs"))
    if (index >= 0 && index < static_cast<double>(attends.size())) attends[static_cast<size_t>(index)] = true;
  return attends;
}

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.tied = true, .context = 128000});
  NormSpec norm;
  norm.eps = config.number_or(config.is_gguf() ? "rms_norm_eps" : "norm_eps", 1e-5);
  spec.final_norm = norm;
  const std::vector<bool> attends = attention_layers(config, {"conv"}, listed_layers(config, spec));
  AttentionSpec attention = read_attention(config, spec);
  attention.q_norm = attention.k_norm = per_head(norm, attention.head_dim);
  attention.rope = spec.add_rope(read_rope(config, attention.head_dim, {.theta = 1e6}).rope);
  ShortConvSpec conv;
  conv.kernel = config.size_or("conv_L_cache", 3);
  conv.bias = config.presence_or("conv_bias", false);
  const bool experts = config.has("num_experts");
  FfnSpec dense;
  dense.width = experts ? config.size("intermediate_size") : adjusted_width(config);
  auto dense_layers = static_cast<int64_t>(spec.layers.size());
  MoeSpec moe;
  if (experts) {
    moe = read_moe(config);
    moe.score = config.choice<RouterScore>("scoring_func", "sigmoid", {{"sigmoid", RouterScore::kSigmoid}});
    moe.selection_bias = config.presence_or("use_expert_bias", true);
    moe.renormalise = config.flag_or("norm_topk_prob", true);
    moe.renormalise_eps = 1e-6;
    moe.scale = config.number_or("routed_scaling_factor", 1.0);
    dense_layers = config.count_or("first_k_dense_replace", 2);
  }
  for (size_t i = 0; i < spec.layers.size(); ++i)
    spec.layers[i].sublayers = {
        attends[i] ? sequential("attn", norm, attention) : sequential("attn", norm, conv),
        static_cast<int64_t>(i) < dense_layers ? sequential("ffn", norm, dense)
                                               : moe_sublayer(norm, moe, {})};
}

}  // namespace

const Architecture& lfm2_architecture() {
  static const Architecture architecture = {
      .family = "lfm2",
      .hf_names = {"Lfm2ForCausalLM", "lfm2", "Lfm2MoeForCausalLM", "lfm2_moe"},
      .gguf_names = {"lfm2", "lfm2moe"},
      .build = build,
      .blocks = {"attention", "short convolution", "gated feed-forward", "experts"},
      .hf = {.rows = {{{"final_norm"}, {"embedding_norm"}},
                      {{"layers.*.attn.norm"}, {"layers.*.operator_norm"}},
                      {{"layers.*.ffn.norm"}, {"layers.*.ffn_norm"}},
                      {{"layers.*.attn.q_norm"}, {"layers.*.self_attn.q_layernorm"}},
                      {{"layers.*.attn.k_norm"}, {"layers.*.self_attn.k_layernorm"}},
                      {{"layers.*.attn.o"}, {"layers.*.self_attn.out_proj", "layers.*.conv.out_proj"}},
                      {{"layers.*.attn.in"}, {"layers.*.conv.in_proj"}},
                      {{"layers.*.attn.conv"}, {"layers.*.conv.conv"}},
                      {{"layers.*.moe.router"}, {"layers.*.feed_forward.gate"}},
                      {{"layers.*.moe.selection_bias"}, {"layers.*.feed_forward.expert_bias"}}}},
      .gguf = {.rows = {{{"final_norm"}, {"token_embd_norm"}}}}};
  return architecture;
}

}  // namespace tessera
