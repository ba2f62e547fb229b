// What families with Mamba and Mamba-2 blocks share.
#pragma once

#include <string>

#include "arch/common.h"

namespace tessera {

// The selective state space of the first generation, without parameter norms. `inner` is its width.
[[nodiscard]] MambaSpec read_mamba(ConfigReader& config, const ModelSpec& spec, int64_t inner);

// mamba_* keys (or their plain spellings): heads, widths, groups, convolution, time-step limits; the gated norm works per group.
[[nodiscard]] Mamba2Spec read_mamba2(ConfigReader& config, const ModelSpec& spec, const NormSpec& norm);

// The rows of a HuggingFace dialect for Mamba and Mamba-2 blocks called `block`, whose tensors lie under
// layers.*.<module>.
void add_state_space_rows(Dialect& dialect, const std::string& block, const std::string& module);

}  // namespace tessera
