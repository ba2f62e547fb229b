// The slopes of linear attention biases (Press et al., 2022): 2^(-8 i / n) for a power of two n; otherwise those of the nearest
// smaller power, filled up with every second slope of the next larger one.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera {

// [heads], each multiplied by `scale`.
[[nodiscard]] std::vector<float> alibi_slopes(int64_t heads, double scale);

}  // namespace tessera
