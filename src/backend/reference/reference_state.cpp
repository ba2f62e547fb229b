#include "backend/reference/reference_state.h"

#include <algorithm>

namespace tessera {

ReferenceState::ReferenceState(const Plan& plan, const CompileOptions& options, StateCapacity capacity)
    : plan_(plan), page_positions_(options.page_positions), capacity_(std::move(capacity)) {
  for (size_t g = 0; g < plan.states.size(); ++g) {
    const StateGroup& state = plan.states[g];
    Group group;
    group.paged = state.kind != StateKind::kFixed;
    for (const StateLayer& layer : state.layers) {
      group.layers.push_back(group.stride);
      group.stride +=
          group.paged ? page_positions_ * layer.heads * (layer.k_width + layer.v_width) : layer.values;
    }
    const int64_t count = group.paged ? capacity_.pages[g] : capacity_.slots;
    group.values.assign(static_cast<size_t>(count * group.stride), 0.0f);
    groups_.push_back(std::move(group));
  }
}

uint64_t ReferenceState::bytes() const {
  uint64_t total = 0;
  for (const Group& group : groups_) total += group.values.size() * sizeof(float);
  return total;
}

Status ReferenceState::copy_page(int group, int32_t from, int32_t to) {
  Group& g = groups_[static_cast<size_t>(group)];
  std::copy_n(g.values.begin() + from * g.stride, g.stride, g.values.begin() + to * g.stride);
  return {};
}

Status ReferenceState::copy_slot(int32_t from, int32_t to) {
  for (Group& g : groups_)
    if (!g.paged) std::copy_n(g.values.begin() + from * g.stride, g.stride, g.values.begin() + to * g.stride);
  return {};
}

Status ReferenceState::clear_slot(int32_t slot) {
  for (Group& g : groups_)
    if (!g.paged) std::fill_n(g.values.begin() + slot * g.stride, g.stride, 0.0f);
  return {};
}

float* ReferenceState::head(int group, int layer, int64_t page, int64_t position, int64_t head) {
  Group& g = groups_[static_cast<size_t>(group)];
  const StateLayer& shape = plan_.states[static_cast<size_t>(group)].layers[static_cast<size_t>(layer)];
  const int64_t width = shape.k_width + shape.v_width;
  return g.values.data() + page * g.stride + g.layers[static_cast<size_t>(layer)] +
         (position * shape.heads + head) * width;
}

float* ReferenceState::fixed(int group, int layer, int64_t slot) {
  Group& g = groups_[static_cast<size_t>(group)];
  return g.values.data() + slot * g.stride + g.layers[static_cast<size_t>(layer)];
}

}  // namespace tessera
