// Qwen2 and 2.5: Llama's layer with a bias on q, k and v. The window counts only with use_sliding_window, and
// then from layer max_window_layers on.
#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.context = 32768});
  AttentionSpec attention = read_attention(config, spec);
  attention.qkv_bias = Presence::kRequired;
  attention.rope = spec.add_rope(read_rope(config, attention.head_dim, {}).rope);
  const std::vector<int64_t> windows = late_layer_windows(config, spec);
  const FfnSpec ffn = read_gated_ffn(config);
  const NormSpec norm = rms_norm(config);
  spec.final_norm = norm;
  add_decoder_layers(spec, {norm, {}, {}}, attention, ffn, windows, {attention.rope, attention.rope});
}

}  // namespace

const Architecture& qwen2_architecture() {
  static const Architecture architecture = {.family = "qwen2",
                                            .hf_names = {"Qwen2ForCausalLM", "Qwen2Model", "qwen2"},
                                            .gguf_names = {"qwen2"},
                                            .build = build};
  return architecture;
}

}  // namespace tessera
