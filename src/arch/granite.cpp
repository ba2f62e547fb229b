// Granite, with experts, and its hybrid with Mamba-2 layers and a shared MLP: Llama's layer with four multipliers: on the embedding, on
// what each block adds to the residual, on the scores and (as a divisor) on the logits; softmax over the chosen experts. The hybrid
// rotates only where it says so. GGUF files permute the rows of q and k.
#include "arch/families.h"
#include "arch/moe_common.h"
#include "arch/state_space.h"

namespace tessera {
namespace {

// GGUF files of hybrids tell rope by another key than their configs.
bool rotates(ConfigReader& config, bool hybrid) {
  if (!hybrid) return true;
  if (config.is_gguf()) return config.flag_or("rope_finetuned", false);
  return config.choice<bool>("position_embedding_type", "nope", {{"nope", false}, {"rope", true}});
}

void build(ConfigReader& config, ModelSpec& spec, bool hybrid) {
  read_common(config, spec, {.context = 2048});
  spec.embedding.scale = config.number_or("embedding_multiplier", 1.0);
  const char* divisor = config.is_gguf() ? "logit_scale" : "logits_scaling";
  const double logits_scaling = config.number_or(divisor, 1.0);
  config.require(logits_scaling > 0, divisor, "a positive number");
  spec.head.scale = 1.0 / logits_scaling;
  std::vector<bool> attends(spec.layers.size(), true);
  if (hybrid) attends = attention_layers(config, {"mamba", "linear_attention"}, attends);
  AttentionSpec attention = read_attention(config, spec);
  attention.qkv_bias = attention.o_bias = config.presence_or("attention_bias", false);
  attention.scale = config.number_or("attention_multiplier", 1.0);
  const RopeLayout layout = config.is_gguf() ? RopeLayout::kInterleaved : RopeLayout::kHalfSplit;
  const RopeResult rope = read_rope(config, attention.head_dim, {.layout = layout});
  if (rotates(config, hybrid)) attention.rope = spec.add_rope(rope.rope);
  const NormSpec norm = rms_norm(config);
  std::optional<Mamba2Spec> mamba;
  if (hybrid) mamba = read_mamba2(config, spec, norm);
  std::optional<FfnSpec> shared;
  if (hybrid && (!config.is_gguf() || config.has("shared_expert_intermediate_size"))) {
    shared = FfnSpec{};
    shared->width = config.size_or("shared_expert_intermediate_size", 1024);
    shared->activation = read_activation(config, "silu");
  }
  FfnSpec dense = read_gated_ffn(config);
  const bool experts = config.count_or("num_experts", 0) > 0;
  if (!experts && !shared) dense.up_bias = dense.down_bias = config.presence_or("mlp_bias", false);
  Sublayer ffn = sequential("ffn", norm, dense);
  if (experts) {
    MoeSpec moe = read_moe(config);
    moe.score = RouterScore::kTopKSoftmax;
    ffn = moe_sublayer(norm, moe, shared);
  } else if (shared) {
    ffn.branches.front() = Branch{"shared", *shared};
  }
  spec.final_norm = norm;
  const double alpha = config.number_or("residual_multiplier", 1.0);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    auto& sublayers = spec.layers[i].sublayers;
    sublayers = {attends[i] ? sequential("attn", norm, attention) : sequential("attn", norm, *mamba), ffn};
    for (Sublayer& sublayer : sublayers) sublayer.alpha = alpha;
  }
}

void build_plain(ConfigReader& config, ModelSpec& spec, Dialect&) {
  build(config, spec, false);
}
void build_hybrid(ConfigReader& config, ModelSpec& spec, Dialect&) {
  build(config, spec, true);
}

Dialect hf() {
  Dialect dialect = {
      .rows = {{{"layers.*.moe.router"}, {"layers.*.block_sparse_moe.router.layer"}},
               {{"layers.*.moe.gate", "layers.*.moe.up"}, {"layers.*.block_sparse_moe.input_linear"}},
               {{"layers.*.moe.down"}, {"layers.*.block_sparse_moe.output_linear"}},
               {{"layers.*.shared.gate", "layers.*.shared.up"}, {"layers.*.shared_mlp.input_linear"}},
               {{"layers.*.shared.down"}, {"layers.*.shared_mlp.output_linear"}}}};
  add_state_space_rows(dialect, "attn", "mamba");
  return dialect;
}

}  // namespace

const Architecture& granite_architecture() {
  static const Architecture architecture = {.family = "granite",
                                            .hf_names = {"GraniteForCausalLM", "GraniteModel", "granite"},
                                            .gguf_names = {"granite"},
                                            .build = build_plain};
  return architecture;
}

const Architecture& granite_moe_architecture() {
  static const Architecture architecture = {.family = "granitemoe",
                                            .hf_names = {"GraniteMoeForCausalLM", "granitemoe"},
                                            .gguf_names = {"granitemoe"},
                                            .build = build_plain,
                                            .blocks = {"attention", "experts"},
                                            .hf = hf()};
  return architecture;
}

const Architecture& granite_hybrid_architecture() {
  static const Architecture architecture = {
      .family = "granitemoehybrid",
      .hf_names = {"GraniteMoeHybridForCausalLM", "granitemoehybrid"},
      .gguf_names = {"granitehybrid"},
      .build = build_hybrid,
      .blocks = {"attention", "state space by heads", "gated feed-forward", "experts"},
      .hf = hf()};
  return architecture;
}

}  // namespace tessera
