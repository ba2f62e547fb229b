#include "model/state.h"

#include <algorithm>

namespace tessera {
namespace {

void add(std::vector<StateGroup>& groups, StateKind kind, int64_t window, StateLayer layer) {
  const auto it = std::find_if(groups.begin(), groups.end(),
                               [&](const StateGroup& g) { return g.kind == kind && g.window == window; });
  if (it != groups.end())
    it->layers.push_back(layer);
  else
    groups.push_back(StateGroup{kind, window, {layer}});
}

}  // namespace

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

std::vector<StateGroup> state_groups(const ModelSpec& spec) {
  std::vector<StateGroup> groups;
  for (size_t layer = 0; layer < spec.layers.size(); ++layer) {
    int branch_number = 0;
    for (const Sublayer& sublayer : spec.layers[layer].sublayers) {
      for (const Branch& branch : sublayer.branches) {
        if (const auto* attention = std::get_if<AttentionSpec>(&branch.block)) {
          if (attention->kv_source_layer >= 0) continue;  // reads what another layer keeps
          const StateKind kind = attention->window > 0 ? StateKind::kWindowed : StateKind::kPaged;
          add(groups, kind, attention->window,
              StateLayer{static_cast<int>(layer), branch_number++, attention->kv_heads, attention->head_dim,
                         attention->value_dim, 0});
        }
      }
    }
  }
  return groups;
}

}  // namespace tessera
