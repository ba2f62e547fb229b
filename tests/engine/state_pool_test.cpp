// StatePool under random histories of extend, fork, truncate and release, against a plain model of what every
// sequence must hold: no page is lost, shared where it is written, or handed out beyond the storage.
#include "engine/state_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "engine/fake_model.h"

namespace tessera {
namespace {

struct Owner {
  SequenceState state;
  int64_t length = 0;
  std::vector<int32_t> ids;  // what was written, by position
};

class PoolHistory {
 public:
  PoolHistory(std::vector<StateGroup> groups, int64_t pages, int64_t slots, uint32_t seed)
      : plan_(fake::plan_of(std::move(groups))), model_(plan_, fake::small_options()), random_(seed) {
    StateCapacity capacity;
    for (const StateGroup& group : plan_.states)
      capacity.pages.push_back(group.kind == StateKind::kFixed ? 0 : pages);
    capacity.slots = slots;
    pool_ = *StatePool::create(model_, plan_.states, capacity);
  }

  void run(int steps) {
    for (int step = 0; step < steps; ++step) {
      const int action = pick(0, 9);
      if (owners_.empty() || (action == 0 && owners_.size() < 8)) {
        owners_.emplace_back().state = pool_->make_state();
      } else if (action == 1 && owners_.size() < 8) {
        fork();
      } else if (action == 2) {
        release(static_cast<size_t>(pick(0, static_cast<int>(owners_.size()) - 1)));
      } else if (action == 3) {
        truncate();
      } else {
        extend();
      }
      check();
      if (::testing::Test::HasFatalFailure()) return;
    }
    while (!owners_.empty()) release(0);
    EXPECT_TRUE(pool_->all_free());
  }

  int64_t full = 0;
  int64_t given = 0;
  int64_t forks = 0;

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  Owner& any() { return owners_[static_cast<size_t>(pick(0, static_cast<int>(owners_.size()) - 1))]; }
  fake::Storage& storage() { return static_cast<fake::Storage&>(pool_->storage()); }

  void extend() {
    Owner& owner = any();
    const int64_t count = pick(1, 11);
    const Result<Grant> grant = pool_->extend(owner.state, owner.length, count);
    ASSERT_TRUE(grant);
    if (*grant == Grant::kFull) {
      ++full;
      return;
    }
    ++given;
    for (int64_t i = 0; i < count; ++i) {
      const int32_t id = pick(0, 1000000);
      owner.ids.push_back(id);
      for (size_t g = 0; g < plan_.states.size(); ++g) {
        if (plan_.states[g].kind == StateKind::kFixed) continue;
        cell(owner, g, owner.length + i).id = id;
      }
    }
    owner.length += count;
  }

  void fork() {
    Owner copy;
    const Owner& from = any();
    const Result<Grant> grant = pool_->fork(from.state, copy.state);
    ASSERT_TRUE(grant);
    if (*grant == Grant::kFull) return;
    ++forks;
    copy.length = from.length;
    copy.ids = from.ids;
    owners_.push_back(std::move(copy));
  }

  void truncate() {
    Owner& owner = any();
    if (pool_->has_slots() || owner.length == 0) return;
    // Not before the window: those pages are gone.
    int64_t first = 0;
    for (const auto& group : owner.state.groups)
      first = std::max(first, static_cast<int64_t>(group.first) * 4);
    for (const StateGroup& group : plan_.states)
      if (group.kind == StateKind::kWindowed && first > 0) first += group.window;
    if (first > owner.length) return;
    owner.length = pick(static_cast<int>(first), static_cast<int>(owner.length));
    owner.ids.resize(static_cast<size_t>(owner.length));
    pool_->truncate(owner.state, owner.length);
  }

