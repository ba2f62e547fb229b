// Gemma 4: sandwich norms, unit attention scale with normed q, k and v, head width by layer type, proportional rope on full layers,
// tail layers that share an earlier layer's keys and values (and are twice as wide), per-layer inputs, a scalar on each layer's
// output; on full layers v may be k's projection; experts may run beside the dense block, each with norms of its own.
#include <algorithm>
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

// Attention of layer i: head width and key/value heads differ between full and windowed layers. A GGUF file names the full layers' width
// first and lists heads per layer; there a full layer without attn_v takes its values from the keys.
AttentionSpec read_layer_attention(ConfigReader& config, ModelSpec& spec, size_t i, bool full) {
  config.at_layer(static_cast<int64_t>(i));
  AttentionSpec attention = read_attention(config, spec, 256);
  attention.qkv_bias = attention.o_bias = config.presence_or("attention_bias", false);
  attention.scale = 1.0;
  int64_t width = attention.head_dim;
  if (config.is_gguf()) {
    const int64_t local = config.size_or("head_dim_local", width);
    config.require(config.size_or("value_head_dim_local", local) == local, "value_head_dim_local",
                   "the width of keys, " + std::to_string(local));
    if (!full) width = local;
    if (full && !config.has_tensor("blk." + std::to_string(i) + ".attn_v.weight"))
      attention.value_source = ValueSource::kKey;
  } else {
    const int64_t global_width = config.size_or("global_head_dim", width);
    const int64_t global_heads = config.size_or("num_global_key_value_heads", attention.kv_heads);
    if (config.flag_or("attention_k_eq_v", false) && full) {
      attention.value_source = ValueSource::kKey;
      attention.kv_heads = global_heads;
    }
    width = layer_size(config, i, "head_dim", full ? global_width : width);
    attention.kv_heads = layer_size(config, i, "num_key_value_heads", attention.kv_heads);
  }
  attention.head_dim = attention.value_dim = width;
  attention.q_norm = attention.k_norm = attention.v_norm = head_rms_norm(config, width);
  attention.v_norm->gain = Presence::kAbsent;
  const char* type = full ? "full_attention" : "sliding_attention";
  attention.rope = spec.add_rope(read_rope(config, width, {}, type).rope);
  config.at_layer(-1);
  return attention;
}

// The last `shared` layers use keys and values of the last earlier layer of their kind (full or windowed); their own may be stored, but
// are no longer used.
void share_keys(ConfigReader& config, Dialect& dialect, const std::vector<int64_t>& windows, size_t layer,
                size_t first_sharing, AttentionSpec& attention) {
  for (size_t j = first_sharing; j-- > 0 && attention.kv_source_layer < 0;)
    if ((windows[j] == 0) == (windows[layer] == 0)) attention.kv_source_layer = static_cast<int>(j);
  config.require(attention.kv_source_layer >= 0, "num_kv_shared_layers",
                 "an earlier layer of each layer type");
  attention.value_source = ValueSource::kProjection;
  for (const char* dead : {"k_proj", "v_proj", "k_norm", "v_norm"})
    dialect.ignored.push_back("layers." + std::to_string(layer) + ".self_attn." + dead + ".*");
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
  ffn.branches.push_back(Branch{"moe", moe, norm, norm});
}

// The dense block of layer i, with the experts' beside it.
Sublayer read_ffn(ConfigReader& config, const ModelSpec& spec, const NormSpec& norm, size_t i, bool shares) {
  config.at_layer(static_cast<int64_t>(i));
  FfnSpec dense = read_gated_ffn(config, "gelu_pytorch_tanh");
  config.at_layer(-1);
  if (config.flag_or("use_double_wide_mlp", false) && shares) dense.width *= 2;  // GGUF files list widths
  Sublayer ffn = sequential("ffn", norm, dense);
  ffn.post = norm;
  if (config.flag_or("enable_moe_block", config.is_gguf() && config.has("num_experts")))
    add_experts(config, spec, norm, ffn);
  return ffn;
}

