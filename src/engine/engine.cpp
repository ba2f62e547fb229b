#include "engine/engine.h"

#include <sys/random.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tessera {
namespace {

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

EngineOptions with_defaults(EngineOptions options, const CompileOptions& compiled) {
  if (options.state_bytes == 0) {
    const uint64_t available = available_memory();
    options.state_bytes = available == 0 ? uint64_t{4} << 30 : available / 2;
  }
  options.max_running =
      std::clamp<int64_t>(options.max_running, 1, std::min(compiled.max_sequences, compiled.max_outputs));
  if (options.step_tokens <= 0) options.step_tokens = compiled.max_tokens;
  // Every running sequence has room for its one token.
  options.step_tokens = std::min(options.step_tokens, compiled.max_tokens);
  if (options.chunk <= 0) options.chunk = options.step_tokens;
  options.chunk = std::min(options.chunk, options.step_tokens);
  return options;
}

SchedulerLimits limits_of(const EngineOptions& options) {
  return {options.step_tokens, options.chunk, options.max_running};
}

}  // namespace

const char* finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStopId:
    case FinishReason::kStopString:
      return "stop";
    case FinishReason::kMaxTokens:
      return "length";
    case FinishReason::kContextFull:
      return "context_full";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
      break;
  }
  return "error";
}

Engine::Engine(const EngineModel& model, Executable& executable, const Tokenizer* tokenizer,
               EngineOptions options)
    : plan_(model.plan),
      embedding_rows_(model.embedding_rows),
      executable_(executable),
      tokenizer_(tokenizer),
      options_(with_defaults(std::move(options), executable.options())),
      scheduler_(limits_of(options_), plan_.ropes),
      runner_(executable),
      sampler_(plan_.vocabulary) {}

Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::create(const EngineModel& model, Executable& executable,
                                               const Tokenizer* tokenizer, EngineOptions options) {
  std::unique_ptr<Engine> engine(new Engine(model, executable, tokenizer, std::move(options)));
  TESSERA_TRY_STATUS(engine->fit_context(model.trained_context));
  return engine;
}

Status Engine::fit_context(int64_t trained_context) {
  const auto bytes_for = [this](int64_t positions) {
    const StateDemand demand{positions, 1, std::min(options_.chunk, positions)};
    return capacity_bytes(executable_,
                          capacity_for(plan_.states, executable_.options().page_positions, demand));
  };
  const bool chosen = options_.context > 0;
  context_ = chosen ? options_.context : trained_context;
  if (bytes_for(context_) <= options_.state_bytes) return {};
  if (chosen || bytes_for(1) > options_.state_bytes)
    return fail(ErrorCode::kResourceLimit,
                "a context of {} positions needs {} MB of state, and {} MB may be used: choose a smaller "
                "context or a smaller state type",
                context_, (bytes_for(context_) >> 20) + 1, options_.state_bytes >> 20);
  int64_t fits = 1;
  int64_t too_many = context_;
  while (too_many - fits > 1) {
    const int64_t middle = fits + (too_many - fits) / 2;
    (bytes_for(middle) <= options_.state_bytes ? fits : too_many) = middle;
  }
  context_ = fits;
  return {};
}

Result<RequestId> Engine::submit(Request request) {
  if (static_cast<int64_t>(sequences_.size()) >= options_.max_running + options_.max_waiting)
    return fail(ErrorCode::kResourceLimit, "the queue is full: {} requests are waiting", waiting());
  if (request.prompt.empty())
    return fail(ErrorCode::kInvalidArgument,
                "the prompt is empty and the tokenizer adds no token to begin with: give at least one token");
  const auto length = static_cast<int64_t>(request.prompt.size());
  if (length > context_)
    return fail(ErrorCode::kInvalidArgument, "the prompt has {} tokens: expected at most the context of {}",
                length, context_);
  for (size_t i = 0; i < request.prompt.size(); ++i)
    if (request.prompt[i] < 0 || request.prompt[i] >= embedding_rows_)
      return fail(ErrorCode::kInvalidArgument,
                  "token {} of the prompt: expected an id below the {} rows of the embedding, found {}", i,
                  embedding_rows_, request.prompt[i]);
  TESSERA_TRY_STATUS(validate_sampling(request.sampling, plan_.vocabulary));
  if (request.max_tokens && *request.max_tokens < 0)
    return fail(ErrorCode::kInvalidArgument, "max_tokens: expected a count of at least 0, found {}",
                *request.max_tokens);
  if (request.min_tokens < 0 || (request.max_tokens && request.min_tokens > *request.max_tokens))
    return fail(ErrorCode::kInvalidArgument,
                "min_tokens: expected a count between 0 and max_tokens, found {}", request.min_tokens);

  auto sequence = std::make_unique<Sequence>();
  if (tokenizer_ != nullptr) {
    TESSERA_TRY(sequence->text, TextStream::create(*tokenizer_, request.prompt, request.stop_strings));
  } else if (!request.stop_strings.empty()) {
    return fail(ErrorCode::kInvalidArgument, "stop strings need a tokenizer, and the model has none");
  }
  sequence->id = next_id_++;
  sequence->state.groups.resize(plan_.states.size());
  sequence->ids = request.prompt;
  sequence->prompt_length = length;
  sequence->limit = context_;
  if (request.max_tokens) sequence->limit = length + std::min(*request.max_tokens, context_ - length);
  if (request.sampling.seed) {
    sequence->seed = *request.sampling.seed;
  } else if (getentropy(&sequence->seed, sizeof(sequence->seed)) != 0) {
    return fail(ErrorCode::kIo, "the system gives no random seed: name one");
  } else {
    sequence->seed &= (uint64_t{1} << 53) - 1;  // survives readers of JSON that know only doubles
  }
  if (request.sampling.needs_counts()) sequence->counts.add_prompt(request.prompt);
  sequence->submitted = Clock::now();
  sequence->report.seed = sequence->seed;
  sequence->report.prompt_tokens = length;
  sequence->request = std::move(request);
  Sequence& added = *sequence;
  sequences_.emplace(added.id, std::move(sequence));
  scheduler_.add(added);
  return added.id;
}