  void release(size_t index) {
    pool_->release(owners_[index].state);
    owners_.erase(owners_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  fake::Cell& cell(const Owner& owner, size_t g, int64_t position) {
    const int32_t page = owner.state.groups[g].pages[static_cast<size_t>(position / 4)];
    CHECK(page >= 0);
    return storage().cells[g][static_cast<size_t>(page * 4 + position % 4)];
  }

  void check() {
    for (size_t g = 0; g < plan_.states.size(); ++g) {
      const StateGroup& group = plan_.states[g];
      if (group.kind == StateKind::kFixed) continue;
      std::map<int32_t, int32_t> holders;
      for (const Owner& owner : owners_)
        for (const int32_t page : owner.state.groups[g].pages)
          if (page >= 0) ++holders[page];
      int64_t used = 0;
      for (const auto& [page, count] : holders) {
        ASSERT_EQ(pool_->references(static_cast<int>(g), page), count) << "page " << page;
        ++used;
      }
      ASSERT_EQ(pool_->free_pages(static_cast<int>(g)) + used, pool_->storage().capacity().pages[g]);
      // Everything the next token sees is there and is what this owner wrote, whoever shared it since.
      for (const Owner& owner : owners_) {
        int64_t from = 0;
        if (group.kind == StateKind::kWindowed) from = std::max<int64_t>(0, owner.length - group.window + 1);
        for (int64_t position = from; position < owner.length; ++position)
          ASSERT_EQ(cell(owner, g, position).id, owner.ids[static_cast<size_t>(position)]);
        // ... and a window is not held much longer than it is seen.
        if (group.kind == StateKind::kWindowed) {
          int64_t held = 0;
          for (const int32_t page : owner.state.groups[g].pages) held += page >= 0 ? 1 : 0;
          ASSERT_LE(held, (group.window + 11) / 4 + 2);
        }
      }
    }
  }

  Plan plan_;
  fake::Model model_;
  std::mt19937 random_;
  std::unique_ptr<StatePool> pool_;
  std::vector<Owner> owners_;
};

TEST(StatePool, RandomHistories) {
  int64_t full = 0;
  int64_t given = 0;
  int64_t forks = 0;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::vector<StateGroup> groups = {fake::group_of(StateKind::kPaged),
                                      fake::group_of(StateKind::kWindowed, 6)};
    if (seed % 3 == 1) groups = {fake::group_of(StateKind::kWindowed, 5), fake::group_of(StateKind::kFixed)};
    if (seed % 3 == 2) groups = {fake::group_of(StateKind::kPaged)};
    PoolHistory history(groups, 40, 6, seed);
    history.run(600);
    if (HasFatalFailure()) return;
    full += history.full;
    given += history.given;
    forks += history.forks;
  }
  EXPECT_GT(full, 100);  // the histories did reach the limits
  EXPECT_GT(given, 1000);
  EXPECT_GT(forks, 100);
}

TEST(StatePool, NothingChangesWhenItIsFull) {
  const Plan plan = fake::plan_of({fake::group_of(StateKind::kPaged), fake::group_of(StateKind::kPaged)});
  fake::Model model(plan, fake::small_options());
  const auto pool = *StatePool::create(model, plan.states, {{8, 3}, 0});
  SequenceState state = pool->make_state();
  EXPECT_EQ(*pool->extend(state, 0, 13), Grant::kFull);  // four pages, the second group has three
  EXPECT_TRUE(pool->all_free());
  EXPECT_EQ(*pool->extend(state, 0, 12), Grant::kGiven);
  EXPECT_EQ(pool->free_pages(0), 5);
  EXPECT_EQ(pool->free_pages(1), 0);
  EXPECT_EQ(*pool->extend(state, 12, 1), Grant::kFull);
  EXPECT_EQ(pool->free_pages(0), 5);
  pool->release(state);
  EXPECT_TRUE(pool->all_free());
}

TEST(StatePool, LowPagesAreTakenFirst) {
  const Plan plan = fake::plan_of({fake::group_of(StateKind::kPaged)});
  fake::Model model(plan, fake::small_options());
  const auto pool = *StatePool::create(model, plan.states, {{100}, 0});
  SequenceState state = pool->make_state();
  ASSERT_TRUE(pool->extend(state, 0, 10));
  EXPECT_EQ(state.groups[0].pages, (std::vector<int32_t>{0, 1, 2}));
  pool->release(state);
  ASSERT_TRUE(pool->extend(state, 0, 10));
  EXPECT_EQ(state.groups[0].pages, (std::vector<int32_t>{0, 1, 2}));  // memory once touched is used again
}

TEST(StatePool, CapacityCoversWhatItWasAskedFor) {
  const Plan plan =
      fake::plan_of({fake::group_of(StateKind::kPaged), fake::group_of(StateKind::kWindowed, 10),
                     fake::group_of(StateKind::kFixed)});
  fake::Model model(plan, fake::small_options());
  const StateCapacity capacity = capacity_for(plan.states, 4, {100, 2, 7});
  EXPECT_EQ(capacity.pages, (std::vector<int64_t>{26, 12, 0}));  // 100 / 4 + 1; (17 / 4 rounded up + 1) * 2
  EXPECT_EQ(capacity.slots, 2);
  EXPECT_EQ(capacity_bytes(model, capacity), (26u + 12u) * 4 * sizeof(fake::Cell) + 16);
  const auto pool = *StatePool::create(model, plan.states, capacity);
  EXPECT_TRUE(pool->fits_ever(100, 7));
  EXPECT_FALSE(pool->fits_ever(105, 7));
}

}  // namespace
}  // namespace tessera
