// StateList: how the blocks of a spec state what they remember. A block may keep several things (a convolution's last inputs and a
// recurrent matrix); they are numbered in the order in which its ops ask for them.
#pragma once

#include <vector>

#include "model/state.h"

namespace tessera {

class StateList {
 public:
  void set_layer(int layer) {
    layer_ = layer;
    branch_ = 0;
  }
  // Per position: `heads` heads of k_width + v_width values; only the last `window` positions when window > 0.
  void add_paged(int64_t heads, int64_t k_width, int64_t v_width, int64_t window);
  // A fixed number of float32 values per sequence, zero at the start.
  void add_fixed(int64_t values);

  [[nodiscard]] std::vector<StateGroup> take() { return std::move(groups_); }

 private:
  void add(StateKind kind, int64_t window, StateLayer layer);
  int layer_ = 0;
  int branch_ = 0;
  std::vector<StateGroup> groups_;
};

}  // namespace tessera
