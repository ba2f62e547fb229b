// What families with Mamba-2 blocks share.
#pragma once

#include "arch/common.h"

namespace tessera {

// mamba_* keys (or their plain spellings): heads, widths, groups, convolution, time-step limits; the gated norm works per group.
[[nodiscard]] Mamba2Spec read_mamba2(ConfigReader& config, const ModelSpec& spec, const NormSpec& norm);

}  // namespace tessera
