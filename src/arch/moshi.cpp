// The temporal transformer of Moshi (Defossez et al., 2024): RMSNorm, a window on every layer, gate and up in
// one matrix, an embedding with one row more than the head. Files with kyutai's own names hold q and k for
// interleaved rotation, HuggingFace's rows are permuted for the half-split one.
#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.context = 3750});
  spec.embedding.rows = spec.vocabulary + 1;
  AttentionSpec attention = read_attention(config, spec);
  const bool kyutai = config.has_tensor("text_emb.weight");
  const RopeLayout layout = kyutai ? RopeLayout::kInterleaved : RopeLayout::kHalfSplit;
  attention.rope = spec.add_rope(read_rope(config, attention.head_dim, {.layout = layout}).rope);
  attention.window = config.count_or("sliding_window", 3000);
  FfnSpec ffn = read_gated_ffn(config);
  config.require(ffn.width % 2 == 0, "intermediate_size", "an even number");
  ffn.width /= 2;  // the number counts gate and up
  const NormSpec norm = rms_norm(config, 1e-8);
  spec.final_norm = norm;
  for (LayerSpec& layer : spec.layers) add_decoder_layer(layer, norm, attention, ffn);
}

}  // namespace

const Architecture& moshi_architecture() {
  static const Architecture architecture = {
      .family = "moshi",
      .hf_names = {"MoshiForCausalLM", "MoshiForConditionalGeneration", "MoshiModel", "moshi"},
      .build = build,
      .hf = {.rows = {{{"embed"}, {"text_emb"}},
                      {{"final_norm"}, {"out_norm.alpha!"}},
                      {{"head"}, {"text_linear"}},
                      {{"layers.*.attn.norm"}, {"layers.*.norm1.alpha!"}},
                      {{"layers.*.attn.q"}, {"layers.*.self_attn.q_proj.linear"}},
                      {{"layers.*.attn.k"}, {"layers.*.self_attn.k_proj.linear"}},
                      {{"layers.*.attn.v"}, {"layers.*.self_attn.v_proj.linear"}},
                      {{"layers.*.attn.q", "layers.*.attn.k", "layers.*.attn.v"},
                       {"layers.*.self_attn.in_projs.0", "layers.*.self_attn.in_proj_weight!"}},
                      {{"layers.*.attn.o"},
                       {"layers.*.self_attn.o_proj.linear", "layers.*.self_attn.out_projs.0",
                        "layers.*.self_attn.out_proj"}},
                      {{"layers.*.ffn.norm"}, {"layers.*.norm2.alpha!"}},
                      {{"layers.*.ffn.gate", "layers.*.ffn.up"},
                       {"layers.*.mlp.fc1", "layers.*.gating.linear_in"}},
                      {{"layers.*.ffn.down"}, {"layers.*.mlp.fc2", "layers.*.gating.linear_out"}}},
             .prefixes = {"transformer.", "decoder.model.", "decoder."},
             .ignored = {"emb.*", "embed_tokens.*.weight", "linears.*", "depformer*", "depth_decoder.*",
                         "audio_encoder.*"}}};
  return architecture;
}

}  // namespace tessera
