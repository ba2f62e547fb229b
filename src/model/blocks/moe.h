// A mixture of experts (Shazeer et al., 2017): a router chooses top_k of the experts for every token and weighs their outputs.
#pragma once

#include <cstdint>
#include <optional>

#include "model/activation.h"
#include "model/norm.h"

namespace tessera {

enum class RouterScore : uint8_t {
  kSoftmax,      // softmax over all experts, then the best are taken
  kTopKSoftmax,  // the best logits are taken, then softmax over those
  kSigmoid,      // sigmoid of each logit
  kSparsemixer,  // one after another, each weighed by a softmax over the logits near the best one (Liu et al., 2023)
};
enum class GroupScore : uint8_t { kMax, kTopTwoSum };  // of the experts of a group
enum class RouterInput : uint8_t {
  kBranch,
  kSublayer
};  // the experts' input, or what it was before the branch's own norm

struct MoeSpec {
  int64_t experts = 0;
  int64_t top_k = 0;
  int64_t width = 0;  // of one expert
  bool gated = true;
  Activation activation = Activation::kSilu;
  double limit = 0;      // gate <= limit and |up| <= limit before they meet; 0: none
  double up_offset = 0;  // added to up
  Presence expert_bias = Presence::kAbsent;

  RouterScore score = RouterScore::kSoftmax;
  bool renormalise = false;  // the chosen weights are divided by their sum (+ renormalise_eps)
  double renormalise_eps = 0;
  double scale = 1.0;  // then multiplied by this
  Presence router_bias = Presence::kAbsent;
  Presence selection_bias = Presence::kAbsent;  // added to the scores for choosing, never to the weights
  int64_t groups = 1;  // experts are chosen from the best `top_groups` of this many groups
  int64_t top_groups = 1;
  GroupScore group_score = GroupScore::kMax;
  double sparsemixer_threshold = 0;  // 2 * jitter
  RouterInput router_input = RouterInput::kBranch;
  std::optional<NormSpec> router_norm;  // of the router's input
  double router_input_scale = 1.0;
  bool per_expert_scale = false;  // a slot: the chosen weights are multiplied by their expert's entry
};

}  // namespace tessera
