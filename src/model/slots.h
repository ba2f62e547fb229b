// Slots: the places a spec has for weights. A slot has an internal name ("layers.3.attn.q.weight"), a role, a
// shape, and says whether it must be filled; dialects map slots to the tensors of a checkpoint.
#pragma once

#include <string>
#include <vector>

#include "model/norm.h"
#include "model/spec.h"
#include "tensor/shape.h"

namespace tessera {

enum class SlotRole : uint8_t {
  kMatrix,   // [out, in], multiplied; keeps its format
  kTable,    // [rows, width], gathered (and multiplied, when the head is tied); keeps its format
  kExperts,  // [experts, out, in]: one matrix per expert
  kVector,   // gains, biases, small parameters: float32 once bound
};

// The groups a precision policy can name.
enum class SlotGroup : uint8_t { kOther, kQkv, kO, kGateUp, kDown, kExperts, kHead, kEmbed };

struct Slot {
  std::string name;  // "layers.3.attn.q.weight"
  std::string
      pattern;  // "layers.*.attn.q": name without layer number and suffix, what dialect rows are looked up by
  std::string suffix;  // ".weight", ".bias" or ""
  int layer = -1;      // -1: outside the layers
  SlotRole role = SlotRole::kMatrix;
  SlotGroup group = SlotGroup::kOther;
  Shape shape;
  Presence presence = Presence::kRequired;
};

// Every slot, in the order of the forward pass. Names are unique (CHECKed).
[[nodiscard]] std::vector<Slot> model_slots(const ModelSpec& spec);

}  // namespace tessera
