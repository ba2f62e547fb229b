// A model for the engine's tests that no arithmetic hides behind: the "state" of a position is its token id
// and the rope table it was stored with, kept in real pages and slots; the logits of a row are a hash of
// everything its token sees through the page table. A page that was given back too early, shared when it
// should have been copied, or read through the wrong entry changes the logits of every later token.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "base/check.h"
#include "plan/plan.h"

namespace tessera::fake {

inline uint64_t mix(uint64_t value) {  // the finaliser of splitmix64
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

struct Cell {
  int32_t id = -1;
  int64_t table = 0;
};

class Storage : public StateStorage {
 public:
  Storage(StateCapacity capacity, int page_positions) : capacity_(std::move(capacity)) {
    for (const int64_t pages : capacity_.pages)
      cells.emplace_back(static_cast<size_t>(pages * page_positions));
    slots.assign(static_cast<size_t>(capacity_.slots), 0xdead);
    page = page_positions;
  }
  [[nodiscard]] const StateCapacity& capacity() const override { return capacity_; }
  [[nodiscard]] uint64_t bytes() const override {
    uint64_t sum = slots.size() * 8;
    for (const auto& group : cells) sum += group.size() * sizeof(Cell);
    return sum;
  }
  Status copy_page(int group, int32_t from, int32_t to) override {
    auto& all = cells[static_cast<size_t>(group)];
    for (int i = 0; i < page; ++i)
      all[static_cast<size_t>(to * page + i)] = all[static_cast<size_t>(from * page + i)];
    return {};
  }
  Status copy_slot(int32_t from, int32_t to) override {
    slots[static_cast<size_t>(to)] = slots[static_cast<size_t>(from)];
    return {};
  }
  Status clear_slot(int32_t slot) override {
    slots[static_cast<size_t>(slot)] = 0;
    return {};
  }

  std::vector<std::vector<Cell>> cells;  // per group: [pages * page]
  std::vector<uint64_t> slots;
  int page = 0;

 private:
  StateCapacity capacity_;
};

class Model : public Executable {
 public:
  Model(const Plan& plan, CompileOptions options) : plan_(plan), options_(options) {}

  [[nodiscard]] Result<std::unique_ptr<StateStorage>> allocate_state(const StateCapacity& capacity) override {
    largest_state = std::max(largest_state, capacity_in_bytes(capacity));
    return std::unique_ptr<StateStorage>(new Storage(capacity, options_.page_positions));
  }
  [[nodiscard]] Result<Ticket> submit(const StepInput& input) override {
    ++steps;
    largest_step = std::max(largest_step, static_cast<int64_t>(input.tokens.size()));
    if (fail_at_step == steps) return fail(ErrorCode::kDevice, "the device is gone");
    CHECK(input.tokens.size() <= static_cast<size_t>(options_.max_tokens));
    CHECK(input.past.size() <= static_cast<size_t>(options_.max_sequences));
    logits_.clear();
    size_t output = 0;
    for (size_t s = 0; s < input.past.size(); ++s) run_sequence(input, s, output);
    CHECK(output == input.output_rows.size());
    return ++ticket_;
  }
  [[nodiscard]] Result<bool> ready(Ticket ticket) override {
    CHECK(ticket == ticket_);
    return polls_until_ready == 0 || --polls_until_ready == 0;
  }
  [[nodiscard]] Result<StepOutput> wait(Ticket ticket) override {
    CHECK(ticket == ticket_);
    return StepOutput{logits_, {}};
  }
  [[nodiscard]] uint64_t page_bytes(int group) const override {
    return plan_.states[static_cast<size_t>(group)].kind == StateKind::kFixed
               ? 0
               : sizeof(Cell) * static_cast<uint64_t>(options_.page_positions);
  }
  [[nodiscard]] uint64_t slot_bytes() const override { return 8; }
  [[nodiscard]] uint64_t arena_bytes() const override { return 0; }
  [[nodiscard]] const CompileOptions& options() const override { return options_; }

  int64_t steps = 0;
  int64_t fail_at_step = -1;
  int64_t largest_step = 0;    // tokens
  uint64_t largest_state = 0;  // bytes
  int64_t wrong_tables = 0;    // positions seen that were stored with another rope table
  int polls_until_ready = 0;
  int32_t favourite = -1;      // an id that wins at every position, if the scripted length is reached
  int64_t favourite_from = 0;  // position

 private:
  uint64_t capacity_in_bytes(const StateCapacity& capacity) const {
    uint64_t sum = static_cast<uint64_t>(capacity.slots) * slot_bytes();
    for (size_t g = 0; g < capacity.pages.size(); ++g)
      sum += static_cast<uint64_t>(capacity.pages[g]) * page_bytes(static_cast<int>(g));
    return sum;
  }

  void run_sequence(const StepInput& input, size_t s, size_t& output) {
    auto& storage = static_cast<Storage&>(*input.state);
    const int page = options_.page_positions;
    const auto cell_at = [&](size_t g, int64_t position) -> Cell& {
      const PageTable& table = input.page_tables[g];
      const int64_t entry = table.offsets[s] + position / page;
      CHECK(entry < table.offsets[s + 1], "position {} is beyond the page table", position);
      const int32_t number = table.pages[static_cast<size_t>(entry)];
      CHECK(number >= 0, "position {} was given back and is read", position);
      return storage.cells[g][static_cast<size_t>(number * page + position % page)];
    };
    int64_t key = 0;
    for (const RopeSpec& rope : plan_.ropes)
      if (rope.depends_on_length()) key += rope.table_key(input.rope_lengths[s]) + 1;

    for (int32_t t = input.sequence_offsets[s]; t < input.sequence_offsets[s + 1]; ++t) {
      const int64_t position = input.past[s] + (t - input.sequence_offsets[s]);
      CHECK(input.positions[static_cast<size_t>(t)] == position);
      const int32_t id = input.tokens[static_cast<size_t>(t)];
      CHECK(id >= 0 && id < plan_.vocabulary);
      uint64_t hash = mix(static_cast<uint64_t>(position));
      for (size_t g = 0; g < plan_.states.size(); ++g) {
        const StateGroup& group = plan_.states[g];
        if (group.kind == StateKind::kFixed) {
          const bool first = t == input.sequence_offsets[s];
          const auto read = static_cast<size_t>(first ? input.read_slots[s] : input.write_slots[s]);
          uint64_t& slot = storage.slots[static_cast<size_t>(input.write_slots[s])];
          slot = mix(storage.slots[read] * 31 + static_cast<uint64_t>(id));
          hash = mix(hash ^ slot);
          continue;
        }
        cell_at(g, position) = {id, key};
        const int64_t from =
            group.kind == StateKind::kWindowed ? std::max<int64_t>(0, position - group.window + 1) : 0;
        for (int64_t j = from; j <= position; ++j) {
          const Cell& cell = cell_at(g, j);
          if (cell.table != key) ++wrong_tables;
          hash = mix(hash * 33 + static_cast<uint64_t>(cell.id) + static_cast<uint64_t>(g));
        }
      }
      if (output < input.output_rows.size() && input.output_rows[output] == t) {
        ++output;
        for (int64_t v = 0; v < plan_.vocabulary; ++v)
          logits_.push_back(static_cast<float>(mix(hash + static_cast<uint64_t>(v)) >> 40) * 0x1p-21f);
        if (favourite >= 0 && position + 1 >= favourite_from)
          logits_[logits_.size() - static_cast<size_t>(plan_.vocabulary) + static_cast<size_t>(favourite)] =
              100;
      }
    }
  }

  const Plan& plan_;
  CompileOptions options_;
  std::vector<float> logits_;
  Ticket ticket_ = 0;
};

// A plan that has only what the engine looks at.
inline Plan plan_of(std::vector<StateGroup> groups, int64_t vocabulary = 50) {
  Plan plan;
  plan.states = std::move(groups);
  plan.vocabulary = vocabulary;
  return plan;
}

inline StateGroup group_of(StateKind kind, int64_t window = 0) {
  StateGroup group;
  group.kind = kind;
  group.window = window;
  group.layers.emplace_back();
  return group;
}

inline CompileOptions small_options() {
  CompileOptions options;
  options.page_positions = 4;
  options.max_tokens = 24;
  options.max_outputs = 16;
  options.max_sequences = 16;
  return options;
}

}  // namespace tessera::fake
