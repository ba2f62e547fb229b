// Qwen3-Next and Qwen3.5/3.6 (dense, with experts, wrapped in a vision model): every fourth layer gated attention, the others gated
// DeltaNet. All norms hold gain - 1 (except DeltaNet's output norm). Qwen3-Next fuses its projections per key head.
#include "arch/families.h"
#include "arch/moe_common.h"

namespace tessera {
namespace {

DeltaNetSpec read_delta(ConfigReader& config) {
  DeltaNetSpec delta;
  delta.key_heads = config.size_or("linear_num_key_heads", 16);
  delta.value_heads = config.size_or("linear_num_value_heads", 32);
  delta.key_dim = config.size_or("linear_key_head_dim", 128);
  delta.value_dim = config.size_or("linear_value_head_dim", 128);
  delta.kernel = config.size_or("linear_conv_kernel_dim", 4);
  delta.norm = rms_norm(config);
  delta.norm.group = delta.value_dim;
  return delta;
}

AttentionSpec read_gated_attention(ConfigReader& config, ModelSpec& spec, Dialect& dialect) {
  AttentionSpec attention = read_attention(config, spec, 256);
  attention.qkv_bias = attention.o_bias = config.presence_or("attention_bias", false);
  attention.output_gate = config.flag_or("attn_output_gate", true) ? OutputGate::kSigmoid : OutputGate::kNone;
  attention.q_norm = attention.k_norm = rms_norm(config);
  attention.q_norm->group = attention.k_norm->group = attention.head_dim;
  attention.rope = spec.add_rope(read_rope(config, attention.head_dim, {.fraction = 0.25}).rope);
  // q_proj holds, per head, the query's rows and the gate's.
  dialect.rows.insert(dialect.rows.begin(), DialectRow{{"layers.*.attn.q", "layers.*.attn.output_gate"},
                                                       {"layers.*.self_attn.q_proj"},
                                                       Transform::kNone,
                                                       attention.heads});
  return attention;
}

// "linear_attention" or "full_attention" per layer; else every full_attention_interval-th layer attends.
std::vector<bool> attention_layers(ConfigReader& config, const ModelSpec& spec) {
  const std::vector<std::string> types = config.texts("layer_types");
  const int64_t interval = config.size_or("full_attention_interval", 4);
  config.require(types.empty() || types.size() == spec.layers.size(), "layer_types", "one entry per layer");
  std::vector<bool> full;
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    if (i < types.size()) {
      config.require(types[i] == "full_attention" || types[i] == "linear_attention", "layer_types",
                     "full_attention or linear_attention in each entry");
      full.push_back(types[i] == "full_attention");
    } else {
      full.push_back(static_cast<int64_t>(i + 1) % interval == 0);
    }
  }
  return full;
}

void build(ConfigReader& config, ModelSpec& spec, Dialect& dialect) {
  read_common(config, spec, {.context = 32768});
  const AttentionSpec attention = read_gated_attention(config, spec, dialect);
  const DeltaNetSpec delta = read_delta(config);
  dialect.rows.push_back({{"layers.*.attn.q", "layers.*.attn.k", "layers.*.attn.v", "layers.*.attn.z"},
                          {"layers.*.linear_attn.in_proj_qkvz"},
                          Transform::kNone,
                          delta.key_heads});
  dialect.rows.push_back({{"layers.*.attn.b", "layers.*.attn.a"},
                          {"layers.*.linear_attn.in_proj_ba"},
                          Transform::kNone,
                          delta.key_heads});
  const NormSpec norm = rms_norm(config);
  std::optional<FfnSpec> dense;
  std::optional<MoeSpec> moe;
  std::optional<FfnSpec> shared;
  std::vector<bool> sparse(spec.layers.size(), false);
  if (config.has("num_experts")) {
    moe = read_moe(config);
    moe->renormalise = config.flag_or("norm_topk_prob", true);
    shared = shared_expert(*moe, config.size("shared_expert_intermediate_size"), true);
    sparse = sparse_layers(config, spec);
  }
  if (!moe || config.has("intermediate_size")) dense = read_gated_ffn(config);
  spec.final_norm = norm;
  const std::vector<bool> full = attention_layers(config, spec);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    auto& sublayers = spec.layers[i].sublayers;
    if (full[i])
      sublayers.push_back(sequential("attn", norm, attention));
    else
      sublayers.push_back(sequential("attn", norm, delta));
    if (sparse[i])
      sublayers.push_back(moe_sublayer(norm, *moe, shared));
    else
      sublayers.push_back(sequential("ffn", norm, dense.value_or(FfnSpec{})));
  }
  const auto drafts = config.count_or("num_nextn_predict_layers", 0);
  if (drafts > 0) dialect.ignored.push_back("mtp.*");
}

Dialect hf() {
  Dialect dialect;
  dialect.rows = {
      {{"layers.*.attn.norm"}, {"layers.*.input_layernorm"}, Transform::kAddOne},
      {{"layers.*.ffn.norm"}, {"layers.*.post_attention_layernorm"}, Transform::kAddOne},
      {{"final_norm"}, {"norm"}, Transform::kAddOne},
      {{"layers.*.attn.q_norm"}, {"layers.*.self_attn.q_norm"}, Transform::kAddOne},
      {{"layers.*.attn.k_norm"}, {"layers.*.self_attn.k_norm"}, Transform::kAddOne},
      {{"layers.*.attn.q", "layers.*.attn.k", "layers.*.attn.v"}, {"layers.*.linear_attn.in_proj_qkv"}},
      {{"layers.*.attn.z"}, {"layers.*.linear_attn.in_proj_z"}},
      {{"layers.*.attn.b"}, {"layers.*.linear_attn.in_proj_b"}},
      {{"layers.*.attn.a"}, {"layers.*.linear_attn.in_proj_a"}},
      {{"layers.*.attn.conv"}, {"layers.*.linear_attn.conv1d"}},
      {{"layers.*.attn.decay"}, {"layers.*.linear_attn.A_log"}, Transform::kNegExp},
      {{"layers.*.attn.dt_bias"}, {"layers.*.linear_attn.dt_bias"}},
      {{"layers.*.attn.o_norm"}, {"layers.*.linear_attn.norm"}},
      {{"layers.*.attn.o"}, {"layers.*.linear_attn.out_proj"}},
  };
  dialect.ignored = {"mtp.*", "visual.*", "model.visual.*", "vision_tower.*"};
  return dialect;
}

}  // namespace

const Architecture& qwen3_hybrid_architecture() {
  static const Architecture architecture = {
      .family = "qwen3_hybrid",
      .hf_names = {"Qwen3NextForCausalLM", "qwen3_next", "Qwen3_5ForCausalLM", "Qwen3_5TextForCausalLM",
                   "Qwen3_5ForConditionalGeneration", "qwen3_5", "qwen3_5_text", "Qwen3_5MoeForCausalLM",
                   "Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe", "qwen3_5_moe_text"},
      .gguf_names = {},
      .build = build,
      .hf = hf(),
      .gguf = {}};
  return architecture;
}

}  // namespace tessera
