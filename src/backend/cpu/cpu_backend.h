// The CPU backend: vector kernels for the processor it finds, a persistent pool of threads, weights where they lie.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace tessera {

namespace cpu {
struct KernelTable;
}

// The instruction set is the fastest this processor has, or the one TESSERA_ISA names; another name is an error that lists the
// allowed ones.
[[nodiscard]] Result<std::unique_ptr<Backend>> make_cpu_backend();
// With kernels chosen by the caller (tests, benchmarks); the table must outlive the backend.
[[nodiscard]] std::unique_ptr<Backend> make_cpu_backend(const cpu::KernelTable& kernels);

}  // namespace tessera
