// Llama 1 to 3.x (Touvron et al., 2023): pre-norm RMSNorm, grouped-query attention with rope, SwiGLU.
// GGUF files hold q and k with rows permuted for interleaved rotation; the spec says so instead of moving
// bytes.
#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.context = 2048});
  AttentionSpec attention = read_attention(config, spec);
  attention.qkv_bias = attention.o_bias = config.presence_or("attention_bias", false);
  const RopeResult rope =
      read_rope(config, attention.head_dim,
                {.layout = config.is_gguf() ? RopeLayout::kInterleaved : RopeLayout::kHalfSplit});
  attention.rope = spec.add_rope(rope.rope);
  FfnSpec ffn = read_gated_ffn(config);
  ffn.up_bias = ffn.down_bias = config.presence_or("mlp_bias", false);
  const NormSpec norm = rms_norm(config);
  spec.final_norm = norm;
  for (LayerSpec& layer : spec.layers) add_decoder_layer(layer, norm, attention, ffn);
}

}  // namespace

const Architecture& llama_architecture() {
  static const Architecture architecture = {.family = "llama",
                                            .hf_names = {"LlamaForCausalLM", "LlamaModel", "llama"},
                                            .gguf_names = {"llama"},
                                            .build = build};
  return architecture;
}

}  // namespace tessera
