// Mistral 7B and its relatives (Jiang et al., 2023): Llama's layer with a window on every layer. (Converted
// to GGUF they are called llama, and the window is lost.)
#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.context = 131072});
  AttentionSpec attention = read_attention(config, spec);
  attention.rope = spec.add_rope(read_rope(config, attention.head_dim, {}).rope);
  const int64_t window = config.nullable_count_or("sliding_window", 4096);
  const std::vector<int64_t> windows =
      layer_windows(config, spec, window, std::vector<bool>(spec.layers.size(), window > 0));
  const FfnSpec ffn = read_gated_ffn(config);
  const NormSpec norm = rms_norm(config);
  spec.final_norm = norm;
  add_decoder_layers(spec, {norm, {}, {}}, attention, ffn, windows, {attention.rope, attention.rope});
}

}  // namespace

const Architecture& mistral_architecture() {
  static const Architecture architecture = {
      .family = "mistral", .hf_names = {"MistralForCausalLM", "MistralModel", "mistral"}, .build = build};
  return architecture;
}

}  // namespace tessera
