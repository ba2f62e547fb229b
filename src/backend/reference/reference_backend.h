// The reference backend: every op as its definition says, in plain loops, float32 values with float64 sums,
// one thread. It is slow and it is the judge of every other backend.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace tessera {

[[nodiscard]] std::unique_ptr<Backend> make_reference_backend();

}  // namespace tessera
