// Gemma 3n: parallel streams, a low-rank branch beside attention, per-layer inputs, sparse activations in the first layers, tail
// layers that share an earlier layer's keys and values.
#include <cmath>
#include <numbers>

#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

// The standard normal quantile by bisection on erfc: exact to the last bits of a double.
double normal_quantile(double probability) {
  double low = -10.0;
  double high = 10.0;
  for (int i = 0; i < 200; ++i) {
    const double middle = 0.5 * (low + high);
    if (0.5 * std::erfc(-middle / std::numbers::sqrt2) < probability)
      low = middle;
    else
      high = middle;
  }
  return 0.5 * (low + high);
}

void build(ConfigReader& config, ModelSpec& spec, Dialect& dialect) {
  read_common(config, spec, {.tied = true, .context = 32768});
  spec.embedding.scale = std::sqrt(static_cast<double>(spec.hidden));
  spec.head.softcap = config.number_or("final_logit_softcapping", 30.0);
  const NormSpec norm = rms_norm(config);
  AttentionSpec base = read_attention(config, spec, 256);
  base.qkv_bias = base.o_bias = config.presence_or("attention_bias", false);
  base.scale = 1.0;
  base.q_norm = base.k_norm = per_head(norm, base.head_dim);
  base.v_norm = base.k_norm;
  base.v_norm->gain = Presence::kAbsent;
  const int64_t window = config.nullable_count_or("sliding_window", 512);
  std::vector<bool> pattern;
  for (size_t i = 0; i < spec.layers.size(); ++i) pattern.push_back((i + 1) % 5 != 0);
  const std::vector<int64_t> windows = layer_windows(config, spec, window, pattern);
  const auto layers = static_cast<int64_t>(spec.layers.size());
  const int64_t shared = config.count_or("num_kv_shared_layers", 15);
  config.require(shared < layers, "num_kv_shared_layers", "fewer than num_hidden_layers");
  spec.embedding.per_layer_width = config.size_or("hidden_size_per_layer_input", 256);
  spec.embedding.per_layer_rows = config.size_or("vocab_size_per_layer_input", 262144);
  spec.embedding.per_layer_norm = per_head(norm, spec.embedding.per_layer_width);
  const std::vector<double> widths = config.numbers("intermediate_size");
  const std::vector<double> sparsity = config.numbers("activation_sparsity_pattern");
  for (const auto& [list, key] :
       {std::pair{&widths, "intermediate_size"}, std::pair{&sparsity, "activation_sparsity_pattern"}})
    config.require(list->size() <= 1 || static_cast<int64_t>(list->size()) == layers, key,
                   "one entry per layer");
  FfnSpec ffn;
  ffn.activation = read_activation(config, "gelu_pytorch_tanh");
  const LowRankSpec low_rank{config.size_or("laurel_rank", 64)};
  StreamSpec streams;
  streams.count = config.size_or("altup_num_inputs", 4);
  streams.active = config.count_or("altup_active_idx", 0);
  config.require(streams.active < streams.count, "altup_active_idx", "below altup_num_inputs");
  streams.output_scale = config.flag_or("altup_correct_scale", true);
  (void)config.number_or("altup_coef_clip", 120.0);  // of training only
  streams.router_norm = norm;
  streams.input = PerLayerInputSpec{spec.embedding.per_layer_width, ffn.activation};
  streams.input_post_norm = norm;
  spec.streams = streams;
  spec.final_norm = norm;
  const auto entry = [](const std::vector<double>& list, size_t i, double fallback) {
    return list.empty() ? fallback : list[list.size() == 1 ? 0 : std::min(i, list.size() - 1)];
  };

  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const bool full = windows[i] == 0;
    AttentionSpec attention = base;
    attention.window = windows[i];
    attention.rope = spec.add_rope(
        read_rope(config, attention.head_dim, {}, full ? "full_attention" : "sliding_attention").rope);
    if (static_cast<int64_t>(i) >= layers - shared) {
      for (auto j = layers - shared - 1; j >= 0 && attention.kv_source_layer < 0; --j)
        if ((windows[static_cast<size_t>(j)] == 0) == full) attention.kv_source_layer = static_cast<int>(j);
      config.require(attention.kv_source_layer >= 0, "num_kv_shared_layers",
                     "an earlier layer of each layer type");
      for (const char* dead : {"k_proj", "v_proj", "k_norm"})
        dialect.ignored.push_back("layers." + std::to_string(i) + ".self_attn." + dead + ".*");
    }
    ffn.width = static_cast<int64_t>(entry(widths, i, 16384));
    const double share = entry(sparsity, i, 0.0);
    config.require(share >= 0.0 && share < 1.0, "activation_sparsity_pattern", "shares from 0 to 1");
    ffn.sparsity_deviations = share > 0.0 ? normal_quantile(share) : 0.0;
    Sublayer mixer;
    mixer.name = "attn";
    mixer.pre = norm;
    mixer.branches.push_back(Branch{"attn", attention, {}, norm, {}, 1.0});
    mixer.branches.push_back(Branch{"low_rank", low_rank, {}, norm, {}, 1.0});
    mixer.branches.push_back(Branch{"skip", IdentitySpec{}});
    mixer.beta.value = std::sqrt(0.5);
    Sublayer feed_forward = sequential("ffn", norm, ffn);
    feed_forward.post = norm;
    spec.layers[i].sublayers = {mixer, feed_forward};
  }
  for (int64_t i = 0; i + 1 < streams.count; ++i) {
    const std::string number = std::to_string(i);
    dialect.rows.push_back({{"streams.projection" + number}, {"altup_projections." + number}});
    dialect.rows.push_back({{"streams.unprojection" + number}, {"altup_unembed_projections." + number}});
  }
}

}  // namespace

