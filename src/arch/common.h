// What most decoder families share: reading sizes, ids, attention and feed-forward settings in the usual
// spelling. A family starts from these and states what differs.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
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
// LayerNorm with a gain, and a bias when told so; eps from layer_norm_eps.
[[nodiscard]] NormSpec layer_norm(ConfigReader& config, Presence bias, double default_eps = 1e-5);
// The same norm of each head on its own: one gain for all heads, or one per head.
[[nodiscard]] NormSpec per_head(NormSpec norm, int64_t head_dim,
                                NormSpec::Gain gain = NormSpec::Gain::kPerGroup);
// RMSNorm of each head (width head_dim) on its own.
[[nodiscard]] NormSpec head_rms_norm(ConfigReader& config, int64_t head_dim, double default_eps = 1e-6);

// heads, kv_heads, head_dim (0: hidden / heads), value_dim, scale head_dim^-0.5. Rope is added by the family.
[[nodiscard]] AttentionSpec read_attention(ConfigReader& config, const ModelSpec& spec,
                                           int64_t default_head_dim = 0);
[[nodiscard]] FfnSpec read_gated_ffn(ConfigReader& config, std::string_view default_activation = "silu");
// down(act(up(x))), with the bias of both as given.
[[nodiscard]] FfnSpec read_plain_ffn(ConfigReader& config, std::string_view default_activation,
                                     Presence bias);
[[nodiscard]] Activation read_activation(ConfigReader& config, std::string_view fallback);

// The window of each layer: layer_types when given ("sliding_attention" has the window, "full_attention" has
// none), else `otherwise` per layer. Other layer types are refused.
[[nodiscard]] std::vector<int64_t> layer_windows(ConfigReader& config, const ModelSpec& spec, int64_t window,
                                                 const std::vector<bool>& otherwise);

// use_sliding_window with max_window_layers: the window holds from that layer on, where layer_types does not
// say otherwise.
[[nodiscard]] std::vector<int64_t> late_layer_windows(ConfigReader& config, const ModelSpec& spec);

// The same with a repeating pattern for the layers that layer_types does not name: every period-th layer is
// global, the others have the window. The period is sliding_window_pattern (a number, a word of L and G, or
// one flag per layer), else `default_period`. No window: no layer has one.
[[nodiscard]] std::vector<int64_t> patterned_windows(ConfigReader& config, const ModelSpec& spec,
                                                     int64_t window, int64_t default_period);

// Which layers attend, where others are recurrent: layer_types when given ("attention" or "full_attention", or
// one of `others`), in a GGUF file those that have key/value heads, else `otherwise`.
[[nodiscard]] std::vector<bool> attention_layers(ConfigReader& config,
                                                 std::initializer_list<std::string_view> others,
                                                 const std::vector<bool>& otherwise);

// Where the norms of a sequential layer stand.
struct LayerNorms {
  std::optional<NormSpec> pre;
  std::optional<NormSpec> post;  // on the block's output, before the residual is added
  std::optional<NormSpec> out;   // on the sum
};

// Attention and feed-forward, one after the other; pre-norm unless told otherwise.
void add_decoder_layer(LayerSpec& layer, const NormSpec& norm, const AttentionSpec& attention,
                       const FfnSpec& ffn);
void add_decoder_layer(LayerSpec& layer, const LayerNorms& norms, const AttentionSpec& attention,
                       const FfnSpec& ffn);
// The tables of layers with a window and of those without; none: no rotation there.
struct LayerRopes {
  std::optional<int> windowed;
  std::optional<int> global;
};
// All layers, each with its window and the table that belongs to it.
void add_decoder_layers(ModelSpec& spec, const LayerNorms& norms, AttentionSpec attention, const FfnSpec& ffn,
                        const std::vector<int64_t>& windows, const LayerRopes& ropes);

enum class LayerShape : uint8_t {
  kSequential,        // pre-norm, one after the other
  kParallel,          // x + attention(norm(x)) + ffn(norm(x)), the norm computed once
  kParallelTwoNorms,  // the same where each branch has a norm of its own
};
void add_layer(LayerSpec& layer, LayerShape shape, const NormSpec& norm, const AttentionSpec& attention,
               const FfnSpec& ffn);

}  // namespace tessera
