// State: what blocks remember of a sequence. Layers of equal kind and window form a group with its own page
// table; recurrent blocks keep a fixed number of bytes per sequence in a slot.
#pragma once

#include <cstdint>
#include <vector>

#include "model/spec.h"

namespace tessera {

enum class StateKind : uint8_t {
  kPaged,     // something for every position
  kWindowed,  // the last `window` positions; pages behind are given back
  kFixed,     // a fixed number of values per sequence
};

// One block's share. Paged kinds: per position, `heads` heads of k_width + v_width values; a kFixed share is
// `values` float32.
struct StateLayer {
  int layer = 0;
  int branch = 0;  // running number of the stateful branch inside the layer
  int64_t heads = 0;
  int64_t k_width = 0;
  int64_t v_width = 0;
  int64_t values = 0;
};

struct StateGroup {
  StateKind kind = StateKind::kPaged;
  int64_t window = 0;
  std::vector<StateLayer> layers;

  // Values (not bytes) kept per position over all layers of the group; 0 for kFixed.
  [[nodiscard]] int64_t values_per_position() const;
  // float32 values per sequence; 0 for paged kinds.
  [[nodiscard]] int64_t values_per_sequence() const;
};

[[nodiscard]] std::vector<StateGroup> state_groups(const ModelSpec& spec);

}  // namespace tessera
