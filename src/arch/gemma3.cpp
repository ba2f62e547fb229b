// Gemma 3 (2025): Gemma 2 without the caps, with norms on the heads of q and k, five windowed layers to one
// global, and a rope of its own for the windowed ones. Published configs leave out whatever equals the
// class's default. GGUF files do not hold the softmax scale: see gemma2.cpp.
#include <cmath>

#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  config.fall_back({{"vocab_size", 262208},
                    {"hidden_size", 2304},
                    {"intermediate_size", 9216},
                    {"num_hidden_layers", 26},
                    {"num_attention_heads", 8},
                    {"num_key_value_heads", 4}});
  read_common(config, spec, {.tied = true, .context = 131072});
  spec.embedding.scale = std::sqrt(static_cast<double>(spec.hidden));
  AttentionSpec attention = read_attention(config, spec, 256);
  const double width =
      static_cast<double>(attention.head_dim == 128 ? spec.hidden / attention.heads : attention.head_dim);
  attention.scale =
      1.0 / std::sqrt(config.number_or("query_pre_attn_scalar", config.is_gguf() ? width : 256));
  attention.q_norm = attention.k_norm = head_rms_norm(config, attention.head_dim);
  const RopeDefaults rope = {.theta = 1e6, .local_theta = 1e4};
  const int global = spec.add_rope(read_rope(config, attention.head_dim, rope, "full_attention").rope);
  const int local = spec.add_rope(read_rope(config, attention.head_dim, rope, "sliding_attention").rope);
  const int64_t window = config.count_or("sliding_window", 4096);
  const std::vector<int64_t> windows = patterned_windows(config, spec, window, 6);
  const FfnSpec ffn = read_gated_ffn(config, "gelu_pytorch_tanh");
  const NormSpec norm = rms_norm(config);
  spec.final_norm = norm;
  add_decoder_layers(spec, {norm, norm, {}}, attention, ffn, windows, {local, global});
}

}  // namespace

const Architecture& gemma3_architecture() {
  static const Architecture architecture = {
      .family = "gemma3",
      .hf_names = {"Gemma3ForCausalLM", "Gemma3ForConditionalGeneration", "Gemma3TextModel", "gemma3_text",
                   "gemma3"},
      .gguf_names = {"gemma3"},
      .build = build,
      .hf = {
          .rows = {{{"final_norm"}, {"norm"}, Transform::kAddOne},
                   {{"layers.*.attn.norm"}, {"layers.*.input_layernorm"}, Transform::kAddOne},
                   {{"layers.*.attn.post_norm"}, {"layers.*.post_attention_layernorm"}, Transform::kAddOne},
                   {{"layers.*.ffn.norm"}, {"layers.*.pre_feedforward_layernorm"}, Transform::kAddOne},
                   {{"layers.*.ffn.post_norm"}, {"layers.*.post_feedforward_layernorm"}, Transform::kAddOne},
                   {{"layers.*.attn.q_norm"}, {"layers.*.self_attn.q_norm"}, Transform::kAddOne},
                   {{"layers.*.attn.k_norm"}, {"layers.*.self_attn.k_norm"}, Transform::kAddOne}},
          .ignored = {"*vision_tower.*", "*multi_modal_projector.*"}}};
  return architecture;
}

}  // namespace tessera
