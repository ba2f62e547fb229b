// The pointwise functions of feed-forward blocks.
#pragma once

#include <cstdint>

namespace tessera {

enum class Activation : uint8_t {
  kSilu,      // x * sigmoid(x)
  kGeluErf,   // x * Phi(x), exact
  kGeluTanh,  // the tanh approximation (Hendrycks and Gimpel, 2016)
  kRelu,
  kReluSquared,
  kSigmoid,
  kTanh,
  kIdentity,
  kGeluSigmoid,  // x * sigmoid(1.702 x), the quick approximation
};

[[nodiscard]] const char* activation_name(Activation activation);

}  // namespace tessera
