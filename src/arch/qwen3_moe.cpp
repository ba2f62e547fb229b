// Qwen3-MoE: Qwen3's attention (RMSNorm on the heads of q and k); softmax over all experts, no shared expert.
#include "arch/families.h"
#include "arch/moe_common.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.context = 32768});
  AttentionSpec attention = read_attention(config, spec);
  attention.qkv_bias = attention.o_bias = config.presence_or("attention_bias", false);
  attention.q_norm = attention.k_norm = head_rms_norm(config, attention.head_dim);
  attention.rope = spec.add_rope(read_rope(config, attention.head_dim, {}).rope);
  const std::vector<int64_t> windows = late_layer_windows(config, spec);
  const FfnSpec dense = read_gated_ffn(config);
  MoeSpec moe = read_moe(config);
  // GGUF files do not say; every published model of the family renormalises.
  moe.renormalise = config.flag_or("norm_topk_prob", config.is_gguf());
  const std::vector<bool> sparse = sparse_layers(config, spec);
  const NormSpec norm = rms_norm(config);
  spec.final_norm = norm;
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    attention.window = windows[i];
    spec.layers[i].sublayers = {sequential("attn", norm, attention),
                                sparse[i] ? moe_sublayer(norm, moe, {}) : sequential("ffn", norm, dense)};
  }
}

}  // namespace

const Architecture& qwen3_moe_architecture() {
  static const Architecture architecture = {.family = "qwen3_moe",
                                            .hf_names = {"Qwen3MoeForCausalLM", "Qwen3MoeModel", "qwen3_moe"},
                                            .gguf_names = {"qwen3moe"},
                                            .build = build,
                                            .blocks = {"attention", "experts"}};
  return architecture;
}

}  // namespace tessera
