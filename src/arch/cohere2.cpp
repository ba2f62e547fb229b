// Cohere 2 (Command R7B and A): Cohere's parallel layer; three layers of four have a window and rope, the
// fourth is global and has no positions at all.
#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.tied = true, .context = 8192});
  spec.head.scale = config.number_or("logit_scale", 0.0625);
  AttentionSpec attention = read_attention(config, spec);
  (void)config.choice<int>("position_embedding_type", "rope_gptj", {{"rope_gptj", 0}});
  const int rope =
      spec.add_rope(read_rope(config, attention.head_dim, {.layout = RopeLayout::kInterleaved}).rope);
  const int64_t window = config.count_or("sliding_window", 4096);
  const std::vector<int64_t> windows = patterned_windows(config, spec, window, 4);
  const FfnSpec ffn = read_gated_ffn(config);
  const NormSpec norm = layer_norm(config, Presence::kAbsent);
  spec.final_norm = norm;
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    attention.window = windows[i];
    attention.rope = windows[i] > 0 ? std::optional<int>(rope) : std::nullopt;
    add_layer(spec.layers[i], LayerShape::kParallel, norm, attention, ffn);
  }
}

}  // namespace

const Architecture& cohere2_architecture() {
  static const Architecture architecture = {.family = "cohere2",
                                            .hf_names = {"Cohere2ForCausalLM", "Cohere2Model", "cohere2"},
                                            .gguf_names = {"cohere2"},
                                            .build = build};
  return architecture;
}

}  // namespace tessera
