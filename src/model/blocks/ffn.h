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
  Presence up_bias = Presence::kAbsent;  // of gate and up
  Presence down_bias = Presence::kAbsent;
};

}  // namespace tessera
