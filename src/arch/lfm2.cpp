// LFM2 and LFM2-MoE: gated short convolutions, every few layers attention with RMSNorm on the heads of q and k; the dense width is
// adjusted (2/3, then rounded up); experts are chosen by sigmoid + bias.
#include "arch/families.h"
#include "arch/moe_common.h"

namespace tessera {
namespace {

NormSpec norm_of(ConfigReader& config) {
  NormSpec norm;
  norm.eps = config.number_or("norm_eps", 1e-5);
  return norm;
}

int64_t adjusted_width(ConfigReader& config) {
  int64_t width = config.has("block_ff_dim") ? config.size("block_ff_dim") : config.size("intermediate_size");
  const bool adjust = config.flag_or("block_auto_adjust_ff_dim", true);
  const double multiplier = config.number_or("block_ffn_dim_multiplier", 1.0);
  const int64_t multiple = config.size_or("block_multiple_of", 256);
  if (!adjust || config.is_gguf()) return width;
  width = static_cast<int64_t>(multiplier * static_cast<double>(2 * width / 3));
  return (width + multiple - 1) / multiple * multiple;
}

std::vector<bool> attention_layers(ConfigReader& config, const ModelSpec& spec) {
  std::vector<bool> full(spec.layers.size(), false);
  const std::vector<std::string> types = config.texts("layer_types");
  const std::vector<double> indices = config.numbers("full_attn_idxs");
  config.require(types.empty() || types.size() == full.size(), "layer_types", "one entry per layer");
  config.require(!types.empty() || !indices.empty(), "layer_types", "layer_types or full_attn_idxs");
  for (size_t i = 0; i < types.size() && i < full.size(); ++i) {
    full[i] = types[i] == "full_attention";
    config.require(full[i] || types[i] == "conv", "layer_types", "conv or full_attention in each entry");
  }
  if (types.empty())
    for (const double index : indices)
      if (index >= 0 && index < static_cast<double>(full.size())) full[static_cast<size_t>(index)] = true;
  return full;
}

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.tied = true, .context = 128000});
  AttentionSpec attention = read_attention(config, spec);
  attention.q_norm = attention.k_norm = norm_of(config);
  attention.q_norm->group = attention.k_norm->group = attention.head_dim;
  attention.rope = spec.add_rope(read_rope(config, attention.head_dim, {.theta = 1e6}).rope);
  ShortConvSpec conv;
  conv.kernel = config.size_or("conv_L_cache", 3);
  conv.bias = config.presence_or("conv_bias", false);
  const bool experts = config.has("num_experts");
  FfnSpec dense;
  dense.width = experts ? config.size("intermediate_size") : adjusted_width(config);
  std::optional<MoeSpec> moe;
  int64_t dense_layers = static_cast<int64_t>(spec.layers.size());
  if (experts) {
    moe = read_moe(config);
    moe->score = RouterScore::kSigmoid;
    moe->selection_bias = config.flag_or("use_expert_bias", true) ? Presence::kRequired : Presence::kAbsent;
    moe->renormalise = config.flag_or("norm_topk_prob", true);
    moe->renormalise_eps = 1e-6;
    moe->scale = config.number_or("routed_scaling_factor", 1.0);
    dense_layers = config.count_or("num_dense_layers", 2);
  }
  const NormSpec norm = norm_of(config);
  spec.final_norm = norm;
  const std::vector<bool> full = attention_layers(config, spec);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    auto& sublayers = spec.layers[i].sublayers;
    if (full[i])
      sublayers.push_back(sequential("attn", norm, attention));
    else
      sublayers.push_back(sequential("attn", norm, conv));
    if (static_cast<int64_t>(i) < dense_layers)
      sublayers.push_back(sequential("ffn", norm, dense));
    else
      sublayers.push_back(moe_sublayer(norm, *moe, {}));
  }
}

}  // namespace

const Architecture& lfm2_architecture() {
  static const Architecture architecture = {
      .family = "lfm2",
      .hf_names = {"Lfm2ForCausalLM", "lfm2", "Lfm2MoeForCausalLM", "lfm2_moe"},
      .gguf_names = {},
      .build = build,
      .hf = {.rows = {{{"final_norm"}, {"embedding_norm"}},
                      {{"layers.*.attn.norm"}, {"layers.*.operator_norm"}},
                      {{"layers.*.ffn.norm"}, {"layers.*.ffn_norm"}},
                      {{"layers.*.attn.q_norm"}, {"layers.*.self_attn.q_layernorm"}},
                      {{"layers.*.attn.k_norm"}, {"layers.*.self_attn.k_layernorm"}},
                      {{"layers.*.attn.o"}, {"layers.*.self_attn.out_proj", "layers.*.conv.out_proj"}},
                      {{"layers.*.attn.in"}, {"layers.*.conv.in_proj"}},
                      {{"layers.*.attn.conv"}, {"layers.*.conv.conv"}},
                      {{"layers.*.ffn.gate"}, {"layers.*.feed_forward.w1"}},
                      {{"layers.*.ffn.down"}, {"layers.*.feed_forward.w2"}},
                      {{"layers.*.ffn.up"}, {"layers.*.feed_forward.w3"}},
                      {{"layers.*.moe.router"}, {"layers.*.feed_forward.gate"}},
                      {{"layers.*.moe.selection_bias"}, {"layers.*.feed_forward.expert_bias"}},
                      {{"layers.*.moe.gate"}, {"layers.*.feed_forward.experts.#.w1"}},
                      {{"layers.*.moe.down"}, {"layers.*.feed_forward.experts.#.w2"}},
                      {{"layers.*.moe.up"}, {"layers.*.feed_forward.experts.#.w3"}}},
             .prefixes = {},
             .ignored = {}},
      .gguf = {}};
  return architecture;
}

}  // namespace tessera
