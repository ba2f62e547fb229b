// Qwen1.5/2-MoE: Qwen2's attention; routed experts and one shared expert weighed by a sigmoid; some layers may be dense.
#include "arch/families.h"
#include "arch/moe_common.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.context = 32768});
  AttentionSpec attention = read_attention(config, spec);
  attention.qkv_bias =
      config.is_gguf() || config.flag_or("qkv_bias", true) ? Presence::kRequired : Presence::kAbsent;
  attention.rope = spec.add_rope(read_rope(config, attention.head_dim, {}).rope);
  const std::vector<int64_t> windows = late_layer_windows(config, spec);
  const FfnSpec dense = read_gated_ffn(config);
  MoeSpec moe = read_moe(config);
  moe.renormalise = config.flag_or("norm_topk_prob", false);
  const FfnSpec shared = shared_expert(moe, config.size("shared_expert_intermediate_size"), true);
  const std::vector<bool> sparse = sparse_layers(config, spec);
  const NormSpec norm = rms_norm(config);
  spec.final_norm = norm;
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    attention.window = windows[i];
    spec.layers[i].sublayers = {sequential("attn", norm, attention),
                                sparse[i] ? moe_sublayer(norm, moe, shared) : sequential("ffn", norm, dense)};
  }
}

}  // namespace

const Architecture& qwen2_moe_architecture() {
  static const Architecture architecture = {.family = "qwen2_moe",
                                            .hf_names = {"Qwen2MoeForCausalLM", "Qwen2MoeModel", "qwen2_moe"},
                                            .gguf_names = {"qwen2moe"},
                                            .build = build,
                                            .blocks = {"attention", "gated feed-forward", "experts"}};
  return architecture;
}

}  // namespace tessera
