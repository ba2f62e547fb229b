#include "engine/state_pool.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked_math.h"

namespace tessera {

Result<std::unique_ptr<StatePool>> StatePool::create(Executable& executable,
                                                     std::span<const StateGroup> groups,
                                                     const StateCapacity& capacity) {
  CHECK(capacity.pages.size() == groups.size(), "{} counts for {} groups", capacity.pages.size(),
        groups.size());
  std::unique_ptr<StatePool> pool(new StatePool());
  TESSERA_TRY(pool->storage_, executable.allocate_state(capacity));
  pool->page_positions_ = executable.options().page_positions;
  for (size_t g = 0; g < groups.size(); ++g) {
    Pages pages;
    pages.kind = groups[g].kind;
    pages.window = groups[g].window;
    if (pages.kind == StateKind::kFixed) {
      pool->has_slots_ = true;
    } else {
      pages.references.assign(static_cast<size_t>(capacity.pages[g]), 0);
      for (int64_t page = capacity.pages[g] - 1; page >= 0; --page)
        pages.free.push_back(static_cast<int32_t>(page));
    }
    pool->groups_.push_back(std::move(pages));
  }
  for (int64_t slot = capacity.slots - 1; slot >= 0; --slot)
    pool->free_slots_.push_back(static_cast<int32_t>(slot));
  return pool;
}

SequenceState StatePool::make_state() const {
  SequenceState state;
  state.groups.resize(groups_.size());
  return state;
}

int32_t StatePool::take(Pages& pages) {
  CHECK(!pages.free.empty(), "no page is free");
  const int32_t page = pages.free.back();
  pages.free.pop_back();
  CHECK(pages.references[static_cast<size_t>(page)] == 0, "page {} is in use", page);
  pages.references[static_cast<size_t>(page)] = 1;
  return page;
}

void StatePool::give_back(Pages& pages, int32_t page) {
  int32_t& references = pages.references[static_cast<size_t>(page)];
  CHECK(references > 0, "page {} is free already", page);
  if (--references == 0) pages.free.push_back(page);
}

void StatePool::give_back_behind(SequenceState& state, int64_t past) {
  for (size_t g = 0; g < groups_.size(); ++g) {
    Pages& pages = groups_[g];
    if (pages.kind != StateKind::kWindowed) continue;
    SequenceState::Group& held = state.groups[g];
    // The token at `past` sees positions > past - window; a page goes when its last position is before that.
    const int64_t first_visible = std::max<int64_t>(0, past - pages.window + 1);
    const auto first = std::min(held.pages.size(), static_cast<size_t>(first_visible / page_positions_));
    for (; held.first < first; ++held.first) {
      give_back(pages, held.pages[held.first]);
      held.pages[held.first] = -1;
    }
  }
}

Result<Grant> StatePool::extend(SequenceState& state, int64_t past, int64_t count) {
  CHECK(count > 0 && past >= 0 && state.groups.size() == groups_.size(), "positions {} + {}", past, count);
  give_back_behind(state, past);
  const auto first_written = static_cast<size_t>(past / page_positions_);
  const auto end = static_cast<size_t>(ceil_divide(past + count, page_positions_));

  if (has_slots_ && state.slot < 0 && free_slots_.empty()) return Grant::kFull;
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].kind == StateKind::kFixed) continue;
    const SequenceState::Group& held = state.groups[g];
    size_t needed = end > held.pages.size() ? end - held.pages.size() : 0;
    for (size_t i = first_written; i < std::min(end, held.pages.size()); ++i) {
      CHECK(held.pages[i] >= 0, "page {} of a sequence was given back and is written to", i);
      if (references(static_cast<int>(g), held.pages[i]) > 1) ++needed;
    }
    if (needed > groups_[g].free.size()) return Grant::kFull;
  }

  if (has_slots_ && state.slot < 0) {
    const int32_t slot = free_slots_.back();
    TESSERA_TRY_STATUS(storage_->clear_slot(slot));
    free_slots_.pop_back();
    state.slot = slot;
  }
  for (size_t g = 0; g < groups_.size(); ++g) {
    Pages& pages = groups_[g];
    if (pages.kind == StateKind::kFixed) continue;
    SequenceState::Group& held = state.groups[g];
    for (size_t i = first_written; i < std::min(end, held.pages.size()); ++i) {
      const int32_t shared = held.pages[i];
      if (references(static_cast<int>(g), shared) == 1) continue;
      const int32_t own = take(pages);
      if (Status copied = storage_->copy_page(static_cast<int>(g), shared, own); !copied) {
        give_back(pages, own);
        return Failure(std::move(copied).error());
      }
      give_back(pages, shared);
      held.pages[i] = own;
    }
    while (held.pages.size() < end) held.pages.push_back(take(pages));
  }
  return Grant::kGiven;
}

