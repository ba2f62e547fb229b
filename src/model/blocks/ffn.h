// The feed-forward block: down(act(gate(x)) * up(x)) when gated (Shazeer, 2020), down(act(up(x))) when plain.
#pragma once

#include <cstdint>

#include "model/activation.h"
#include "model/norm.h"

namespace tessera {

struct FfnSpec {
  int64_t width = 0;
  bool gated = true;
  Activation activation = Activation::kSilu;
  double gate_scale = 1.0;  // on the gate's projection, before the activation
  bool token_gate = false;  // the output is multiplied by sigmoid(x . g), g a slot
  // Gaussian top-k: gate values below mean + sparsity_deviations * standard deviation of the row become 0, the others lose that
  // cutoff (the inverse normal distribution at the wanted share gives the deviations). 0: off.
  double sparsity_deviations = 0.0;
  Presence up_bias = Presence::kAbsent;  // of gate and up
  Presence down_bias = Presence::kAbsent;
};

}  // namespace tessera