void Engine::cancel(RequestId request) {
  const auto found = sequences_.find(request);
  if (found != sequences_.end()) found->second->cancelled = true;
}

void Engine::end_early() {
  for (auto next = sequences_.begin(); next != sequences_.end();) {
    Sequence& sequence = *(next++)->second;  // finish() erases it
    if (sequence.cancelled) {
      finish(sequence, FinishReason::kCancelled, {}, {});
    } else if (sequence.length() >= sequence.limit && sequence.outputs() == 0) {
      // Nothing may be generated: max_tokens is 0, or the prompt fills the context.
      const bool asked = sequence.request.max_tokens == 0;
      finish(sequence, asked ? FinishReason::kMaxTokens : FinishReason::kContextFull, {}, {});
    }
  }
}

StateDemand Engine::live_demand() const {
  StateDemand demand{0, 0, options_.chunk};
  for (const auto& [id, sequence] : sequences_) {  // in the order in which they came
    if (demand.sequences == options_.max_running) break;
    ++demand.sequences;
    demand.positions += sequence->limit;
  }
  return demand;
}

StateCapacity Engine::affordable_capacity(StateDemand& demand) const {
  int64_t longest = 1;
  for (const auto& [id, sequence] : sequences_) longest = std::max(longest, sequence->limit);
  const auto capacity = [&] {
    demand.chunk = std::min(options_.chunk, demand.positions);
    return capacity_for(plan_.states, executable_.options().page_positions, demand);
  };
  // Fewer positions, then fewer sequences, until it fits: one sequence of the context always does.
  while (capacity_bytes(executable_, capacity()) > options_.state_bytes) {
    if (demand.positions > longest) {
      demand.positions = std::max(longest, demand.positions - std::max<int64_t>(1, demand.positions / 16));
    } else if (demand.sequences > 1) {
      demand.sequences = std::max<int64_t>(1, demand.sequences - std::max<int64_t>(1, demand.sequences / 16));
    } else {
      break;
    }
  }
  return capacity();
}

Status Engine::make_pool() {
  StateDemand demand = live_demand();
  if (pool_ == nullptr) {
    if (options_.state_positions > 0) {
      demand.positions = std::max(demand.positions, options_.state_positions);
      demand.sequences = options_.max_running;
    }
  } else {
    const bool blocked = !scheduler_.waiting().empty() && running() < options_.max_running &&
                         (!pool_->fits_now(scheduler_.first_need(), options_.chunk) ||
                          !pool_->fits_ever(scheduler_.waiting().front()->limit, options_.chunk));
    if (!blocked) return {};
    // Doubled, so that the sequences that run are computed again only a few times in the engine's life.
    const int64_t growth = running() > 0 ? 2 : 1;
    demand.positions = std::max(demand.positions, growth * demand_.positions);
    demand.sequences = std::min(options_.max_running, std::max(demand.sequences, growth * demand_.sequences));
  }
  const StateCapacity wanted = affordable_capacity(demand);
  if (pool_ != nullptr) {
    const StateCapacity& present = pool_->storage().capacity();
    bool larger = wanted.slots > present.slots;
    bool smaller = wanted.slots < present.slots;
    for (size_t g = 0; g < wanted.pages.size(); ++g) {
      larger = larger || wanted.pages[g] > present.pages[g];
      smaller = smaller || wanted.pages[g] < present.pages[g];
    }
    if (!larger || (smaller && running() > 0)) return {};
    scheduler_.preempt_all(*pool_);
    CHECK(pool_->all_free(), "pages are held though nothing runs");
    pool_.reset();  // before the new one, so that both are never there at once
  }
  TESSERA_TRY(pool_, StatePool::create(executable_, plan_.states, wanted));
  demand_ = demand;
  return {};
}

Failure Engine::fail_all(const Error& error) {
  in_flight_ = false;
  parts_.clear();
  while (!sequences_.empty()) finish(*sequences_.begin()->second, FinishReason::kError, error.message, {});
  return Failure(error);
}

