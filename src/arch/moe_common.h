// What families with experts share.
#pragma once

#include "arch/common.h"

namespace tessera {

// num_experts, num_experts_per_tok, the experts' width (moe_intermediate_size, else intermediate_size), activation.
[[nodiscard]] MoeSpec read_moe(ConfigReader& config);

// Which layers have experts: every decoder_sparse_step-th, those in mlp_only_layers excepted.
[[nodiscard]] std::vector<bool> sparse_layers(ConfigReader& config, const ModelSpec& spec);

// A shared expert beside the routed ones: a gated feed-forward block of `width`.
[[nodiscard]] FfnSpec shared_expert(const MoeSpec& moe, int64_t width, bool token_gate);

// The feed-forward sublayer "ffn": the branch "moe", and the branch "shared" when there is a shared expert.
[[nodiscard]] Sublayer moe_sublayer(const NormSpec& norm, const MoeSpec& moe,
                                    const std::optional<FfnSpec>& shared);

// A GGUF file's layer has the tensor of such a bias: its router is the one below, whatever the metadata leave out.
[[nodiscard]] bool has_selection_bias(const ConfigReader& config, int64_t layer);

// The V3-style router: sigmoid scores, a bias for choosing only, groups scored by their best two.
void read_biased_router(ConfigReader& config, MoeSpec& moe);

// Groups of experts fit together; an error names n_group or topk_group.
void check_groups(ConfigReader& config, const MoeSpec& moe);

// Tensors of draft layers (num_nextn_predict_layers of them, after the last layer) are left over on purpose.
void ignore_draft_layers(ConfigReader& config, const ModelSpec& spec, Dialect& dialect);

}  // namespace tessera
