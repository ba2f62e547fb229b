// Phi-1 and 2: one LayerNorm feeds attention and a plain feed-forward in parallel; partial rope; a bias on
// every matrix, the head's included.
#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.context = 2048});
  spec.head.bias = Presence::kRequired;
  AttentionSpec attention = read_attention(config, spec);
  attention.qkv_bias = attention.o_bias = Presence::kRequired;
  attention.rope = spec.add_rope(read_rope(config, attention.head_dim, {.fraction = 0.5}).rope);
  const FfnSpec ffn = read_plain_ffn(config, "gelu_new", Presence::kRequired);
  const NormSpec norm = layer_norm(config, Presence::kRequired);
  spec.final_norm = norm;
  for (LayerSpec& layer : spec.layers) add_layer(layer, LayerShape::kParallel, norm, attention, ffn);
}

}  // namespace

const Architecture& phi_architecture() {
  static const Architecture architecture = {
      .family = "phi",
      .hf_names = {"PhiForCausalLM", "PhiModel", "phi"},
      .gguf_names = {"phi2"},
      .build = build,
      .blocks = {"attention", "plain feed-forward"},
      .hf = {.rows = {{{"final_norm"}, {"final_layernorm"}},
                      {{"layers.*.attn.o"}, {"layers.*.self_attn.dense"}},
                      {{"layers.*.ffn.up"}, {"layers.*.mlp.fc1"}},
                      {{"layers.*.ffn.down"}, {"layers.*.mlp.fc2"}}}}};
  return architecture;
}

}  // namespace tessera
