// Qwen3 (dense): RMSNorm on every head of q and k before rope, no bias unless the config asks for one.
#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.context = 32768});
  AttentionSpec attention = read_attention(config, spec, 128);
  attention.qkv_bias = attention.o_bias = config.presence_or("attention_bias", false);
  attention.q_norm = attention.k_norm = head_rms_norm(config, attention.head_dim);
  attention.rope = spec.add_rope(read_rope(config, attention.head_dim, {}).rope);
  const std::vector<int64_t> windows = late_layer_windows(config, spec);
  const FfnSpec ffn = read_gated_ffn(config);
  const NormSpec norm = rms_norm(config);
  spec.final_norm = norm;
  add_decoder_layers(spec, {norm, {}, {}}, attention, ffn, windows, {attention.rope, attention.rope});
}

}  // namespace

const Architecture& qwen3_architecture() {
  static const Architecture architecture = {.family = "qwen3",
                                            .hf_names = {"Qwen3ForCausalLM", "Qwen3Model", "qwen3"},
                                            .gguf_names = {"qwen3"},
                                            .build = build};
  return architecture;
}

}  // namespace tessera