void build(ConfigReader& config, ModelSpec& spec, Dialect& dialect) {
  read_common(config, spec, {.tied = true, .context = 131072});
  spec.embedding.scale = std::sqrt(static_cast<double>(spec.hidden));
  spec.head.softcap = config.number_or("final_logit_softcapping", 0.0);
  config.require(!config.flag_or("use_bidirectional_attention", false), "use_bidirectional_attention",
                 "false");
  const NormSpec norm = rms_norm(config);
  spec.final_norm = norm;
  const int64_t window = config.nullable_count_or("sliding_window", 512);
  const std::vector<int64_t> windows = patterned_windows(config, spec, window, 6);
  const auto shared = static_cast<size_t>(config.count_or("num_kv_shared_layers", 0));
  config.require(shared < spec.layers.size(), "num_kv_shared_layers", "fewer than num_hidden_layers");
  const size_t first_sharing = spec.layers.size() - std::min(shared, spec.layers.size());
  EmbeddingSpec& embedding = spec.embedding;
  embedding.per_layer_width = config.count_or("hidden_size_per_layer_input", 0);
  embedding.per_layer_rows = config.count_or("vocab_size_per_layer_input", spec.vocabulary);
  embedding.per_layer_norm = per_head(norm, embedding.per_layer_width);
  // The full layers' table comes first: a GGUF file stores its divisors.
  const auto first_full = static_cast<size_t>(std::find(windows.begin(), windows.end(), 0) - windows.begin());
  if (first_full < windows.size()) (void)read_layer_attention(config, spec, first_full, true);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    AttentionSpec attention = read_layer_attention(config, spec, i, windows[i] == 0);
    attention.window = windows[i];
    if (i >= first_sharing) share_keys(config, dialect, windows, i, first_sharing, attention);
    Sublayer mixer = sequential("attn", norm, attention);
    mixer.post = norm;
    auto& sublayers = spec.layers[i].sublayers;
    sublayers = {mixer, read_ffn(config, spec, norm, i, i >= first_sharing)};
    if (embedding.per_layer_width > 0) {
      const Activation activation = read_activation(config, "gelu_pytorch_tanh");
      sublayers.push_back(sequential("input", {}, PerLayerInputSpec{embedding.per_layer_width, activation}));
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
      .gguf_names = {"gemma4"},
      .build = build,
      .blocks = {"attention", "gated feed-forward", "experts", "per-layer input"},
      .hf = {.rows = {{{"layers.*.ffn.branch_norm"}, {"layers.*.pre_feedforward_layernorm"}},
                      {{"layers.*.ffn.branch_post_norm"}, {"layers.*.post_feedforward_layernorm_1"}},
                      {{"layers.*.moe.branch_norm"}, {"layers.*.pre_feedforward_layernorm_2"}},
                      {{"layers.*.moe.branch_post_norm"}, {"layers.*.post_feedforward_layernorm_2"}},
                      {{"layers.*.moe.router_norm"}, {"layers.*.router.scale!"}},
                      {{"layers.*.moe.router"}, {"layers.*.router.proj"}},
                      {{"layers.*.moe.expert_scale"}, {"layers.*.router.per_expert_scale"}},
                      {{"layers.*.moe.gate", "layers.*.moe.up"}, {"layers.*.experts.gate_up_proj!"}},
                      {{"layers.*.moe.gate"}, {"layers.*.experts.switch_glu.gate_proj"}},
                      {{"layers.*.moe.up"}, {"layers.*.experts.switch_glu.up_proj"}},
                      {{"layers.*.moe.down"},
                       {"layers.*.experts.down_proj!", "layers.*.experts.switch_glu.down_proj"}},
                      {{"layers.*.input.gate"}, {"layers.*.per_layer_input_gate"}},
                      {{"layers.*.input.projection"}, {"layers.*.per_layer_projection"}},
                      {{"layers.*.input.post_norm"}, {"layers.*.post_per_layer_input_norm"}},
                      {{"layers.*.input.scale"}, {"layers.*.layer_scalar"}},
                      {{"layers.*.ffn.scale"}, {"layers.*.layer_scalar"}},
                      {{"embed.per_layer"}, {"embed_tokens_per_layer"}},
                      {{"embed.per_layer_projection"}, {"per_layer_model_projection"}},
                      {{"embed.per_layer_norm"}, {"per_layer_projection_norm"}}},
             .ignored = {"vision_tower.*", "audio_tower.*", "embed_vision.*", "embed_audio.*",
                         "model.vision_tower.*", "model.audio_tower.*"}},
      .gguf = {.rows = {{{"layers.*.ffn.branch_norm"}, {"blk.*.ffn_norm"}},
                        {{"layers.*.ffn.branch_post_norm"}, {"blk.*.post_ffw_norm_1"}},
                        {{"layers.*.moe.branch_norm"}, {"blk.*.pre_ffw_norm_2"}},
                        {{"layers.*.moe.branch_post_norm"}, {"blk.*.post_ffw_norm_2"}},
                        {{"layers.*.moe.router_norm"}, {"blk.*.ffn_gate_inp.scale!"}},
                        {{"layers.*.moe.expert_scale"}, {"blk.*.ffn_down_exps.scale"}},
                        {{"layers.*.input.gate"}, {"blk.*.inp_gate"}},
                        {{"layers.*.input.projection"}, {"blk.*.proj"}},
                        {{"layers.*.input.post_norm"}, {"blk.*.post_norm"}},
                        {{"layers.*.input.scale"}, {"blk.*.layer_output_scale.weight"}},
                        {{"layers.*.ffn.scale"}, {"blk.*.layer_output_scale.weight"}},
                        {{"embed.per_layer"}, {"per_layer_token_embd"}},
                        {{"embed.per_layer_projection"}, {"per_layer_model_proj"}},
                        {{"embed.per_layer_norm"}, {"per_layer_proj_norm"}}}}};
  return architecture;
}

}  // namespace tessera
