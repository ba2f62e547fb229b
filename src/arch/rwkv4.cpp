// RWKV-4: time mix and channel mix, LayerNorm before each and on the embedding. rescale_every halves the stream every so many
// layers (and what joins it), which matters only through the final norm's eps.
#include <cmath>

#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.context = 1024});
  NormSpec norm;
  norm.kind = NormKind::kLayer;
  norm.bias = Presence::kRequired;
  norm.eps = config.number_or("layer_norm_eps", 1e-5);
  RwkvTimeSpec time{config.size_or("attention_hidden_size", spec.hidden)};
  RwkvChannelSpec channel{config.size_or("intermediate_size", 4 * spec.hidden)};
  const int64_t rescale = config.count_or("rescale_every", 6);
  spec.embedding.norm = norm;
  spec.final_norm = norm;
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    Sublayer mixer = sequential("attn", norm, time);
    Sublayer feed_forward = sequential("ffn", norm, channel);
    if (rescale > 0) {
      const auto layer = static_cast<int64_t>(i);
      mixer.alpha = feed_forward.alpha = std::exp2(-static_cast<double>(layer / rescale));
      if ((layer + 1) % rescale == 0) feed_forward.beta.value = 0.5;
    }
    spec.layers[i].sublayers = {mixer, feed_forward};
  }
}

}  // namespace

const Architecture& rwkv4_architecture() {
  static const Architecture architecture = {
      .family = "rwkv4",
      .hf_names = {"RwkvForCausalLM", "rwkv"},
      .build = build,
      .blocks = {"time mix", "channel mix"},
      .hf = {.rows = {{{"embed"}, {"embeddings"}},
                      {{"embed.norm"}, {"blocks.0.pre_ln"}},
                      {{"final_norm"}, {"ln_out"}},
                      {{"head"}, {"head"}},
                      {{"layers.*.attn.norm"}, {"blocks.*.ln1"}},
                      {{"layers.*.ffn.norm"}, {"blocks.*.ln2"}},
                      {{"layers.*.attn.mix_k"}, {"blocks.*.attention.time_mix_key"}},
                      {{"layers.*.attn.mix_v"}, {"blocks.*.attention.time_mix_value"}},
                      {{"layers.*.attn.mix_r"}, {"blocks.*.attention.time_mix_receptance"}},
                      {{"layers.*.attn.decay"}, {"blocks.*.attention.time_decay"}, Transform::kNegExp},
                      {{"layers.*.attn.first"}, {"blocks.*.attention.time_first"}},
                      {{"layers.*.attn.k"}, {"blocks.*.attention.key"}},
                      {{"layers.*.attn.v"}, {"blocks.*.attention.value"}},
                      {{"layers.*.attn.r"}, {"blocks.*.attention.receptance"}},
                      {{"layers.*.attn.o"}, {"blocks.*.attention.output"}},
                      {{"layers.*.ffn.mix_k"}, {"blocks.*.feed_forward.time_mix_key"}},
                      {{"layers.*.ffn.mix_r"}, {"blocks.*.feed_forward.time_mix_receptance"}},
                      {{"layers.*.ffn.up"}, {"blocks.*.feed_forward.key"}},
                      {{"layers.*.ffn.r"}, {"blocks.*.feed_forward.receptance"}},
                      {{"layers.*.ffn.down"}, {"blocks.*.feed_forward.value"}}},
             .prefixes = {"rwkv."}}};
  return architecture;
}

}  // namespace tessera
