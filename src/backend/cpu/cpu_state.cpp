#include "backend/cpu/cpu_state.h"

#include <cstring>

#include "backend/cpu/kernel_table.h"
#include "base/checked_math.h"

namespace tessera::cpu {

StateLayout state_layout(const StateGroup& group, const CompileOptions& options) {
  StateLayout layout;
  layout.paged = group.kind != StateKind::kFixed;
  layout.slots = static_cast<int64_t>(
      round_up(static_cast<uint64_t>(options.page_positions), static_cast<uint64_t>(kSlotUnit)));
  const uint64_t element = options.state == StateType::kF16 ? 2 : 4;
  for (const StateLayer& layer : group.layers) {
    layout.layers.push_back(layout.bytes);
    layout.bytes +=
        layout.paged
            ? static_cast<uint64_t>(layout.slots * layer.heads * (layer.k_width + layer.v_width)) * element
            : static_cast<uint64_t>(layer.values) * sizeof(float);
    layout.bytes = round_up(layout.bytes, 64);
  }
  return layout;
}

Result<std::unique_ptr<CpuState>> CpuState::create(const Plan& plan, const CompileOptions& options,
                                                   const StateCapacity& capacity) {
  if (capacity.pages.size() != plan.states.size())
    return fail(ErrorCode::kInvalidArgument, "state capacity: expected {} groups, found {}",
                plan.states.size(), capacity.pages.size());
  auto state = std::make_unique<CpuState>();
  state->capacity_ = capacity;
  for (size_t g = 0; g < plan.states.size(); ++g) {
    Group group;
    group.layout = state_layout(plan.states[g], options);
    const int64_t count = group.layout.paged ? capacity.pages[g] : capacity.slots;
    if (count < 0) return fail(ErrorCode::kInvalidArgument, "state capacity: {} pages or slots", count);
    const auto bytes = checked_multiply(static_cast<uint64_t>(count), group.layout.bytes);
    if (!bytes)
      return fail(ErrorCode::kResourceLimit, "state: {} pages are more than can be addressed", count);
    TESSERA_TRY(group.memory, ZeroedMemory::allocate(*bytes, "state"));
    state->groups_.push_back(std::move(group));
  }
  return state;
}

uint64_t CpuState::bytes() const {
  uint64_t total = 0;
  for (const Group& group : groups_) total += group.memory.size();
  return total;
}

Status CpuState::copy_page(int group, int32_t from, int32_t to) {
  if (group < 0 || static_cast<size_t>(group) >= groups_.size() || !layout(group).paged)
    return fail(ErrorCode::kInvalidArgument, "state: group {} has no pages", group);
  const int64_t count = capacity_.pages[static_cast<size_t>(group)];
  if (from < 0 || from >= count || to < 0 || to >= count)
    return fail(ErrorCode::kInvalidArgument, "state: copy of page {} to {}: there are {}", from, to, count);
  const Group& g = groups_[static_cast<size_t>(group)];
  if (from != to)
    std::memcpy(g.memory.data() + static_cast<uint64_t>(to) * g.layout.bytes,
                g.memory.data() + static_cast<uint64_t>(from) * g.layout.bytes, g.layout.bytes);
  return {};
}

Status CpuState::copy_slot(int32_t from, int32_t to) {
  if (from < 0 || from >= capacity_.slots || to < 0 || to >= capacity_.slots)
    return fail(ErrorCode::kInvalidArgument, "state: copy of slot {} to {}: there are {}", from, to,
                capacity_.slots);
  if (from == to) return {};
  for (const Group& g : groups_)
    if (!g.layout.paged && g.layout.bytes > 0)
      std::memcpy(g.memory.data() + static_cast<uint64_t>(to) * g.layout.bytes,
                  g.memory.data() + static_cast<uint64_t>(from) * g.layout.bytes, g.layout.bytes);
  return {};
}

Status CpuState::clear_slot(int32_t slot) {
  if (slot < 0 || slot >= capacity_.slots)
    return fail(ErrorCode::kInvalidArgument, "state: slot {}: there are {}", slot, capacity_.slots);
  for (const Group& g : groups_)
    if (!g.layout.paged && g.layout.bytes > 0)
      std::memset(g.memory.data() + static_cast<uint64_t>(slot) * g.layout.bytes, 0, g.layout.bytes);
  return {};
}

std::byte* CpuState::layer(int group, int layer) const {
  const Group& g = groups_[static_cast<size_t>(group)];
  return g.memory.data() + g.layout.layers[static_cast<size_t>(layer)];
}

}  // namespace tessera::cpu
