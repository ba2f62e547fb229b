// Which instruction sets this processor runs, and which one computes. TESSERA_ISA forces one by name.
#pragma once

#include <vector>

#include "backend/cpu/kernel_table.h"
#include "base/result.h"

namespace tessera::cpu {

// The tables this build holds and this processor can run, fastest first; never empty.
[[nodiscard]] const std::vector<KernelTable>& available_kernels();

// The fastest one, or the one TESSERA_ISA names; an error lists the allowed names.
[[nodiscard]] Result<const KernelTable*> choose_kernels();

}  // namespace tessera::cpu