Result<StepBegun> Engine::begin_step() {
  CHECK(!in_flight_, "a step is in flight");
  events_.clear();
  end_early();
  if (sequences_.empty()) return StepBegun::kIdle;
  if (Status made = make_pool(); !made) return fail_all(made.error());
  Result<std::vector<ScheduledPart>> parts = scheduler_.next_step(*pool_);
  if (!parts) return fail_all(parts.error());
  parts_ = *std::move(parts);
  CHECK(!parts_.empty(), "{} requests wait and none can run", waiting());
  const Clock::time_point now = Clock::now();
  for (const ScheduledPart& part : parts_)
    if (part.sequence->furthest == 0) part.sequence->started = now;
  if (Status submitted = runner_.submit(parts_, *pool_); !submitted) return fail_all(submitted.error());
  in_flight_ = true;
  return StepBegun::kSubmitted;
}

Result<bool> Engine::step_ready() {
  CHECK(in_flight_, "no step is in flight");
  return runner_.ready();
}

Result<std::span<const Event>> Engine::finish_step() {
  CHECK(in_flight_, "no step is in flight");
  Result<std::span<const float>> waited = runner_.wait();
  if (!waited) return fail_all(waited.error());
  in_flight_ = false;
  const std::span<const float> logits = *waited;
  const auto vocabulary = static_cast<size_t>(plan_.vocabulary);
  size_t row = 0;
  for (const ScheduledPart& part : parts_) {
    Sequence& sequence = *part.sequence;
    sequence.computed = part.past + part.count;
    sequence.report.recomputed += std::min(part.count, std::max<int64_t>(0, sequence.furthest - part.past));
    sequence.furthest = std::max(sequence.furthest, sequence.computed);
    if (part.output == WantsOutput::kNo) continue;
    SampleInput input;
    input.logits = logits.subspan(row++ * vocabulary, vocabulary);
    if (sequence.cancelled) continue;  // taken out below
    std::vector<int32_t> banned;
    if (sequence.outputs() < sequence.request.min_tokens) {
      banned = sequence.request.stop_ids;
      if (sequence.request.end_of_sequence == EndOfSequence::kStops)
        banned.insert(banned.end(), options_.stop_ids.begin(), options_.stop_ids.end());
    }
    input.banned = banned;
    input.counts = &sequence.counts;
    input.seed = sequence.seed;
    input.position = static_cast<uint32_t>(sequence.length());
    Result<int32_t> id = sampler_.sample(sequence.request.sampling, input);
    if (id) {
      accept(sequence, *id);
    } else {
      finish(sequence, FinishReason::kError, id.error().message, {});
    }
  }
  parts_.clear();
  end_early();
  return std::span<const Event>(events_);
}

Result<std::span<const Event>> Engine::step() {
  TESSERA_TRY(const StepBegun begun, begin_step());
  if (begun == StepBegun::kIdle) return std::span<const Event>(events_);
  return finish_step();
}

bool Engine::is_stop_id(const Sequence& sequence, int32_t id) const {
  const auto has = [id](const std::vector<int32_t>& ids) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  if (has(sequence.request.stop_ids)) return true;
  return sequence.request.end_of_sequence == EndOfSequence::kStops && has(options_.stop_ids);
}

void Engine::accept(Sequence& sequence, int32_t id) {
  if (sequence.outputs() == 0) {
    sequence.first_token = Clock::now();
    sequence.report.queued_seconds = seconds_between(sequence.submitted, sequence.started);
    sequence.report.prompt_seconds = seconds_between(sequence.started, sequence.first_token);
  }
  sequence.ids.push_back(id);
  if (sequence.request.sampling.needs_counts()) sequence.counts.add_output(id);
  Event event{sequence.id, id, {}, std::nullopt};
  if (is_stop_id(sequence, id)) return finish(sequence, FinishReason::kStopId, {}, std::move(event));
  if (sequence.text != nullptr) {
    const auto stops =
        sequence.outputs() >= sequence.request.min_tokens ? StopStrings::kLookedFor : StopStrings::kPassed;
    if (sequence.text->push(id, stops, event.text) == TextState::kStopped)
      return finish(sequence, FinishReason::kStopString, {}, std::move(event));
  }
  if (sequence.request.max_tokens && sequence.outputs() >= *sequence.request.max_tokens)
    return finish(sequence, FinishReason::kMaxTokens, {}, std::move(event));
  if (sequence.length() >= context_)
    return finish(sequence, FinishReason::kContextFull, {}, std::move(event));
  events_.push_back(std::move(event));
}

void Engine::finish(Sequence& sequence, FinishReason reason, std::string error, Event event) {
  event.request = sequence.id;
  if (sequence.text != nullptr && reason != FinishReason::kStopString) sequence.text->flush(event.text);
  Report& report = sequence.report;
  report.reason = reason;
  report.error = std::move(error);
  report.output_tokens = sequence.outputs();
  if (report.output_tokens > 0) report.decode_seconds = seconds_between(sequence.first_token, Clock::now());
  event.finished = report;
  events_.push_back(std::move(event));
  scheduler_.remove(sequence, pool_.get());
  sequences_.erase(sequence.id);
}

}  // namespace tessera
