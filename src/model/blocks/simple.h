// Two small blocks that serve as branches: a product of two thin matrices, and the input itself.
#pragma once

#include <cstdint>

namespace tessera {

// right(left(x)).
struct LowRankSpec {
  int64_t rank = 0;
};

// x: a branch that adds the sublayer's normed input as it is.
struct IdentitySpec {};

}  // namespace tessera
