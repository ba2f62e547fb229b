#include "arch/common.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace tessera {

void read_common(ConfigReader& config, ModelSpec& spec, const CommonDefaults& defaults) {
  spec.vocabulary = config.size("vocab_size");
  spec.hidden = config.size("hidden_size");
  spec.context = config.size_or("max_position_embeddings", defaults.context);
  // A GGUF file does not say; there the head is tied when it is not stored.
  const bool tied = config.flag_or("tie_word_embeddings", defaults.tied && !config.is_gguf());
  spec.head.tie = tied ? HeadTie::kTied : HeadTie::kUntied;
  spec.stop_ids = config.ids("eos_token_id");
  const std::vector<int32_t> bos = config.ids("bos_token_id");
  if (!bos.empty()) spec.bos_id = bos.front();
  int64_t layers = config.size("num_hidden_layers");
  if (config.is_gguf()) {  // there draft layers are counted among the others
    const int64_t drafts = config.count_or("num_nextn_predict_layers", 0);
    config.require(drafts < layers, "num_nextn_predict_layers", "fewer layers than the model has");
    layers = std::max<int64_t>(1, layers - drafts);
  }
  config.require(layers <= 4096, "num_hidden_layers", "at most 4096 layers");
  spec.layers.resize(static_cast<size_t>(layers <= 4096 ? layers : 1));
}

NormSpec rms_norm(ConfigReader& config, double default_eps) {
  NormSpec norm;
  norm.kind = NormKind::kRms;
  norm.eps = config.number_or("rms_norm_eps", default_eps);
  config.require(norm.eps >= 0 && norm.eps < 1, "rms_norm_eps", "a number from 0 to 1");
  return norm;
}

NormSpec layer_norm(ConfigReader& config, Presence bias, double default_eps) {
  NormSpec norm;
  norm.kind = NormKind::kLayer;
  norm.bias = bias;
  norm.eps = config.number_or("layer_norm_eps", default_eps);
  config.require(norm.eps >= 0 && norm.eps < 1, "layer_norm_eps", "a number from 0 to 1");
  return norm;
}

NormSpec per_head(NormSpec norm, int64_t head_dim, NormSpec::Gain gain) {
  norm.group = head_dim;
  norm.gain_span = gain;
  return norm;
}

NormSpec head_rms_norm(ConfigReader& config, int64_t head_dim, double default_eps) {
  NormSpec norm = rms_norm(config, default_eps);
  norm.group = head_dim;
  return norm;
}

AttentionSpec read_attention(ConfigReader& config, const ModelSpec& spec, int64_t default_head_dim) {
  AttentionSpec attention;
  attention.heads = config.size("num_attention_heads");
  attention.kv_heads = config.size_or("num_key_value_heads", attention.heads);
  config.require(attention.heads % attention.kv_heads == 0, "num_key_value_heads",
                 "a divisor of num_attention_heads, " + std::to_string(attention.heads));
  if (config.has("head_dim")) {
    attention.head_dim = config.size("head_dim");
  } else if (default_head_dim > 0 && !config.is_gguf()) {
    attention.head_dim = config.size_or("head_dim", default_head_dim);
  } else {
    config.require(spec.hidden % attention.heads == 0, "num_attention_heads",
                   "a divisor of hidden_size, " + std::to_string(spec.hidden));
    attention.head_dim = config.size_or("head_dim", std::max<int64_t>(1, spec.hidden / attention.heads));
  }
  attention.value_dim = config.size_or("value_head_dim", attention.head_dim);
  attention.scale = 1.0 / std::sqrt(static_cast<double>(attention.head_dim));
  return attention;
}

Activation read_activation(ConfigReader& config, std::string_view fallback) {
  // Some classes have both keys; hidden_activation is then the one that counts.
  (void)config.has("hidden_act");
  const char* key = config.has("hidden_activation") ? "hidden_activation" : "hidden_act";
  return config.choice<Activation>(key, fallback,
                                   {{"silu", Activation::kSilu},
                                    {"swish", Activation::kSilu},
                                    {"gelu", Activation::kGeluErf},
                                    {"gelu_new", Activation::kGeluTanh},
                                    {"gelu_fast", Activation::kGeluTanh},
                                    {"gelu_pytorch_tanh", Activation::kGeluTanh},
                                    {"relu", Activation::kRelu},
                                    {"relu2", Activation::kReluSquared}});
}

FfnSpec read_gated_ffn(ConfigReader& config, std::string_view default_activation) {
  FfnSpec ffn;
  ffn.width = config.size("intermediate_size");
  ffn.gated = true;
  ffn.activation = read_activation(config, default_activation);
  return ffn;
}

FfnSpec read_plain_ffn(ConfigReader& config, std::string_view default_activation, Presence bias) {
  FfnSpec ffn = read_gated_ffn(config, default_activation);
  ffn.gated = false;
  ffn.up_bias = ffn.down_bias = bias;
  return ffn;
}

std::vector<int64_t> layer_windows(ConfigReader& config, const ModelSpec& spec, int64_t window,
                                   const std::vector<bool>& otherwise) {
  std::vector<int64_t> windows(spec.layers.size(), 0);
  const std::vector<std::string> types = config.texts("layer_types");
  if (!types.empty())
    config.require(types.size() == spec.layers.size(), "layer_types",
                   "one entry per layer, " + std::to_string(spec.layers.size()));
  for (size_t i = 0; i < windows.size(); ++i) {
    bool sliding = i < otherwise.size() && otherwise[i];
    if (i < types.size()) {
      sliding = types[i] == "sliding_attention";
      config.require(sliding || types[i] == "full_attention", "layer_types",
                     "full_attention or sliding_attention in each entry");
    }
    if (sliding) config.require(window > 0, "sliding_window", "a positive window, since layers use it");
    windows[i] = sliding ? window : 0;
  }
  return windows;
}

