// Gemma 4: sandwich norms, unit attention scale with normed q, k and v, head width by layer type, proportional rope on full layers,
// tail layers that share an earlier layer's keys and values (and are twice as wide), per-layer inputs, a scalar on each layer's
// output; on full layers v may be k's projection; experts may run beside the dense block, each with norms of its own.
#include <cmath>

#include <nlohmann/json.hpp>

#include "arch/families.h"
#include "arch/moe_common.h"

namespace tessera {
namespace {

// A layer's own entry in per_layer_config, else the fallback.
int64_t layer_size(ConfigReader& config, size_t layer, const char* key, int64_t fallback) {
  const Json* all = config.object("per_layer_config");
  const Json* entry = all != nullptr ? json_find(*all, std::to_string(layer)) : nullptr;
  const Json* value = entry != nullptr ? json_find(*entry, key) : nullptr;
  if (value == nullptr || value->is_null()) return fallback;
  config.require(value->is_number_integer() && value->get<int64_t>() > 0, "per_layer_config",
                 "positive integers");
  return value->is_number_integer() ? std::max<int64_t>(1, value->get<int64_t>()) : 1;
}

NormSpec weightless(NormSpec norm) {
  norm.gain = Presence::kAbsent;
  return norm;
}

// The experts beside the dense block: the router sees the stream itself, normed without the experts' norm.
void add_experts(ConfigReader& config, const ModelSpec& spec, const NormSpec& norm, Sublayer& ffn) {
  MoeSpec moe = read_moe(config);
  moe.activation = read_activation(config, "gelu_pytorch_tanh");
  moe.renormalise = true;
  moe.per_expert_scale = true;
  moe.router_input = RouterInput::kSublayer;
  moe.router_norm = norm;
  moe.router_input_scale = 1.0 / std::sqrt(static_cast<double>(spec.hidden));
  ffn.pre.reset();
  ffn.branches.front().pre = ffn.branches.front().post = norm;
  Branch experts{"moe", moe, norm, norm, {}, 1.0};
  ffn.branches.push_back(std::move(experts));
}

void build(ConfigReader& config, ModelSpec& spec, Dialect& dialect) {
  read_common(config, spec, {.tied = true, .context = 131072});
  spec.embedding.scale = std::sqrt(static_cast<double>(spec.hidden));
  spec.head.softcap = config.number_or("final_logit_softcapping", 0.0);
  const NormSpec norm = rms_norm(config);
  AttentionSpec base = read_attention(config, spec, 256);
  base.qkv_bias = base.o_bias = config.presence_or("attention_bias", false);
  base.scale = 1.0;
  const int64_t global_dim = config.size_or("global_head_dim", base.head_dim);
  const int64_t global_kv = config.size_or("num_global_key_value_heads", base.kv_heads);
  const bool value_is_key = config.flag_or("attention_k_eq_v", false);
  const int64_t window = config.nullable_count_or("sliding_window", 512);
  std::vector<bool> pattern;
  for (size_t i = 0; i < spec.layers.size(); ++i) pattern.push_back((i + 1) % 6 != 0);
  const std::vector<int64_t> windows = layer_windows(config, spec, window, pattern);
  const auto layers = static_cast<int64_t>(spec.layers.size());
  const int64_t shared = config.count_or("num_kv_shared_layers", 0);
  config.require(shared < layers, "num_kv_shared_layers", "fewer than num_hidden_layers");
  const bool double_wide = config.flag_or("use_double_wide_mlp", false);
  const bool experts = config.flag_or("enable_moe_block", false);
  config.require(!config.flag_or("use_bidirectional_attention", false), "use_bidirectional_attention",
                 "false");
  spec.embedding.per_layer_width = config.count_or("hidden_size_per_layer_input", 0);
  spec.embedding.per_layer_rows = config.count_or("vocab_size_per_layer_input", spec.vocabulary);
  spec.embedding.per_layer_norm = norm;
  spec.embedding.per_layer_norm.group = spec.embedding.per_layer_width;
  const FfnSpec dense = read_gated_ffn(config, "gelu_pytorch_tanh");
  spec.final_norm = norm;

  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const bool full = windows[i] == 0;
    const bool shares = static_cast<int64_t>(i) >= layers - shared;
    AttentionSpec attention = base;
    attention.window = windows[i];
    attention.head_dim = attention.value_dim =
        layer_size(config, i, "head_dim", full ? global_dim : base.head_dim);
    attention.kv_heads =
        layer_size(config, i, "num_key_value_heads", full && value_is_key ? global_kv : base.kv_heads);
    NormSpec head_norm = norm;
    head_norm.group = attention.head_dim;
    attention.q_norm = attention.k_norm = head_norm;
    attention.v_norm = weightless(head_norm);
    if (full && value_is_key) attention.value_source = ValueSource::kKey;
    attention.rope = spec.add_rope(
        read_rope(config, attention.head_dim, {}, full ? "full_attention" : "sliding_attention").rope);
    if (shares) {
      for (auto j = static_cast<int64_t>(layers - shared) - 1; j >= 0 && attention.kv_source_layer < 0; --j)
        if ((windows[static_cast<size_t>(j)] == 0) == full) attention.kv_source_layer = static_cast<int>(j);
      config.require(attention.kv_source_layer >= 0, "num_kv_shared_layers",
                     "an earlier layer of each layer type");
      for (const char* dead : {"k_proj", "v_proj", "k_norm", "v_norm"})  // stored, but no longer used
        dialect.ignored.push_back("layers." + std::to_string(i) + ".self_attn." + dead + ".*");
    }
    FfnSpec ffn_block = dense;
    if (shares && double_wide) ffn_block.width *= 2;
    Sublayer mixer = sequential("attn", norm, attention);
    Sublayer ffn = sequential("ffn", norm, ffn_block);
    mixer.post = ffn.post = norm;
    if (experts) add_experts(config, spec, norm, ffn);
    auto& sublayers = spec.layers[i].sublayers;
    sublayers = {mixer, ffn};
    if (spec.embedding.per_layer_width > 0) {
      sublayers.push_back(
          sequential("input", {}, PerLayerInputSpec{spec.embedding.per_layer_width, dense.activation}));
      sublayers.back().post = norm;
    }
    sublayers.back().beta.slot = true;
  }
}

}  // namespace