const Architecture& gemma3n_architecture() {
  static const Architecture architecture = {
      .family = "gemma3n",
      .hf_names = {"Gemma3nForCausalLM", "Gemma3nForConditionalGeneration", "gemma3n", "gemma3n_text"},
      .build = build,
      .blocks = {"attention", "gated feed-forward", "identity", "low-rank"},
      .hf = {.rows = {{{"layers.*.attn.branch_post_norm"}, {"layers.*.post_attention_layernorm"}},
                      {{"layers.*.low_rank.left"}, {"layers.*.laurel.linear_left"}},
                      {{"layers.*.low_rank.right"}, {"layers.*.laurel.linear_right"}},
                      {{"layers.*.low_rank.branch_post_norm"}, {"layers.*.laurel.post_laurel_norm"}},
                      {{"layers.*.ffn.norm"}, {"layers.*.pre_feedforward_layernorm"}},
                      {{"layers.*.ffn.post_norm"}, {"layers.*.post_feedforward_layernorm"}},
                      {{"layers.*.streams.router_norm"}, {"layers.*.altup.router_norm"}},
                      {{"layers.*.streams.router"}, {"layers.*.altup.modality_router"}},
                      {{"layers.*.streams.predict"}, {"layers.*.altup.prediction_coefs"}},
                      {{"layers.*.streams.correct"}, {"layers.*.altup.correction_coefs"}},
                      {{"layers.*.streams.output_scale"}, {"layers.*.altup.correct_output_scale"}},
                      {{"layers.*.input.gate"}, {"layers.*.per_layer_input_gate"}},
                      {{"layers.*.input.projection"}, {"layers.*.per_layer_projection"}},
                      {{"layers.*.input.post_norm"}, {"layers.*.post_per_layer_input_norm"}},
                      {{"embed.per_layer"}, {"embed_tokens_per_layer"}},
                      {{"embed.per_layer_projection"}, {"per_layer_model_projection"}},
                      {{"embed.per_layer_norm"}, {"per_layer_projection_norm"}}},
             .ignored = {"vision_tower.*", "audio_tower.*", "embed_vision.*", "embed_audio.*"}}};
  return architecture;
}

}  // namespace tessera
