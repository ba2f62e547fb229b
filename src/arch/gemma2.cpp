// Gemma 2 (2024): norms before and after each block, windows on every second layer, caps on scores and
// logits, and a softmax scale of its own. GGUF files do not hold that scale: it is the head width's, except
// in the largest published model (heads of 128), where it is hidden / heads.
#include <cmath>

#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.tied = true, .context = 8192});
  spec.embedding.scale = std::sqrt(static_cast<double>(spec.hidden));
  AttentionSpec attention = read_attention(config, spec, 256);
  const double width =
      static_cast<double>(attention.head_dim == 128 ? spec.hidden / attention.heads : attention.head_dim);
  attention.scale =
      1.0 / std::sqrt(config.number_or("query_pre_attn_scalar", config.is_gguf() ? width : 256));
  attention.softcap = config.nullable_number_or("attn_logit_softcapping", 50.0);
  spec.head.softcap = config.nullable_number_or("final_logit_softcapping", 30.0);
  attention.rope = spec.add_rope(read_rope(config, attention.head_dim, {}).rope);
  const int64_t window = config.count_or("sliding_window", 4096);
  const std::vector<int64_t> windows = patterned_windows(config, spec, window, 2);
  const FfnSpec ffn = read_gated_ffn(config, "gelu_pytorch_tanh");
  const NormSpec norm = rms_norm(config);
  spec.final_norm = norm;
  add_decoder_layers(spec, {norm, norm, {}}, attention, ffn, windows, {attention.rope, attention.rope});
}

}  // namespace

const Architecture& gemma2_architecture() {
  static const Architecture architecture = {
      .family = "gemma2",
      .hf_names = {"Gemma2ForCausalLM", "Gemma2Model", "gemma2"},
      .gguf_names = {"gemma2"},
      .build = build,
      .hf = {.rows = {
                 {{"final_norm"}, {"norm"}, Transform::kAddOne},
                 {{"layers.*.attn.norm"}, {"layers.*.input_layernorm"}, Transform::kAddOne},
                 {{"layers.*.attn.post_norm"}, {"layers.*.post_attention_layernorm"}, Transform::kAddOne},
                 {{"layers.*.ffn.norm"}, {"layers.*.pre_feedforward_layernorm"}, Transform::kAddOne},
                 {{"layers.*.ffn.post_norm"}, {"layers.*.post_feedforward_layernorm"}, Transform::kAddOne}}}};
  return architecture;
}

}  // namespace tessera
