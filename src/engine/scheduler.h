// Scheduler: who takes part in the next step, and with how many tokens. First come, first served: sequences
// run in the order in which they came. Every running sequence that has one token to compute (a decode) takes
// part; what is left of the token budget goes to prompts in chunks, so that a long prompt delays others by at
// most one chunk. When pages run out the youngest sequence gives its pages back and is computed again later;
// the oldest always goes on, so nothing waits for ever.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "base/result.h"
#include "engine/sequence.h"
#include "engine/state_pool.h"
#include "model/rope.h"

namespace tessera {

struct SchedulerLimits {
  int64_t step_tokens = 512;  // tokens of all sequences in one step
  int64_t chunk = 512;        // tokens of one sequence in one step
  int64_t max_running = 64;   // sequences that hold state
};

enum class WantsOutput : uint8_t { kNo, kYes };

struct ScheduledPart {
  Sequence* sequence = nullptr;
  int64_t past = 0;   // positions in the state before
  int64_t count = 0;  // ids[past, past + count) are computed
  WantsOutput output = WantsOutput::kNo;
};

class Scheduler {
 public:
  // ropes: those of the plan; only the ones that depend on length matter.
  Scheduler(const SchedulerLimits& limits, const std::vector<RopeSpec>& ropes);

  void add(Sequence& sequence) { waiting_.push_back(&sequence); }
  // Takes a sequence out, whatever it is doing; its state is given back.
  void remove(Sequence& sequence, StatePool* pool);

  // Every running sequence gives its state back and waits, in the same order.
  void preempt_all(StatePool& pool);
  // Positions that have to be free before the first waiting sequence starts.
  [[nodiscard]] int64_t first_need() const;

  // The parts of the next step; empty: nothing to do, or nothing fits. Pages for the parts are taken.
  [[nodiscard]] Result<std::vector<ScheduledPart>> next_step(StatePool& pool);

  [[nodiscard]] const std::deque<Sequence*>& waiting() const { return waiting_; }
  [[nodiscard]] const std::vector<Sequence*>& running() const { return running_; }  // oldest first

 private:
  void drop_state(Sequence& sequence, StatePool& pool);
  void preempt_youngest(StatePool& pool);
  void renew_rope(Sequence& sequence, StatePool& pool);
  [[nodiscard]] Result<Grant> schedule_decode(Sequence& sequence, StatePool& pool);
  [[nodiscard]] Result<Grant> schedule_chunk(Sequence& sequence, StatePool& pool);
  void admit(Sequence& sequence);

  SchedulerLimits limits_;
  std::vector<RopeSpec> ropes_;
  std::deque<Sequence*> waiting_;
  std::vector<Sequence*> running_;
  std::vector<ScheduledPart> parts_;
  int64_t budget_ = 0;
};

}  // namespace tessera
