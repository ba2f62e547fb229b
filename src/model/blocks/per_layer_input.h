// A small input of its own for every layer, looked up by token id and projected from the embedding:
// y = project(act(gate(x)) * input_of_this_layer).
#pragma once

#include <cstdint>

#include "model/activation.h"

namespace tessera {

struct PerLayerInputSpec {
  int64_t width = 0;  // EmbeddingSpec::per_layer_width
  Activation activation = Activation::kGeluTanh;
};

}  // namespace tessera