int64_t StatePool::pages_needed(int group, int64_t positions, int64_t chunk) const {
  const Pages& pages = groups_[static_cast<size_t>(group)];
  if (pages.kind == StateKind::kFixed) return 0;
  const int64_t all = ceil_divide(positions, page_positions_);
  if (pages.kind == StateKind::kPaged) return all;
  // window + chunk positions, which need not begin or end with a page.
  return std::min(all, ceil_divide(pages.window + chunk, page_positions_) + 1);
}

bool StatePool::fits_now(int64_t positions, int64_t chunk) const {
  if (has_slots_ && free_slots_.empty()) return false;
  for (int g = 0; g < groups(); ++g)
    if (pages_needed(g, positions, chunk) > free_pages(g)) return false;
  return true;
}

bool StatePool::fits_ever(int64_t positions, int64_t chunk) const {
  if (has_slots_ && storage_->capacity().slots < 1) return false;
  for (int g = 0; g < groups(); ++g) {
    const auto total = static_cast<int64_t>(groups_[static_cast<size_t>(g)].references.size());
    if (pages_needed(g, positions, chunk) > total) return false;
  }
  return true;
}

Result<Grant> StatePool::fork(const SequenceState& from, SequenceState& to) {
  if (from.slot >= 0 && free_slots_.empty()) return Grant::kFull;
  SequenceState copy = from;
  if (from.slot >= 0) {
    TESSERA_TRY_STATUS(storage_->copy_slot(from.slot, free_slots_.back()));
    copy.slot = free_slots_.back();
    free_slots_.pop_back();
  }
  for (size_t g = 0; g < groups_.size(); ++g) {
    const SequenceState::Group& held = copy.groups[g];
    for (size_t i = held.first; i < held.pages.size(); ++i)
      ++groups_[g].references[static_cast<size_t>(held.pages[i])];
  }
  to = std::move(copy);
  return Grant::kGiven;
}

void StatePool::truncate(SequenceState& state, int64_t positions) {
  CHECK(state.slot < 0, "fixed state cannot be trimmed");
  const auto keep = static_cast<size_t>(ceil_divide(positions, page_positions_));
  for (size_t g = 0; g < groups_.size(); ++g) {
    SequenceState::Group& held = state.groups[g];
    CHECK(held.pages.size() <= keep || keep >= held.first, "positions behind the window are gone");
    while (held.pages.size() > keep) {
      give_back(groups_[g], held.pages.back());
      held.pages.pop_back();
    }
  }
}

void StatePool::release(SequenceState& state) {
  for (size_t g = 0; g < state.groups.size(); ++g) {
    SequenceState::Group& held = state.groups[g];
    // From the back, so that the lowest numbers are taken first again.
    for (size_t i = held.pages.size(); i > held.first; --i) give_back(groups_[g], held.pages[i - 1]);
    held = {};
  }
  if (state.slot >= 0) free_slots_.push_back(state.slot);
  state.slot = -1;
}

int64_t StatePool::free_pages(int group) const {
  return static_cast<int64_t>(groups_[static_cast<size_t>(group)].free.size());
}

int32_t StatePool::references(int group, int32_t page) const {
  return groups_[static_cast<size_t>(group)].references[static_cast<size_t>(page)];
}

bool StatePool::all_free() const {
  if (has_slots_ && free_slots() != storage_->capacity().slots) return false;
  return std::all_of(groups_.begin(), groups_.end(),
                     [](const Pages& pages) { return pages.free.size() == pages.references.size(); });
}

StateCapacity capacity_for(std::span<const StateGroup> groups, int64_t page_positions,
                           const StateDemand& demand) {
  StateCapacity capacity;
  for (const StateGroup& group : groups) {
    if (group.kind == StateKind::kFixed) {
      capacity.pages.push_back(0);
      capacity.slots = demand.sequences;
      continue;
    }
    // Every sequence but one may leave part of its last page unused.
    int64_t pages = ceil_divide(demand.positions, page_positions) + demand.sequences - 1;
    if (group.kind == StateKind::kWindowed) {
      const int64_t kept = ceil_divide(group.window + demand.chunk, page_positions) + 1;
      pages = std::min(pages, kept * demand.sequences);
    }
    capacity.pages.push_back(pages);
  }
  return capacity;
}

uint64_t capacity_bytes(const Executable& executable, const StateCapacity& capacity) {
  uint64_t bytes = static_cast<uint64_t>(capacity.slots) * executable.slot_bytes();
  for (size_t g = 0; g < capacity.pages.size(); ++g)
    bytes += static_cast<uint64_t>(capacity.pages[g]) * executable.page_bytes(static_cast<int>(g));
  return bytes;
}

}  // namespace tessera
