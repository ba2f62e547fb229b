// What most decoder families share: reading sizes, ids, attention and feed-forward settings in the usual
// spelling. A family starts from these and states what differs.
#pragma once

#include <cstdint>
#include <vector>

#include "arch/architecture.h"
#include "model/rope_config.h"

namespace tessera {

// The published defaults of a family's config class, where they are not the usual ones.
struct CommonDefaults {
  bool tied = false;
  int64_t context = 2048;
};

// Vocabulary, hidden size, context, token ids, tied head; makes `num_hidden_layers` empty layers.
void read_common(ConfigReader& config, ModelSpec& spec, const CommonDefaults& defaults);

[[nodiscard]] NormSpec rms_norm(ConfigReader& config, double default_eps = 1e-6);
// RMSNorm of each head (width head_dim) on its own.
[[nodiscard]] NormSpec head_rms_norm(ConfigReader& config, int64_t head_dim, double default_eps = 1e-6);

// heads, kv_heads, head_dim (0: hidden / heads), value_dim, scale head_dim^-0.5. Rope is added by the family.
[[nodiscard]] AttentionSpec read_attention(ConfigReader& config, const ModelSpec& spec,
                                           int64_t default_head_dim = 0);
[[nodiscard]] FfnSpec read_gated_ffn(ConfigReader& config, std::string_view default_activation = "silu");
[[nodiscard]] Activation read_activation(ConfigReader& config, std::string_view fallback);

// The window of each layer: layer_types when given ("sliding_attention" has the window, "full_attention" has
// none), else `otherwise` per layer. Other layer types are refused.
[[nodiscard]] std::vector<int64_t> layer_windows(ConfigReader& config, const ModelSpec& spec, int64_t window,
                                                 const std::vector<bool>& otherwise);

// use_sliding_window with max_window_layers: the window holds from that layer on, where layer_types does not
// say otherwise.
[[nodiscard]] std::vector<int64_t> late_layer_windows(ConfigReader& config, const ModelSpec& spec);

// Pre-norm attention and pre-norm feed-forward, one after the other, on every layer.
void add_decoder_layer(LayerSpec& layer, const NormSpec& norm, const AttentionSpec& attention,
                       const FfnSpec& ffn);

}  // namespace tessera