const Architecture& gemma4_architecture() {
  static const Architecture architecture = {
      .family = "gemma4",
      .hf_names = {"Gemma4ForCausalLM", "Gemma4ForConditionalGeneration", "gemma4", "gemma4_text"},
      .gguf_names = {},
      .build = build,
      .hf = {.rows = {{{"layers.*.attn.post_norm"}, {"layers.*.post_attention_layernorm"}},
                      {{"layers.*.ffn.norm"}, {"layers.*.pre_feedforward_layernorm"}},
                      {{"layers.*.ffn.branch_norm"}, {"layers.*.pre_feedforward_layernorm"}},
                      {{"layers.*.ffn.branch_post_norm"}, {"layers.*.post_feedforward_layernorm_1"}},
                      {{"layers.*.moe.branch_norm"}, {"layers.*.pre_feedforward_layernorm_2"}},
                      {{"layers.*.moe.branch_post_norm"}, {"layers.*.post_feedforward_layernorm_2"}},
                      {{"layers.*.ffn.post_norm"}, {"layers.*.post_feedforward_layernorm"}},
                      {{"layers.*.moe.router_norm"}, {"layers.*.router.scale!"}},
                      {{"layers.*.moe.router"}, {"layers.*.router.proj"}},
                      {{"layers.*.moe.expert_scale"}, {"layers.*.router.per_expert_scale"}},
                      {{"layers.*.moe.gate", "layers.*.moe.up"}, {"layers.*.experts.gate_up_proj!"}},
                      {{"layers.*.moe.down"}, {"layers.*.experts.down_proj!"}},
                      {{"layers.*.input.gate"}, {"layers.*.per_layer_input_gate"}},
                      {{"layers.*.input.projection"}, {"layers.*.per_layer_projection"}},
                      {{"layers.*.input.post_norm"}, {"layers.*.post_per_layer_input_norm"}},
                      {{"layers.*.input.scale"}, {"layers.*.layer_scalar"}},
                      {{"layers.*.ffn.scale"}, {"layers.*.layer_scalar"}},
                      {{"embed.per_layer"}, {"embed_tokens_per_layer"}},
                      {{"embed.per_layer_projection"}, {"per_layer_model_projection"}},
                      {{"embed.per_layer_norm"}, {"per_layer_projection_norm"}}},
             .prefixes = {},
             .ignored = {"vision_tower.*", "audio_tower.*", "embed_vision.*", "embed_audio.*",
                         "model.vision_tower.*", "model.audio_tower.*"}},
      .gguf = {}};
  return architecture;
}

}  // namespace tessera
