// Falcon-H1: attention and Mamba-2 side by side on the same normed input, with multipliers on every part.
#include "arch/families.h"
#include "arch/state_space.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.context = 8192});
  spec.embedding.scale = config.number_or("embedding_multiplier", 1.0);
  spec.head.scale = config.number_or("lm_head_multiplier", 1.0);
  AttentionSpec attention = read_attention(config, spec);
  attention.qkv_bias = attention.o_bias = config.presence_or("attention_bias", false);
  attention.scale *= config.number_or("key_multiplier", 1.0);  // keys are multiplied: so are the scores
  attention.rope = spec.add_rope(read_rope(config, attention.head_dim, {.theta = 100000.0}).rope);
  const NormSpec norm = rms_norm(config, 1e-5);
  Mamba2Spec mamba = read_mamba2(config, spec, norm);
  const int64_t inner = config.nullable_count_or("inner_size", mamba.inner());
  config.require(inner == 0 || inner == mamba.inner(), "inner_size", "mamba_n_heads * mamba_d_head");
  const bool normed = config.flag_or("mamba_rms_norm", false);
  const bool norm_first = config.flag_or("mamba_norm_before_gate", true);
  mamba.gated_norm = !normed      ? GatedNorm::kGateOnly
                     : norm_first ? GatedNorm::kNormFirst
                                  : GatedNorm::kGateFirst;
  const std::vector<double> ssm = config.numbers("ssm_multipliers");
  config.require(ssm.empty() || ssm.size() == 5, "ssm_multipliers", "five numbers: z, x, B, C, dt");
  if (ssm.size() == 5) {
    mamba.z_scale = ssm[0];
    mamba.x_scale = ssm[1];
    mamba.b_scale = ssm[2];
    mamba.c_scale = ssm[3];
    mamba.dt_scale = ssm[4];
  }
  FfnSpec ffn = read_gated_ffn(config);
  ffn.up_bias = ffn.down_bias = config.presence_or("mlp_bias", false);
  const std::vector<double> mlp = config.numbers("mlp_multipliers");
  config.require(mlp.empty() || mlp.size() == 2, "mlp_multipliers", "two numbers: gate, output");
  config.require(!config.flag_or("projectors_bias", false), "projectors_bias", "false");
  Sublayer mixer;
  mixer.name = "attn";
  mixer.pre = norm;
  mixer.branches = {Branch{"attn", attention}, Branch{"mamba", mamba}};
  mixer.branches[0].input_scale = config.number_or("attention_in_multiplier", 1.0);
  mixer.branches[0].weight.value = config.number_or("attention_out_multiplier", 1.0);
  mixer.branches[1].input_scale = config.number_or("ssm_in_multiplier", 1.0);
  mixer.branches[1].weight.value = config.number_or("ssm_out_multiplier", 1.0);
  if (mlp.size() == 2) ffn.gate_scale = mlp[0];
  Sublayer feed_forward = sequential("ffn", norm, ffn);
  if (mlp.size() == 2) feed_forward.alpha = mlp[1];
  spec.final_norm = norm;
  for (LayerSpec& layer : spec.layers) layer.sublayers = {mixer, feed_forward};
}

Dialect hf() {
  Dialect dialect = {.rows = {{{"final_norm"}, {"final_layernorm"}}}};
  add_state_space_rows(dialect, "mamba", "mamba");
  return dialect;
}

}  // namespace

const Architecture& falcon_h1_architecture() {
  static const Architecture architecture = {
      .family = "falcon_h1",
      .hf_names = {"FalconH1ForCausalLM", "falcon_h1"},
      .build = build,
      .blocks = {"attention", "state space by heads", "gated feed-forward"},
      .hf = hf()};
  return architecture;
}

}  // namespace tessera
