#include "model/state.h"

#include <algorithm>

#include "model/state_list.h"

namespace tessera {
int64_t StateGroup::values_per_position() const {
  int64_t values = 0;
  for (const StateLayer& layer : layers) values += layer.heads * (layer.k_width + layer.v_width);
  return values;
}

int64_t StateGroup::values_per_sequence() const {
  int64_t values = 0;
  for (const StateLayer& layer : layers) values += layer.values;
  return values;
}

void StateList::add(StateKind kind, int64_t window, StateLayer layer) {
  layer.layer = layer_;
  layer.branch = branch_++;
  const auto it = std::find_if(groups_.begin(), groups_.end(),
                               [&](const StateGroup& g) { return g.kind == kind && g.window == window; });
  if (it != groups_.end())
    it->layers.push_back(layer);
  else
    groups_.push_back(StateGroup{kind, window, {layer}});
}

void StateList::add_paged(int64_t heads, int64_t k_width, int64_t v_width, int64_t window) {
  add(window > 0 ? StateKind::kWindowed : StateKind::kPaged, window,
      StateLayer{0, 0, heads, k_width, v_width, 0});
}

void StateList::add_fixed(int64_t values) {
  add(StateKind::kFixed, 0, StateLayer{0, 0, 0, 0, 0, values});
}

std::vector<StateGroup> state_groups(const ModelSpec& spec) {
  StateList state;
  for (size_t layer = 0; layer < spec.layers.size(); ++layer) {
    state.set_layer(static_cast<int>(layer));
    for (const Sublayer& sublayer : spec.layers[layer].sublayers)
      for (const Branch& branch : sublayer.branches) add_state(state, branch.block, spec.hidden);
  }
  return state.take();
}

}  // namespace tessera
