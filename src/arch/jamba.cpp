// Jamba: Mamba layers with RMSNorm on dt, B and C, attention without rope every attn_layer_period layers, experts every
// expert_layer_period layers (softmax over all, not renormalised).
#include "arch/families.h"
#include "arch/moe_common.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.context = 262144});
  const AttentionSpec attention = read_attention(config, spec);
  MambaSpec mamba;
  mamba.inner = static_cast<int64_t>(config.number_or("expand", 2.0) * static_cast<double>(spec.hidden));
  mamba.state = config.size_or("state_size", 16);
  mamba.kernel = config.size_or("conv_kernel", 4);
  mamba.dt_rank = config.size_or("time_step_rank", (spec.hidden + 15) / 16);
  mamba.conv_bias = config.flag_or("use_conv_bias", true) ? Presence::kRequired : Presence::kAbsent;
  mamba.proj_bias = config.presence_or("mamba_proj_bias", false);
  const NormSpec norm = rms_norm(config);
  mamba.parameter_norm = norm;
  const FfnSpec dense = read_gated_ffn(config);
  const MoeSpec moe = read_moe(config);
  const int64_t attention_period = config.size_or("attn_layer_period", 8);
  const int64_t attention_offset = config.count_or("attn_layer_offset", 4);
  const int64_t expert_period = config.size_or("expert_layer_period", 2);
  const int64_t expert_offset = config.count_or("expert_layer_offset", 1);
  spec.final_norm = norm;
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const auto layer = static_cast<int64_t>(i);
    auto& sublayers = spec.layers[i].sublayers;
    if (layer % attention_period == attention_offset)
      sublayers.push_back(sequential("attn", norm, attention));
    else
      sublayers.push_back(sequential("attn", norm, mamba));
    const bool sparse = layer % expert_period == expert_offset && moe.experts > 1;
    sublayers.push_back(sparse ? moe_sublayer(norm, moe, {}) : sequential("ffn", norm, dense));
  }
}

}  // namespace

const Architecture& jamba_architecture() {
  static const Architecture architecture = {
      .family = "jamba",
      .hf_names = {"JambaForCausalLM", "jamba"},
      .gguf_names = {},
      .build = build,
      .hf = {.rows = {{{"final_norm"}, {"final_layernorm"}},
                      {{"layers.*.ffn.norm"}, {"layers.*.pre_ff_layernorm"}},
                      {{"layers.*.ffn.gate"}, {"layers.*.feed_forward.gate_proj"}},
                      {{"layers.*.ffn.up"}, {"layers.*.feed_forward.up_proj"}},
                      {{"layers.*.ffn.down"}, {"layers.*.feed_forward.down_proj"}},
                      {{"layers.*.moe.router"}, {"layers.*.feed_forward.router"}},
                      {{"layers.*.moe.gate"}, {"layers.*.feed_forward.experts.#.gate_proj"}},
                      {{"layers.*.moe.up"}, {"layers.*.feed_forward.experts.#.up_proj"}},
                      {{"layers.*.moe.down"}, {"layers.*.feed_forward.experts.#.down_proj"}},
                      {{"layers.*.attn.in"}, {"layers.*.mamba.in_proj"}},
                      {{"layers.*.attn.conv"}, {"layers.*.mamba.conv1d"}},
                      {{"layers.*.attn.x_proj"}, {"layers.*.mamba.x_proj"}},
                      {{"layers.*.attn.dt_proj"}, {"layers.*.mamba.dt_proj"}},
                      {{"layers.*.attn.dt_norm"}, {"layers.*.mamba.dt_layernorm"}},
                      {{"layers.*.attn.b_norm"}, {"layers.*.mamba.b_layernorm"}},
                      {{"layers.*.attn.c_norm"}, {"layers.*.mamba.c_layernorm"}},
                      {{"layers.*.attn.decay"}, {"layers.*.mamba.A_log"}, Transform::kNegExp},
                      {{"layers.*.attn.d"}, {"layers.*.mamba.D"}},
                      {{"layers.*.attn.o"}, {"layers.*.mamba.out_proj"}}},
             .prefixes = {},
             .ignored = {}},
      .gguf = {}};
  return architecture;
}

}  // namespace tessera
