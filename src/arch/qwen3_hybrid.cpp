// Qwen3-Next and Qwen3.5/3.6 (dense, with experts, wrapped in a vision model): every fourth layer gated attention, the others gated
// DeltaNet. All norms hold gain - 1 (except DeltaNet's output norm; GGUF files hold the gain). Qwen3-Next fuses its projections per
// key head; GGUF files of Qwen3.5 hold value heads tiled.
#include "arch/families.h"
#include "arch/moe_common.h"

namespace tessera {
namespace {

DeltaNetSpec read_delta(ConfigReader& config, HeadMap gguf_heads) {
  DeltaNetSpec delta;
  if (config.is_gguf()) {  // the names of a state space
    delta.head_map = gguf_heads;
    delta.key_heads = config.size("n_groups");
    delta.value_heads = config.size("time_step_rank");
    delta.key_dim = config.size("state_size");
    delta.value_dim = std::max<int64_t>(1, config.size("inner_size") / delta.value_heads);
    delta.kernel = config.size("conv_kernel");
    config.require(delta.value_dim * delta.value_heads == config.size("inner_size"), "inner_size",
                   "a multiple of the number of value heads, " + std::to_string(delta.value_heads));
  } else {
    delta.key_heads = config.size_or("linear_num_key_heads", 16);
    delta.value_heads = config.size_or("linear_num_value_heads", 32);
    delta.key_dim = config.size_or("linear_key_head_dim", 128);
    delta.value_dim = config.size_or("linear_value_head_dim", 128);
    delta.kernel = config.size_or("linear_conv_kernel_dim", 4);
  }
  config.require(delta.value_heads % delta.key_heads == 0,
                 config.is_gguf() ? "time_step_rank" : "linear_num_value_heads",
                 "a multiple of the number of key heads, " + std::to_string(delta.key_heads));
  delta.norm = per_head(rms_norm(config), delta.value_dim);
  return delta;
}

// Sources that hold the rows of several slots by groups: per head the query's and the gate's, per key head all that belongs to it.
void add_fused_rows(Dialect& dialect, const AttentionSpec& attention, const DeltaNetSpec& delta) {
  dialect.rows.insert(dialect.rows.begin(), DialectRow{{"layers.*.attn.q", "layers.*.attn.output_gate"},
                                                       {"layers.*.self_attn.q_proj", "blk.*.attn_q"},
                                                       Transform::kNone,
                                                       attention.heads});
  // MLC: the same, then keys and values.
  dialect.rows.insert(dialect.rows.begin(), DialectRow{{"layers.*.attn.q", "layers.*.attn.output_gate",
                                                        "layers.*.attn.k", "layers.*.attn.v"},
                                                       {"layers.*.self_attn.c_attn"},
                                                       Transform::kNone,
                                                       attention.heads,
                                                       2});
  dialect.rows.push_back({{"layers.*.attn.q", "layers.*.attn.k", "layers.*.attn.v", "layers.*.attn.z"},
                          {"layers.*.linear_attn.in_proj_qkvz"},
                          Transform::kNone,
                          delta.key_heads});
  dialect.rows.push_back({{"layers.*.attn.b", "layers.*.attn.a"},
                          {"layers.*.linear_attn.in_proj_ba", "blk.*.ssm_ba"},
                          Transform::kNone,
                          delta.key_heads});
}

void build(ConfigReader& config, ModelSpec& spec, Dialect& dialect, HeadMap gguf_heads) {
  read_common(config, spec, {.context = 32768});
  AttentionSpec attention = read_attention(config, spec, 256);
  attention.qkv_bias = attention.o_bias = config.presence_or("attention_bias", false);
  attention.output_gate = config.flag_or("attn_output_gate", true) ? OutputGate::kSigmoid : OutputGate::kNone;
  attention.q_norm = attention.k_norm = head_rms_norm(config, attention.head_dim);
  const RopeDefaults rope = {.fraction = 0.25, .sections_interleaved = true};
  attention.rope = spec.add_rope(read_rope(config, attention.head_dim, rope).rope);
  const DeltaNetSpec delta = read_delta(config, gguf_heads);
  add_fused_rows(dialect, attention, delta);
  const NormSpec norm = rms_norm(config);
  FfnSpec dense;
  MoeSpec moe;
  FfnSpec shared;
  std::vector<bool> sparse(spec.layers.size(), false);
  if (config.has("num_experts")) {
    moe = read_moe(config);
    moe.renormalise = config.flag_or("norm_topk_prob", true);
    shared = shared_expert(moe, config.size("shared_expert_intermediate_size"), true);
    sparse = sparse_layers(config, spec);
  }
  if (!config.has("num_experts") || config.has("intermediate_size")) dense = read_gated_ffn(config);
  spec.final_norm = norm;
  const int64_t interval = config.size_or("full_attention_interval", 4);
  std::vector<bool> every;
  for (size_t i = 0; i < spec.layers.size(); ++i)
    every.push_back(static_cast<int64_t>(i + 1) % interval == 0);
  const std::vector<bool> attends = attention_layers(config, {"linear_attention"}, every);
  for (size_t i = 0; i < spec.layers.size(); ++i)
    spec.layers[i].sublayers = {
        attends[i] ? sequential("attn", norm, attention) : sequential("attn", norm, delta),
        sparse[i] ? moe_sublayer(norm, moe, shared) : sequential("ffn", norm, dense)};
  if (!config.is_gguf() && config.count_or("num_nextn_predict_layers", 0) > 0)
    dialect.ignored.push_back("mtp.*");
  else
    ignore_draft_layers(config, spec, dialect);
}

void build_next(ConfigReader& config, ModelSpec& spec, Dialect& dialect) {
  build(config, spec, dialect, HeadMap::kGrouped);
}
void build_3_5(ConfigReader& config, ModelSpec& spec, Dialect& dialect) {
  build(config, spec, dialect, HeadMap::kTiled);
}

Dialect hf() {
  return {.rows = {{{"layers.*.attn.norm"}, {"layers.*.input_layernorm"}, Transform::kAddOne},
                   {{"layers.*.ffn.norm"}, {"layers.*.post_attention_layernorm"}, Transform::kAddOne},
                   {{"final_norm"}, {"norm"}, Transform::kAddOne},
                   {{"layers.*.attn.q_norm"}, {"layers.*.self_attn.q_norm"}, Transform::kAddOne},
                   {{"layers.*.attn.k_norm"}, {"layers.*.self_attn.k_norm"}, Transform::kAddOne},
                   {{"layers.*.attn.q", "layers.*.attn.k", "layers.*.attn.v"},
                    {"layers.*.linear_attn.in_proj_qkv"}},
                   {{"layers.*.attn.z"}, {"layers.*.linear_attn.in_proj_z"}},
                   {{"layers.*.attn.b"}, {"layers.*.linear_attn.in_proj_b"}},
                   {{"layers.*.attn.a"}, {"layers.*.linear_attn.in_proj_a"}},
                   {{"layers.*.attn.conv"}, {"layers.*.linear_attn.conv1d"}},
                   {{"layers.*.attn.decay"}, {"layers.*.linear_attn.A_log"}, Transform::kNegExp},
                   {{"layers.*.attn.dt_bias"}, {"layers.*.linear_attn.dt_bias"}},
                   {{"layers.*.attn.o_norm"}, {"layers.*.linear_attn.norm"}},
                   {{"layers.*.attn.o"}, {"layers.*.linear_attn.out_proj"}}},
          .ignored = {"mtp.*", "visual.*", "model.visual.*", "vision_tower.*"}};
}

Dialect gguf() {
  return {.rows = {{{"layers.*.ffn.norm"}, {"blk.*.post_attention_norm"}}}};
}

// MLX and MLC have added the one to the gains.
std::vector<DialectRow> converted() {
  return {
      {{"layers.*.attn.norm"}, {"layers.*.input_layernorm"}},
      {{"layers.*.ffn.norm"}, {"layers.*.post_attention_layernorm"}},
      {{"final_norm"}, {"norm"}},
      {{"layers.*.attn.q_norm"}, {"layers.*.self_attn.q_norm"}},
      {{"layers.*.attn.k_norm"}, {"layers.*.self_attn.k_norm"}},
      {{"layers.*.attn.conv"}, {"layers.*.linear_attn.conv1d_weight!"}},
  };
}

}  // namespace

const Architecture& qwen3_next_architecture() {
  static const Architecture architecture = {
      .family = "qwen3_next",
      .hf_names = {"Qwen3NextForCausalLM", "qwen3_next"},
      .gguf_names = {"qwen3next"},
      .build = build_next,
      .blocks = {"attention", "gated delta rule", "gated feed-forward", "experts"},
      .hf = hf(),
      .gguf = gguf(),
      .converted = converted()};
  return architecture;
}

const Architecture& qwen3_5_architecture() {
  static const Architecture architecture = {
      .family = "qwen3_5",
      .hf_names = {"Qwen3_5ForCausalLM", "Qwen3_5TextForCausalLM", "Qwen3_5ForConditionalGeneration",
                   "qwen3_5", "qwen3_5_text", "Qwen3_5MoeForCausalLM", "Qwen3_5MoeForConditionalGeneration",
                   "qwen3_5_moe", "qwen3_5_moe_text"},
      .gguf_names = {"qwen35", "qwen35moe"},
      .build = build_3_5,
      .blocks = {"attention", "gated delta rule", "gated feed-forward", "experts"},
      .hf = hf(),
      .gguf = gguf(),
      .converted = converted()};
  return architecture;
}

}  // namespace tessera
