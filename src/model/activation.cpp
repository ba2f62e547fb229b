#include "model/activation.h"

namespace tessera {

const char* activation_name(Activation activation) {
  switch (activation) {
    case Activation::kSilu:
      return "silu";
    case Activation::kGeluErf:
      return "gelu";
    case Activation::kGeluTanh:
      return "gelu_tanh";
    case Activation::kRelu:
      return "relu";
    case Activation::kReluSquared:
      return "relu2";
    case Activation::kSigmoid:
      return "sigmoid";
    case Activation::kTanh:
      return "tanh";
    case Activation::kIdentity:
      return "identity";
    case Activation::kGeluSigmoid:
      return "gelu_sigmoid";
  }
  return "?";
}

}  // namespace tessera
