// StatePool: the pages and slots of one StateStorage, with reference counts. Sequences hold pages through a
// SequenceState; forks share them, and a page that several hold is copied before one of them writes to it.
// Windowed groups give back the pages that no later token sees. The pool never hands out more than its
// storage has, and never changes anything when it cannot give all that was asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/result.h"
#include "model/state.h"

namespace tessera {

// What one sequence holds.
struct SequenceState {
  struct Group {
    std::vector<int32_t> pages;  // entry i: positions [i * page, (i + 1) * page); -1: given back
    size_t first = 0;            // entries before it are -1
  };
  std::vector<Group> groups;  // one per state group; empty for fixed groups
  int32_t slot = -1;          // of fixed state; -1: none
};

enum class Grant : uint8_t { kGiven, kFull };

class StatePool {
 public:
  [[nodiscard]] static Result<std::unique_ptr<StatePool>> create(Executable& executable,
                                                                 std::span<const StateGroup> groups,
                                                                 const StateCapacity& capacity);

  [[nodiscard]] SequenceState make_state() const;

  // Makes positions [past, past + count) writable: gives back windowed pages that tokens from `past` on do
  // not see, adds pages, copies those that are shared, takes a (cleared) slot if the model keeps fixed state
  // and the sequence has none. kFull: not enough is free, and only pages behind the window were given back.
  [[nodiscard]] Result<Grant> extend(SequenceState& state, int64_t past, int64_t count);

  // Pages per group that a sequence of `positions` holds at most when its steps are at most `chunk` long.
  [[nodiscard]] int64_t pages_needed(int group, int64_t positions, int64_t chunk) const;
  // Whether so much is free for a new sequence.
  [[nodiscard]] bool fits_now(int64_t positions, int64_t chunk) const;
  // Whether the pool could hold it when nothing else is there.
  [[nodiscard]] bool fits_ever(int64_t positions, int64_t chunk) const;

  // A second sequence with the same past: pages are shared, the slot is copied. kFull: no slot is free.
  [[nodiscard]] Result<Grant> fork(const SequenceState& from, SequenceState& to);
  // Gives back the pages of positions >= `positions`. Fixed state cannot be trimmed: CHECKs that there is
  // none.
  void truncate(SequenceState& state, int64_t positions);
  void release(SequenceState& state);

  [[nodiscard]] StateStorage& storage() { return *storage_; }
  [[nodiscard]] uint64_t bytes() const { return storage_->bytes(); }
  [[nodiscard]] int groups() const { return static_cast<int>(groups_.size()); }
  [[nodiscard]] bool has_slots() const { return has_slots_; }
  [[nodiscard]] int64_t free_pages(int group) const;
  [[nodiscard]] int64_t free_slots() const { return static_cast<int64_t>(free_slots_.size()); }
  [[nodiscard]] bool all_free() const;
  [[nodiscard]] int32_t references(int group, int32_t page) const;

 private:
  struct Pages {
    StateKind kind = StateKind::kPaged;
    int64_t window = 0;
    std::vector<int32_t> references;  // per page
    std::vector<int32_t> free;        // the last one is taken next; low numbers first
  };
  StatePool() = default;
  [[nodiscard]] int32_t take(Pages& pages);
  void give_back(Pages& pages, int32_t page);
  void give_back_behind(SequenceState& state, int64_t past);

  std::unique_ptr<StateStorage> storage_;
  int64_t page_positions_ = 16;
  bool has_slots_ = false;
  std::vector<Pages> groups_;
  std::vector<int32_t> free_slots_;
};

// How many pages and slots `sequences` sequences of `positions` positions in all need, and the bytes of that.
struct StateDemand {
  int64_t positions = 0;  // over all sequences
  int64_t sequences = 1;
  int64_t chunk = 512;  // longest part of a sequence in one step
};
[[nodiscard]] StateCapacity capacity_for(std::span<const StateGroup> groups, int64_t page_positions,
                                         const StateDemand& demand);
[[nodiscard]] uint64_t capacity_bytes(const Executable& executable, const StateCapacity& capacity);

// Bytes of memory that this process may still take (the machine's and the container's limits); 0: unknown.
[[nodiscard]] uint64_t available_memory();

}  // namespace tessera
