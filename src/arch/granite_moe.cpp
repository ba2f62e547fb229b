// Granite with experts, and its hybrid with Mamba-2 layers and a shared MLP: multipliers on embedding, residual, scores and logits;
// softmax over the chosen experts. Rope only where position_embedding_type asks for it (hybrid).
#include "arch/families.h"
#include "arch/moe_common.h"
#include "arch/state_space.h"

namespace tessera {
namespace {

// The layers of the hybrid that are Mamba-2 blocks.
std::vector<bool> mamba_layers(ConfigReader& config, const ModelSpec& spec) {
  const std::vector<std::string> types = config.texts("layer_types");
  std::vector<bool> mamba(spec.layers.size(), false);
  config.require(types.empty() || types.size() == spec.layers.size(), "layer_types", "one entry per layer");
  for (size_t i = 0; i < types.size() && i < mamba.size(); ++i) {
    mamba[i] = types[i] == "mamba" || types[i] == "linear_attention";
    config.require(mamba[i] || types[i] == "attention" || types[i] == "full_attention", "layer_types",
                   "mamba or attention in each entry");
  }
  return mamba;
}

void build_common(ConfigReader& config, ModelSpec& spec, bool hybrid) {
  read_common(config, spec, {.context = 2048});
  spec.embedding.scale = config.number_or("embedding_multiplier", 1.0);
  const double logits_scaling = config.number_or("logits_scaling", 1.0);
  config.require(logits_scaling > 0, "logits_scaling", "a positive number");
  spec.head.scale = 1.0 / logits_scaling;
  AttentionSpec attention = read_attention(config, spec);
  attention.qkv_bias = attention.o_bias = config.presence_or("attention_bias", false);
  attention.scale = config.number_or("attention_multiplier", 1.0);
  const RopeResult rope = read_rope(config, attention.head_dim, {});
  const bool rotate = !hybrid || config.text_or("position_embedding_type", "nope") == "rope";
  if (rotate) attention.rope = spec.add_rope(rope.rope);
  MoeSpec moe;
  const bool sparse = config.count_or("num_experts", 0) > 0;
  if (sparse) {
    moe = read_moe(config);
    moe.score = RouterScore::kTopKSoftmax;
  }
  std::optional<FfnSpec> shared;
  if (hybrid) {
    shared = FfnSpec{};
    shared->width = config.size_or("shared_expert_intermediate_size", 1024);
    shared->activation = read_activation(config, "silu");
  }
  const NormSpec norm = rms_norm(config);
  const std::vector<bool> mamba =
      hybrid ? mamba_layers(config, spec) : std::vector<bool>(spec.layers.size(), false);
  std::optional<Mamba2Spec> mamba_block;
  if (hybrid) mamba_block = read_mamba2(config, spec, norm);
  spec.final_norm = norm;
  const double alpha = config.number_or("residual_multiplier", 1.0);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    Sublayer mixer = mamba[i] ? sequential("attn", norm, *mamba_block) : sequential("attn", norm, attention);
    Sublayer ffn =
        sparse ? moe_sublayer(norm, moe, shared) : sequential("ffn", norm, shared.value_or(FfnSpec{}));
    if (!sparse) ffn.branches.front().name = "shared";
    mixer.alpha = ffn.alpha = alpha;
    spec.layers[i].sublayers = {mixer, ffn};
  }
}

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  build_common(config, spec, false);
}
void build_hybrid(ConfigReader& config, ModelSpec& spec, Dialect&) {
  build_common(config, spec, true);
}

Dialect hf() {
  return {.rows = {{{"layers.*.attn.in"}, {"layers.*.mamba.in_proj"}},
                   {{"layers.*.attn.conv"}, {"layers.*.mamba.conv1d"}},
                   {{"layers.*.attn.dt_bias"}, {"layers.*.mamba.dt_bias"}},
                   {{"layers.*.attn.decay"}, {"layers.*.mamba.A_log"}, Transform::kNegExp},
                   {{"layers.*.attn.d"}, {"layers.*.mamba.D"}},
                   {{"layers.*.attn.o_norm"}, {"layers.*.mamba.norm"}},
                   {{"layers.*.attn.o"}, {"layers.*.mamba.out_proj"}},
                   {{"layers.*.moe.router"}, {"layers.*.block_sparse_moe.router.layer"}},
                   {{"layers.*.moe.gate", "layers.*.moe.up"}, {"layers.*.block_sparse_moe.input_linear"}},
                   {{"layers.*.moe.down"}, {"layers.*.block_sparse_moe.output_linear"}},
                   {{"layers.*.shared.gate", "layers.*.shared.up"}, {"layers.*.shared_mlp.input_linear"}},
                   {{"layers.*.shared.down"}, {"layers.*.shared_mlp.output_linear"}}},
          .prefixes = {},
          .ignored = {}};
}

}  // namespace

const Architecture& granite_moe_architecture() {
  static const Architecture architecture = {.family = "granitemoe",
                                            .hf_names = {"GraniteMoeForCausalLM", "granitemoe"},
                                            .gguf_names = {},
                                            .build = build,
                                            .hf = hf(),
                                            .gguf = {}};
  return architecture;
}

const Architecture& granite_hybrid_architecture() {
  static const Architecture architecture = {.family = "granitemoehybrid",
                                            .hf_names = {"GraniteMoeHybridForCausalLM", "granitemoehybrid"},
                                            .gguf_names = {},
                                            .build = build_hybrid,
                                            .hf = hf(),
                                            .gguf = {}};
  return architecture;
}

}  // namespace tessera