std::vector<int64_t> late_layer_windows(ConfigReader& config, const ModelSpec& spec) {
  const bool used = config.flag_or("use_sliding_window", false);
  const int64_t window = config.nullable_count_or("sliding_window", used ? 4096 : 0);
  const int64_t first = config.count_or("max_window_layers", 28);
  std::vector<bool> sliding(spec.layers.size(), false);
  for (size_t i = 0; i < sliding.size(); ++i)
    sliding[i] = used && window > 0 && static_cast<int64_t>(i) >= first;
  return layer_windows(config, spec, window, sliding);
}

std::vector<int64_t> patterned_windows(ConfigReader& config, const ModelSpec& spec, int64_t window,
                                       int64_t default_period) {
  const size_t layers = spec.layers.size();
  std::vector<bool> sliding(layers, false);
  const Json* pattern = config.raw("sliding_window_pattern");
  if (pattern != nullptr && pattern->is_string()) {
    const std::string word = pattern->get<std::string>();
    config.require(!word.empty() && word.find_first_not_of("LG") == std::string::npos,
                   "sliding_window_pattern", "a word of L and G");
    for (size_t i = 0; i < layers && !word.empty(); ++i) sliding[i] = word[i % word.size()] == 'L';
  } else if (pattern != nullptr && pattern->is_array()) {
    const std::vector<double> flags = config.numbers("sliding_window_pattern");
    config.require(flags.size() == layers, "sliding_window_pattern", "one entry per layer");
    for (size_t i = 0; i < layers && i < flags.size(); ++i) sliding[i] = flags[i] != 0.0;
  } else {
    const auto period = static_cast<size_t>(config.size_or("sliding_window_pattern", default_period));
    for (size_t i = 0; i < layers; ++i) sliding[i] = (i + 1) % period != 0;
  }
  if (window == 0) sliding.assign(layers, false);
  return layer_windows(config, spec, window, sliding);
}

std::vector<bool> attention_layers(ConfigReader& config, std::initializer_list<std::string_view> others,
                                   const std::vector<bool>& otherwise) {
  std::vector<bool> attends = otherwise;
  const std::vector<std::string> types = config.texts("layer_types");
  if (!types.empty())
    config.require(types.size() == attends.size(), "layer_types",
                   "one entry per layer, " + std::to_string(attends.size()));
  for (size_t i = 0; i < attends.size() && i < types.size(); ++i) {
    attends[i] = types[i] == "full_attention" || types[i] == "attention";
    config.require(attends[i] || std::find(others.begin(), others.end(), types[i]) != others.end(),
                   "layer_types", "full_attention or " + std::string(*others.begin()) + " in each entry");
  }
  const Json* heads = config.is_gguf() ? config.raw("num_key_value_heads") : nullptr;
  if (heads == nullptr || !heads->is_array()) return attends;
  for (size_t i = 0; i < attends.size(); ++i) {
    config.at_layer(static_cast<int64_t>(i));
    attends[i] = config.count_or("num_key_value_heads", 0) > 0;
    const std::string layer = std::to_string(i);
    config.require(attends[i] || !config.has_tensor("blk." + layer + ".attn_k.weight"), "num_key_value_heads",
                   "the number of key/value heads of layer " + layer + ", which has an attn_k");
  }
  config.at_layer(-1);
  return attends;
}

void add_decoder_layer(LayerSpec& layer, const NormSpec& norm, const AttentionSpec& attention,
                       const FfnSpec& ffn) {
  add_decoder_layer(layer, LayerNorms{norm, {}, {}}, attention, ffn);
}

void add_decoder_layer(LayerSpec& layer, const LayerNorms& norms, const AttentionSpec& attention,
                       const FfnSpec& ffn) {
  for (Sublayer sublayer : {sequential("attn", norms.pre, attention), sequential("ffn", norms.pre, ffn)}) {
    sublayer.post = norms.post;
    sublayer.out = norms.out;
    layer.sublayers.push_back(std::move(sublayer));
  }
}

void add_decoder_layers(ModelSpec& spec, const LayerNorms& norms, AttentionSpec attention, const FfnSpec& ffn,
                        const std::vector<int64_t>& windows, const LayerRopes& ropes) {
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    attention.window = windows[i];
    attention.rope = windows[i] > 0 ? ropes.windowed : ropes.global;
    add_decoder_layer(spec.layers[i], norms, attention, ffn);
  }
}

void add_layer(LayerSpec& layer, LayerShape shape, const NormSpec& norm, const AttentionSpec& attention,
               const FfnSpec& ffn) {
  if (shape == LayerShape::kSequential) {
    add_decoder_layer(layer, norm, attention, ffn);
    return;
  }
  Sublayer both = sequential("attn", norm, attention);
  both.branches.push_back(Branch{"ffn", ffn});
  if (shape == LayerShape::kParallelTwoNorms) {
    both.pre.reset();
    for (Branch& branch : both.branches) branch.pre = norm;
  }
  layer.sublayers.push_back(std::move(both));
}

}  // namespace tessera
