// gpt-oss: attention sinks, biases, windows on every other layer, yarn without truncation; experts with biases and a clamped gate
// (x sigmoid(1.702 x)) times (up + 1). gate and up rows lie interleaved; unquantised files hold experts transposed,
// MXFP4 files do not.
#include "arch/families.h"
#include "arch/moe_common.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect& dialect) {
  read_common(config, spec, {.context = 131072});
  AttentionSpec attention = read_attention(config, spec, 64);
  attention.qkv_bias = attention.o_bias = config.presence_or("attention_bias", true);
  attention.sinks = true;
  attention.rope = spec.add_rope(
      read_rope(config, attention.head_dim, {.theta = 150000.0, .truncate = !config.is_gguf()}).rope);
  const int64_t window = config.nullable_count_or("sliding_window", 128);
  std::vector<bool> alternate;
  for (size_t i = 0; i < spec.layers.size(); ++i) alternate.push_back(i % 2 == 0);
  const std::vector<int64_t> windows = layer_windows(config, spec, window, alternate);
  MoeSpec moe = read_moe(config);
  (void)config.has("intermediate_size");  // GGUF files name the experts' width twice
  moe.score = RouterScore::kTopKSoftmax;
  moe.router_bias = moe.expert_bias = Presence::kRequired;
  moe.activation = Activation::kGeluSigmoid;
  moe.limit = config.number_or("swiglu_limit", 7.0);
  moe.up_offset = 1.0;
  const NormSpec norm = rms_norm(config, 1e-5);
  spec.final_norm = norm;
  // Rows of gate and up alternate.
  dialect.rows.push_back({{"layers.*.moe.gate.weight", "layers.*.moe.up.weight"},
                          {"layers.*.mlp.experts.gate_up_proj!"},
                          Transform::kTranspose,
                          moe.width});
  dialect.rows.push_back({{"layers.*.moe.gate.weight", "layers.*.moe.up.weight"},
                          {"layers.*.mlp.experts.gate_up_proj_blocks!"},
                          Transform::kNone,
                          moe.width});
  dialect.rows.push_back({{"layers.*.moe.gate.bias", "layers.*.moe.up.bias"},
                          {"layers.*.mlp.experts.gate_up_proj_bias!"},
                          Transform::kNone,
                          moe.width});
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    attention.window = windows[i];
    spec.layers[i].sublayers = {sequential("attn", norm, attention), moe_sublayer(norm, moe, {})};
  }
}

}  // namespace

const Architecture& gpt_oss_architecture() {
  static const Architecture architecture = {
      .family = "gpt_oss",
      .hf_names = {"GptOssForCausalLM", "gpt_oss"},
      .gguf_names = {"gpt-oss"},
      .build = build,
      .blocks = {"attention", "experts"},
      .hf = {.rows = {{{"layers.*.moe.router"}, {"layers.*.mlp.router"}},
                      {{"layers.*.moe.down.weight"},
                       {"layers.*.mlp.experts.down_proj!"},
                       Transform::kTranspose},
                      {{"layers.*.moe.down.weight"}, {"layers.*.mlp.experts.down_proj_blocks!"}},
                      {{"layers.*.moe.down.bias"}, {"layers.*.mlp.experts.down_proj_bias!"}},
                      // MLX splits the fused matrix and turns it round.
                      {{"layers.*.moe.gate"}, {"layers.*.mlp.experts.gate_proj"}},
                      {{"layers.*.moe.up"}, {"layers.*.mlp.experts.up_proj"}},
                      {{"layers.*.moe.down"}, {"layers.*.mlp.experts.down_proj"}},
                      {{"layers.*.attn.sinks"}, {"layers.*.self_attn.sinks"}}}},
      .gguf = {.rows = {{{"layers.*.ffn.norm"}, {"blk.*.post_attention_norm"}}}}};
  return architecture;
}

}  // namespace tessera
