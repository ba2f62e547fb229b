// Engine: requests in, tokens out. It owns scheduler, state pool, runner and sampler over one Executable, and
// serves one request or many at a time, on any backend. A step is begin_step (schedule, submit), then
// finish_step (read back, sample, report); only finish_step may wait for the device, and step_ready says
// beforehand whether it would. Not thread-safe: one thread drives it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/result.h"
#include "engine/request.h"
#include "engine/runner.h"
#include "engine/scheduler.h"
#include "engine/state_pool.h"
#include "plan/plan.h"

namespace tessera {

class Tokenizer;

struct EngineOptions {
  int64_t context = 0;       // positions of one sequence; 0: what the model was trained for, if that fits
  uint64_t state_bytes = 0;  // budget of the state; 0: half of the memory that is free at the start
  int64_t state_positions =
      0;  // positions the pool holds from the start; it grows with the requests, up to the budget
  int64_t max_running = 64;       // sequences that hold state at a time
  int64_t max_waiting = 4096;     // requests beyond are refused
  int64_t step_tokens = 0;        // of all sequences in one step; 0: what the executable was compiled for
  int64_t chunk = 0;              // of one prompt in one step; 0: step_tokens
  std::vector<int32_t> stop_ids;  // of the model
};

// What the engine has to know of the model it serves.
struct EngineModel {
  const Plan& plan;
  int64_t trained_context = 0;  // ModelSpec::context
  int64_t embedding_rows = 0;   // ids of a prompt are below it
};

enum class StepBegun : uint8_t { kSubmitted, kIdle };

class Engine {
 public:
  // Plan, executable and tokenizer must outlive the engine; the tokenizer may be null: then events have no
  // text and stop strings are refused.
  [[nodiscard]] static Result<std::unique_ptr<Engine>> create(const EngineModel& model,
                                                              Executable& executable,
                                                              const Tokenizer* tokenizer,
                                                              EngineOptions options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Positions a sequence may have; less than the trained context where that does not fit the budget.
  [[nodiscard]] int64_t context() const { return context_; }
  [[nodiscard]] uint64_t state_budget() const { return options_.state_bytes; }
  // Bytes of state that are allocated now.
  [[nodiscard]] uint64_t state_bytes() const { return pool_ == nullptr ? 0 : pool_->bytes(); }

  // Errors are the request's: an empty prompt, an id beyond the embedding, a prompt longer than the context,
  // a sampling option out of range, a full queue.
  [[nodiscard]] Result<RequestId> submit(Request request);
  // Takes effect at the end of the step in flight; the report says kCancelled. An unknown id is ignored: the
  // request may just have ended.
  void cancel(RequestId request);
  [[nodiscard]] bool idle() const { return sequences_.empty(); }
  [[nodiscard]] int64_t waiting() const { return static_cast<int64_t>(scheduler_.waiting().size()); }
  [[nodiscard]] int64_t running() const { return static_cast<int64_t>(scheduler_.running().size()); }
  [[nodiscard]] const StatePool* pool() const { return pool_.get(); }

  // An error here is the device's: every request has failed with it, and the events say so.
  [[nodiscard]] Result<StepBegun> begin_step();
  [[nodiscard]] Result<bool> step_ready();
  // What happened; valid until the next begin_step.
  [[nodiscard]] Result<std::span<const Event>> finish_step();
  // begin_step and, if something was submitted, finish_step.
  [[nodiscard]] Result<std::span<const Event>> step();
  // The events of the last step, also where it ended with an error.
  [[nodiscard]] std::span<const Event> events() const { return events_; }

 private:
  Engine(const EngineModel& model, Executable& executable, const Tokenizer* tokenizer, EngineOptions options);
  [[nodiscard]] Status fit_context(int64_t trained_context);
  // What the requests that are here can use, and what of it the budget allows (`demand` is lowered to that).
  [[nodiscard]] StateDemand live_demand() const;
  [[nodiscard]] StateCapacity affordable_capacity(StateDemand& demand) const;
  // Makes the pool, or a larger one when a request cannot start for want of pages that the budget would allow.
  [[nodiscard]] Status make_pool();
  void end_early();  // the cancelled, and those that may generate nothing
  void accept(Sequence& sequence, int32_t id);
  [[nodiscard]] bool is_stop_id(const Sequence& sequence, int32_t id) const;
  void finish(Sequence& sequence, FinishReason reason, std::string error, Event event);
  [[nodiscard]] Failure fail_all(const Error& error);

  const Plan& plan_;
  int64_t embedding_rows_;
  Executable& executable_;
  const Tokenizer* tokenizer_;
  EngineOptions options_;
  int64_t context_ = 0;
  RequestId next_id_ = 1;
  std::map<RequestId, std::unique_ptr<Sequence>> sequences_;
  Scheduler scheduler_;
  std::unique_ptr<StatePool> pool_;
  StateDemand demand_;  // what pool_ was made for
  Runner runner_;
  Sampler sampler_;
  bool in_flight_ = false;
  std::vector<ScheduledPart> parts_;
  std::vector<Event> events_;
};

}  // namespace tessera
