#include "engine/scheduler.h"

#include <algorithm>

#include "base/check.h"

namespace tessera {

Scheduler::Scheduler(const SchedulerLimits& limits, const std::vector<RopeSpec>& ropes) : limits_(limits) {
  CHECK(limits.step_tokens > 0 && limits.chunk > 0 && limits.max_running > 0);
  for (const RopeSpec& rope : ropes)
    if (rope.depends_on_length()) ropes_.push_back(rope);
}

void Scheduler::remove(Sequence& sequence, StatePool* pool) {
  std::erase(waiting_, &sequence);
  std::erase(running_, &sequence);
  if (pool != nullptr) pool->release(sequence.state);
  sequence.status = SequenceStatus::kFinished;
}

void Scheduler::drop_state(Sequence& sequence, StatePool& pool) {
  pool.release(sequence.state);
  sequence.computed = 0;
}

void Scheduler::preempt_youngest(StatePool& pool) {
  Sequence& youngest = *running_.back();
  running_.pop_back();
  drop_state(youngest, pool);
  youngest.status = SequenceStatus::kWaiting;
  waiting_.push_front(&youngest);
}

void Scheduler::preempt_all(StatePool& pool) {
  while (!running_.empty()) preempt_youngest(pool);
}

int64_t Scheduler::first_need() const {
  // The whole prompt and its first token, or it would only be preempted again.
  const Sequence& first = *waiting_.front();
  return std::min(first.length() + 1, first.limit);
}

void Scheduler::renew_rope(Sequence& sequence, StatePool& pool) {
  const int64_t length = sequence.length();
  const bool changed =
      sequence.computed > 0 && std::any_of(ropes_.begin(), ropes_.end(), [&](const RopeSpec& rope) {
        return rope.table_key(length) != rope.table_key(sequence.rope_length);
      });
  if (changed) drop_state(sequence, pool);
  if (sequence.computed == 0) sequence.rope_length = length;
}

Result<Grant> Scheduler::schedule_decode(Sequence& sequence, StatePool& pool) {
  TESSERA_TRY(const Grant grant, pool.extend(sequence.state, sequence.computed, 1));
  if (grant == Grant::kFull) return grant;
  parts_.push_back({&sequence, sequence.computed, 1, WantsOutput::kYes});
  --budget_;
  return grant;
}

Result<Grant> Scheduler::schedule_chunk(Sequence& sequence, StatePool& pool) {
  const int64_t count = std::min({sequence.remaining(), limits_.chunk, budget_});
  TESSERA_TRY(const Grant grant, pool.extend(sequence.state, sequence.computed, count));
  if (grant == Grant::kFull) return grant;
  const auto output = sequence.computed + count == sequence.length() ? WantsOutput::kYes : WantsOutput::kNo;
  parts_.push_back({&sequence, sequence.computed, count, output});
  budget_ -= count;
  return grant;
}

void Scheduler::admit(Sequence& sequence) {
  sequence.status = SequenceStatus::kRunning;
  running_.push_back(&sequence);
}

Result<std::vector<ScheduledPart>> Scheduler::next_step(StatePool& pool) {
  parts_.clear();
  budget_ = limits_.step_tokens;
  for (Sequence* sequence : running_) renew_rope(*sequence, pool);

  const auto is_decode = [](const Sequence& sequence) {
    return sequence.computed > 0 && sequence.remaining() == 1;
  };
  // running_ shrinks from its end while sequences are preempted: indices, no iterators.
  for (size_t i = 0; i < running_.size() && budget_ > 0; ++i) {
    Sequence& sequence = *running_[i];
    if (!is_decode(sequence)) continue;
    while (true) {
      TESSERA_TRY(const Grant grant, schedule_decode(sequence, pool));
      if (grant == Grant::kGiven) break;
      const bool itself = running_.back() == &sequence;
      preempt_youngest(pool);
      if (itself) break;
    }
  }
  for (size_t i = 0; i < running_.size() && budget_ > 0; ++i) {
    Sequence& sequence = *running_[i];
    if (is_decode(sequence)) continue;
    while (true) {
      TESSERA_TRY(const Grant grant, schedule_chunk(sequence, pool));
      if (grant == Grant::kGiven) break;
      // Others go on and will end; a prompt takes pages from the younger only when nothing else moves.
      if (!parts_.empty() || running_.back() == &sequence) break;
      preempt_youngest(pool);
    }
  }
  while (!waiting_.empty() && budget_ > 0 && static_cast<int64_t>(running_.size()) < limits_.max_running) {
    Sequence& sequence = *waiting_.front();
    if (!pool.fits_now(first_need(), limits_.chunk)) break;
    sequence.rope_length = sequence.length();
    TESSERA_TRY(const Grant grant, schedule_chunk(sequence, pool));
    if (grant == Grant::kFull) break;
    waiting_.pop_front();
    admit(sequence);
  }
  return parts_;
}

}  // namespace tessera
