// Jamba: Mamba layers with RMSNorm on dt, B and C, attention without rope every attn_layer_period layers, experts every
// expert_layer_period layers (softmax over all, not renormalised). A GGUF file says where experts are by having their tensors.
#include "arch/families.h"
#include "arch/moe_common.h"
#include "arch/state_space.h"

namespace tessera {
namespace {

// Every period-th layer, from `offset` on.
std::vector<bool> every(ConfigReader& config, const ModelSpec& spec, const char* period_key, int64_t period,
                        const char* offset_key, int64_t offset) {
  period = config.size_or(period_key, period);
  offset = config.count_or(offset_key, offset);
  std::vector<bool> chosen;
  for (size_t i = 0; i < spec.layers.size(); ++i)
    chosen.push_back(static_cast<int64_t>(i) % period == offset);
  return chosen;
}

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.context = 262144});
  const std::vector<bool> attends = attention_layers(
      config, {"mamba"}, every(config, spec, "attn_layer_period", 8, "attn_layer_offset", 4));
  std::vector<bool> sparse = every(config, spec, "expert_layer_period", 2, "expert_layer_offset", 1);
  const AttentionSpec attention = read_attention(config, spec);
  const double expand = config.number_or("expand", 2.0);
  MambaSpec mamba = read_mamba(
      config, spec,
      config.size_or("inner_size", static_cast<int64_t>(expand * static_cast<double>(spec.hidden))));
  mamba.proj_bias = config.presence_or("mamba_proj_bias", false);
  const NormSpec norm = rms_norm(config);
  mamba.parameter_norm = norm;
  const FfnSpec dense = read_gated_ffn(config);
  const MoeSpec moe = read_moe(config);
  spec.final_norm = norm;
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    if (config.is_gguf()) sparse[i] = config.has_tensor("blk." + std::to_string(i) + ".ffn_gate_inp.weight");
    spec.layers[i].sublayers = {
        attends[i] ? sequential("attn", norm, attention) : sequential("attn", norm, mamba),
        sparse[i] && moe.experts > 1 ? moe_sublayer(norm, moe, {}) : sequential("ffn", norm, dense)};
  }
}

Dialect hf() {
  Dialect dialect = {.rows = {{{"final_norm"}, {"final_layernorm"}},
                              {{"layers.*.moe.router"}, {"layers.*.feed_forward.router"}}}};
  add_state_space_rows(dialect, "attn", "mamba");
  return dialect;
}

}  // namespace

const Architecture& jamba_architecture() {
  static const Architecture architecture = {
      .family = "jamba",
      .hf_names = {"JambaForCausalLM", "jamba"},
      .gguf_names = {"jamba"},
      .build = build,
      .blocks = {"attention", "selective scan", "gated feed-forward", "experts"},
      .hf = hf()};
  return architecture;
}

}  // namespace tessera
