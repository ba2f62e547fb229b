#include "arch/moe_common.h"

#include <fmt/format.h>

namespace tessera {

MoeSpec read_moe(ConfigReader& config) {
  MoeSpec moe;
  moe.experts = config.size("num_experts");
  moe.top_k = config.size("num_experts_per_tok");
  moe.width = config.has("moe_intermediate_size") ? config.size("moe_intermediate_size")
                                                  : config.size("intermediate_size");
  moe.activation = read_activation(config, "silu");
  config.require(moe.top_k <= moe.experts, "num_experts_per_tok",
                 "at most num_experts, " + std::to_string(moe.experts));
  return moe;
}

std::vector<bool> sparse_layers(ConfigReader& config, const ModelSpec& spec) {
  const int64_t step = config.count_or("decoder_sparse_step", 1);
  std::vector<bool> sparse;
  for (size_t i = 0; i < spec.layers.size(); ++i)
    sparse.push_back(step > 0 && static_cast<int64_t>(i + 1) % step == 0);
  for (const double layer : config.numbers("mlp_only_layers"))
    if (layer >= 0 && layer < static_cast<double>(sparse.size())) sparse[static_cast<size_t>(layer)] = false;
  return sparse;
}

FfnSpec shared_expert(const MoeSpec& moe, int64_t width, bool token_gate) {
  FfnSpec shared;
  shared.width = width;
  shared.activation = moe.activation;
  shared.token_gate = token_gate;
  return shared;
}

Sublayer moe_sublayer(const NormSpec& norm, const MoeSpec& moe, const std::optional<FfnSpec>& shared) {
  Sublayer sublayer;
  sublayer.name = "ffn";
  sublayer.pre = norm;
  sublayer.branches.push_back(Branch{"moe", moe});
  if (shared) sublayer.branches.push_back(Branch{"shared", *shared});
  return sublayer;
}

bool has_selection_bias(const ConfigReader& config, int64_t layer) {
  return config.has_tensor(fmt::format("blk.{}.exp_probs_b.bias", layer));
}

void read_biased_router(ConfigReader& config, MoeSpec& moe) {
  (void)config.choice<bool>("scoring_func", "sigmoid", {{"sigmoid", true}});
  (void)config.choice<bool>("topk_method", "noaux_tc", {{"noaux_tc", true}});
  moe.score = RouterScore::kSigmoid;
  moe.selection_bias = Presence::kRequired;
  moe.renormalise = config.flag_or("norm_topk_prob", true);
  moe.renormalise_eps = 1e-20;
  moe.scale = config.number_or("routed_scaling_factor", 1.0);
  moe.groups = config.size_or("n_group", 1);
  moe.top_groups = config.size_or("topk_group", moe.groups);
  moe.group_score = GroupScore::kTopTwoSum;
  check_groups(config, moe);
}

void check_groups(ConfigReader& config, const MoeSpec& moe) {
  config.require(moe.groups > 0 && moe.experts % moe.groups == 0, "n_group",
                 "a divisor of the number of experts, " + std::to_string(moe.experts));
  config.require(moe.top_groups > 0 && moe.top_groups <= moe.groups, "topk_group",
                 "from 1 to the number of groups, " + std::to_string(moe.groups));
}

void ignore_draft_layers(ConfigReader& config, const ModelSpec& spec, Dialect& dialect) {
  const int64_t drafts = config.count_or("num_nextn_predict_layers", 0);
  for (int64_t i = 0; i < drafts && i < 64; ++i) {
    const auto layer = static_cast<int64_t>(spec.layers.size()) + i;
    dialect.ignored.push_back(fmt::format("{}.{}.*", config.is_gguf() ? "blk" : "layers", layer));
  }
}

}  // namespace tessera
