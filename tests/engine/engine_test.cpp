// The engine over a model whose logits are a hash of everything a token sees (fake_model.h): batching,
// chunks, windows, preemption, changing rope tables and cancellation must not change one id.
#include "engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "engine/fake_model.h"

namespace tessera {
namespace {

struct Answer {
  std::vector<int32_t> ids;
  std::optional<Report> report;
};

std::vector<StateGroup> all_kinds() {
  return {fake::group_of(StateKind::kPaged), fake::group_of(StateKind::kWindowed, 9),
          fake::group_of(StateKind::kFixed)};
}

Request request_of(std::vector<int32_t> prompt, int64_t tokens) {
  Request request;
  request.prompt = std::move(prompt);
  request.max_tokens = tokens;
  return request;
}

// A plan, a model and an engine that belong together.
struct Bench {
  explicit Bench(std::vector<StateGroup> groups, EngineOptions options = {},
                 CompileOptions compile = fake::small_options(), std::vector<RopeSpec> ropes = {})
      : plan(fake::plan_of(std::move(groups))) {
    plan.ropes = std::move(ropes);
    model = std::make_unique<fake::Model>(plan, compile);
    if (options.state_bytes == 0) options.state_bytes = 1 << 20;
    Result<std::unique_ptr<Engine>> made =
        Engine::create({plan, 200, 50}, *model, nullptr, std::move(options));
    CHECK(made.has_value());
    engine = *std::move(made);
  }

  RequestId submit(Request request) {
    Result<RequestId> id = engine->submit(std::move(request));
    CHECK(id.has_value(), "{}", id.error().message);
    return *id;
  }

  void note(std::span<const Event> events) {
    for (const Event& event : events) {
      Answer& answer = answers[event.request];
      EXPECT_FALSE(answer.report) << "an event after the last";
      if (event.id >= 0) answer.ids.push_back(event.id);
      if (event.finished) answer.report = event.finished;
    }
  }

  void step() {
    const Result<std::span<const Event>> events = engine->step();
    ASSERT_TRUE(events) << events.error().message;
    note(*events);
  }

  void run() {
    for (int steps = 0; !engine->idle(); ++steps) {
      ASSERT_LT(steps, 100000);
      step();
      if (::testing::Test::HasFatalFailure()) return;
    }
    EXPECT_TRUE(engine->pool() == nullptr || engine->pool()->all_free());
  }

  Plan plan;
  std::unique_ptr<fake::Model> model;
  std::unique_ptr<Engine> engine;
  std::map<RequestId, Answer> answers;
};

std::string refusal(Engine& engine, Request request) {
  const Result<RequestId> id = engine.submit(std::move(request));
  return id ? std::string() : id.error().message;
}

std::vector<Request> random_requests(int count, uint32_t seed) {
  std::mt19937 random(seed);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  std::vector<Request> requests;
  for (int i = 0; i < count; ++i) {
    Request request;
    for (int length = pick(1, 70); length > 0; --length) request.prompt.push_back(pick(0, 49));
    request.max_tokens = pick(1, 60);
    if (i % 3 == 1) {
      request.sampling.temperature = 1.3;
      request.sampling.top_p = 0.9;
      request.sampling.seed = static_cast<uint64_t>(i);
    }
    if (i % 4 == 2) request.sampling.repetition_penalty = 1.2;
    if (i % 5 == 3) request.sampling.frequency_penalty = 0.4;
    requests.push_back(std::move(request));
  }
  return requests;
}

std::vector<std::vector<int32_t>> alone(const std::vector<Request>& requests,
                                        const std::vector<RopeSpec>& ropes = {}) {
  std::vector<std::vector<int32_t>> results;
  for (const Request& request : requests) {
    // One token at a time, no paging pressure, one sequence: as plain as it gets.
    CompileOptions plain = fake::small_options();
    plain.max_tokens = 1;
    Bench bench(all_kinds(), {}, plain, ropes);
    const RequestId id = bench.submit(request);
    bench.run();
    EXPECT_EQ(bench.model->wrong_tables, 0);
    results.push_back(bench.answers[id].ids);
  }
  return results;
}

struct TogetherCase {
  const char* name;
  int64_t chunk;
  int64_t max_running;
  uint64_t state_bytes;
};

class Together : public ::testing::TestWithParam<TogetherCase> {};

TEST_P(Together, GivesWhatEachGivesAlone) {
  const std::vector<Request> requests = random_requests(64, 1);
  const std::vector<std::vector<int32_t>> expected = alone(requests);
  EngineOptions options;
  options.chunk = GetParam().chunk;
  options.max_running = GetParam().max_running;
  options.state_bytes = GetParam().state_bytes;
  options.context = 140;
  Bench bench(all_kinds(), options);
  std::vector<RequestId> ids;
  size_t next = 0;
  while (next < requests.size() || !bench.engine->idle()) {
    // They come while others run.
    for (int i = 0; i < 3 && next < requests.size(); ++i) ids.push_back(bench.submit(requests[next++]));
    bench.step();
    if (HasFatalFailure()) return;
    ASSERT_LE(bench.engine->state_bytes(), bench.engine->state_budget());
  }
  ASSERT_EQ(ids.size(), 64u);
  for (size_t i = 0; i < ids.size(); ++i) {
    ASSERT_EQ(bench.answers[ids[i]].ids, expected[i]) << "request " << i;
    ASSERT_TRUE(bench.answers[ids[i]].report);
    EXPECT_EQ(bench.answers[ids[i]].report->reason, FinishReason::kMaxTokens);
  }
  EXPECT_TRUE(bench.engine->pool()->all_free());
  EXPECT_LE(bench.model->largest_step, 24);
  if (GetParam().max_running > 1) {
    EXPECT_GT(bench.model->largest_step, 1);
  }
  EXPECT_LE(bench.model->largest_state, GetParam().state_bytes);
}

INSTANTIATE_TEST_SUITE_P(Engine, Together,
                         ::testing::Values(TogetherCase{"roomy", 24, 16, 1 << 20},
                                           TogetherCase{"chunks_of_7", 7, 16, 1 << 20},
                                           TogetherCase{"one_at_a_time", 24, 1, 1 << 20},
                                           TogetherCase{"preempted", 11, 16, 6000}),
                         [](const auto& chosen) { return chosen.param.name; });

TEST(Engine, PreemptionDoesHappenWhenPagesRunOut) {
  EngineOptions options;
  options.state_bytes = 4500;
  options.context = 140;
  Bench bench(all_kinds(), options);
  const std::vector<Request> requests = random_requests(20, 2);
  std::vector<RequestId> ids;
  for (const Request& request : requests) ids.push_back(bench.submit(request));
  bench.run();
  int64_t recomputed = 0;
  for (const RequestId id : ids) recomputed += bench.answers[id].report->recomputed;
  EXPECT_GT(recomputed, 0);
}

TEST(Engine, DecodesGoOnWhileALongPromptIsRead) {
  EngineOptions options;
  options.chunk = 5;
  options.state_positions = 200;
  Bench bench(all_kinds(), options);
  const RequestId talker = bench.submit(request_of({1, 2, 3}, 50));
  bench.step();
  const RequestId reader = bench.submit(request_of(std::vector<int32_t>(100, 7), 1));
  int64_t steps = 0;
  while (!bench.answers[reader].report) {
    const size_t before = bench.answers[talker].ids.size();
    bench.step();
    ++steps;
    EXPECT_EQ(bench.answers[talker].ids.size(), before + 1);
    ASSERT_LT(steps, 1000);
  }
  EXPECT_EQ(steps, 20);
  EXPECT_LE(bench.model->largest_step, 6);
}

// The pool is made for the first request; a second one grows it instead of waiting for the first to end.
TEST(Engine, ThePoolGrowsWhileOthersRun) {
  Bench bench(all_kinds());
  const RequestId first = bench.submit(request_of({1, 2, 3}, 60));
  bench.step();
  const uint64_t small = bench.engine->state_bytes();
  const RequestId second = bench.submit(request_of({4}, 5));
  bench.step();
  EXPECT_GT(bench.engine->state_bytes(), small);
  EXPECT_EQ(bench.engine->running(), 2);
  bench.run();
  EXPECT_EQ(bench.answers[first].ids, alone({request_of({1, 2, 3}, 60)})[0]);
  EXPECT_EQ(bench.answers[second].ids, alone({request_of({4}, 5)})[0]);
  EXPECT_LT(bench.answers[second].report->queued_seconds, 5);
}

TEST(Engine, FirstComeFirstServed) {
  EngineOptions options;
  options.max_running = 1;
  Bench bench(all_kinds(), options);
  std::vector<RequestId> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(bench.submit(request_of({i}, 3)));
  std::vector<RequestId> ended;
  while (!bench.engine->idle()) {
    const auto events = bench.engine->step();
    ASSERT_TRUE(events);
    for (const Event& event : *events)
      if (event.finished) ended.push_back(event.request);
  }
  EXPECT_EQ(ended, ids);
}

std::vector<RopeSpec> changing_ropes(RopeScaling scaling, int64_t original) {
  RopeSpec rope;
  rope.dim = 8;
  rope.scaling = scaling;
  rope.factor = 2;
  rope.original_context = original;
  rope.short_factors.assign(4, 1.0f);
  rope.long_factors.assign(4, 2.0f);
  return {rope};
}

TEST(Engine, AChangedRopeTableRecomputesTheState) {
  for (const RopeScaling scaling : {RopeScaling::kLongRope, RopeScaling::kDynamic}) {
    const std::vector<RopeSpec> ropes = changing_ropes(scaling, 20);
    Bench bench(all_kinds(), {}, fake::small_options(), ropes);
    const RequestId crossing = bench.submit(request_of({1, 2, 3, 4, 5}, 30));
    const RequestId beyond = bench.submit(request_of(std::vector<int32_t>(40, 3), 4));
    const RequestId within = bench.submit(request_of({9}, 10));
    bench.run();
    EXPECT_EQ(bench.model->wrong_tables, 0);
    EXPECT_EQ(bench.answers[crossing].ids.size(), 30u);
    const int64_t again = bench.answers[crossing].report->recomputed;
    if (scaling == RopeScaling::kLongRope) {
      EXPECT_EQ(again, 20);  // once, when the length passes 20
      EXPECT_EQ(bench.answers[beyond].report->recomputed, 0);
    } else {
      EXPECT_GT(again, 200);  // every length has its own table
    }
    EXPECT_EQ(bench.answers[within].report->recomputed, 0);
    const auto plain = alone({request_of({1, 2, 3, 4, 5}, 30)}, ropes);
    EXPECT_EQ(bench.answers[crossing].ids, plain[0]);
  }
}

TEST(Engine, CancellationFreesWithinAStep) {
  Bench bench(all_kinds());
  const RequestId first = bench.submit(request_of({1, 2}, 100));
  const RequestId second = bench.submit(request_of({3}, 100));
  const RequestId third = bench.submit(request_of({4}, 5));
  bench.step();
  bench.step();
  ASSERT_TRUE(bench.engine->begin_step());
  bench.engine->cancel(first);  // in flight
  const auto events = bench.engine->finish_step();
  ASSERT_TRUE(events);
  bench.note(*events);
  ASSERT_TRUE(bench.answers[first].report);
  EXPECT_EQ(bench.answers[first].report->reason, FinishReason::kCancelled);
  EXPECT_EQ(bench.answers[first].ids.size(), 2u);
  EXPECT_EQ(bench.engine->running(), 2);
  bench.engine->cancel(second);
  bench.engine->cancel(12345);  // not there
  bench.run();
  EXPECT_EQ(bench.answers[second].report->reason, FinishReason::kCancelled);
  EXPECT_EQ(bench.answers[third].ids.size(), 5u);
  EXPECT_EQ(bench.answers[third].ids, alone({request_of({4}, 5)})[0]);
}

TEST(Engine, CancelledWhileWaitingNeverRuns) {
  EngineOptions options;
  options.max_running = 1;
  Bench bench(all_kinds(), options);
  (void)bench.submit(request_of({1}, 10));
  const RequestId waiting = bench.submit(request_of({2}, 10));
  bench.step();
  bench.engine->cancel(waiting);
  bench.step();
  ASSERT_TRUE(bench.answers[waiting].report);
  EXPECT_TRUE(bench.answers[waiting].ids.empty());
  bench.run();
}

TEST(Engine, ContextFullIsSaid) {
  EngineOptions options;
  options.context = 16;
  Bench bench(all_kinds(), options);
  Request open = request_of({1, 2, 3}, 0);
  open.max_tokens.reset();
  const RequestId id = bench.submit(open);
  const RequestId exact = bench.submit(request_of({1, 2, 3}, 13));
  Request filled = request_of(std::vector<int32_t>(16, 1), 0);
  filled.max_tokens.reset();
  const RequestId full = bench.submit(filled);
  bench.run();
  EXPECT_EQ(bench.answers[id].report->reason, FinishReason::kContextFull);
  EXPECT_STREQ(finish_reason_name(bench.answers[id].report->reason), "context_full");
  EXPECT_EQ(bench.answers[id].ids.size(), 13u);
  EXPECT_EQ(bench.answers[exact].report->reason, FinishReason::kMaxTokens);
  EXPECT_EQ(bench.answers[full].report->reason, FinishReason::kContextFull);
  EXPECT_TRUE(bench.answers[full].ids.empty());
}

TEST(Engine, ContextShrinksToTheBudgetOrIsRefused) {
  EngineOptions options;
  options.state_bytes = 1000;
  Bench bench({fake::group_of(StateKind::kPaged)}, options);
  EXPECT_EQ(bench.engine->context(), 1000 / (4 * 16) * 4);  // pages of four cells of 16 bytes
  options.context = 200;
  const Result<std::unique_ptr<Engine>> refused =
      Engine::create({bench.plan, 200, 50}, *bench.model, nullptr, options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kResourceLimit);
}

TEST(Engine, BadRequestsAreRefusedInOneLine) {
  EngineOptions options;
  options.context = 16;
  options.max_waiting = 0;
  options.max_running = 1;
  Bench bench(all_kinds(), options);
  EXPECT_EQ(refusal(*bench.engine, request_of({}, 1)),
            "the prompt is empty and the tokenizer adds no token to begin with: give at least one token");
  EXPECT_EQ(refusal(*bench.engine, request_of(std::vector<int32_t>(17, 1), 1)),
            "the prompt has 17 tokens: expected at most the context of 16");
  EXPECT_EQ(refusal(*bench.engine, request_of({1, 50}, 1)),
            "token 1 of the prompt: expected an id below the 50 rows of the embedding, found 50");
  EXPECT_NE(refusal(*bench.engine, request_of({-1}, 1)), "");
  EXPECT_NE(refusal(*bench.engine, request_of({1}, -1)), "");
  Request stops = request_of({1}, 1);
  stops.stop_strings = {"x"};
  EXPECT_NE(refusal(*bench.engine, stops), "");
  (void)bench.submit(request_of({1}, 1));
  EXPECT_EQ(refusal(*bench.engine, request_of({1}, 1)), "the queue is full: 1 requests are waiting");
}

TEST(Engine, StopIdsAndTheirLimits) {
  EngineOptions options;
  options.stop_ids = {13};
  Bench bench(all_kinds(), options);
  bench.model->favourite = 13;
  bench.model->favourite_from = 6;
  const RequestId stopped = bench.submit(request_of({1, 2}, 20));
  Request ignoring = request_of({1, 2}, 20);
  ignoring.end_of_sequence = EndOfSequence::kIgnored;
  const RequestId ignored = bench.submit(ignoring);
  Request longer = request_of({1, 2}, 20);
  longer.min_tokens = 9;
  const RequestId minimum = bench.submit(longer);
  bench.run();
  EXPECT_EQ(bench.answers[stopped].report->reason, FinishReason::kStopId);
  EXPECT_EQ(bench.answers[stopped].ids.size(), 5u);  // positions 2 to 6, the stop id is one of them
  EXPECT_EQ(bench.answers[stopped].ids.back(), 13);
  EXPECT_EQ(bench.answers[ignored].ids.size(), 20u);
  EXPECT_EQ(bench.answers[ignored].ids.back(), 13);
  EXPECT_EQ(bench.answers[minimum].ids.size(), 10u);
  EXPECT_EQ(std::count(bench.answers[minimum].ids.begin(), bench.answers[minimum].ids.end(), 13), 1);
}

TEST(Engine, ReportsTheSeedItDrew) {
  Bench bench(all_kinds());
  Request request = request_of({1, 2, 3}, 20);
  request.sampling.temperature = 2;
  const RequestId first = bench.submit(request);
  const RequestId second = bench.submit(request);
  bench.run();
  EXPECT_NE(bench.answers[first].report->seed, bench.answers[second].report->seed);
  EXPECT_NE(bench.answers[first].ids, bench.answers[second].ids);
  request.sampling.seed = bench.answers[first].report->seed;
  const RequestId replay = bench.submit(request);
  bench.run();
  EXPECT_EQ(bench.answers[replay].ids, bench.answers[first].ids);
}

TEST(Engine, ADeviceErrorEndsEveryRequestAndIsSaid) {
  Bench bench(all_kinds());
  const RequestId first = bench.submit(request_of({1}, 10));
  const RequestId second = bench.submit(request_of({2}, 10));
  bench.step();
  bench.model->fail_at_step = 2;
  const auto events = bench.engine->step();
  ASSERT_FALSE(events);
  EXPECT_EQ(events.error().message, "the device is gone");
  bench.note(bench.engine->events());
  EXPECT_EQ(bench.answers[first].report->reason, FinishReason::kError);
  EXPECT_EQ(bench.answers[second].report->error, "the device is gone");
  EXPECT_TRUE(bench.engine->idle());
  EXPECT_TRUE(bench.engine->pool()->all_free());
  const RequestId third = bench.submit(request_of({3}, 4));  // and it goes on
  bench.run();
  EXPECT_EQ(bench.answers[third].ids.size(), 4u);
}

TEST(Engine, AnAsynchronousDeviceIsPolled) {
  Bench bench(all_kinds());
  const RequestId id = bench.submit(request_of({1}, 3));
  int polls = 0;
  while (!bench.engine->idle()) {
    bench.model->polls_until_ready = 3;
    ASSERT_TRUE(bench.engine->begin_step());
    while (!*bench.engine->step_ready()) ++polls;
    bench.note(*bench.engine->finish_step());
  }
  EXPECT_EQ(polls, 6);
  EXPECT_EQ(bench.answers[id].ids, alone({request_of({1}, 3)})[0]);
}

TEST(Engine, TheStateIsNoLargerThanTheQueueNeeds) {
  EngineOptions options;
  options.state_bytes = 1 << 30;
  Bench bench({fake::group_of(StateKind::kPaged)}, options);
  (void)bench.submit(request_of({1, 2, 3}, 5));
  bench.run();
  EXPECT_EQ(bench.engine->state_bytes(), 2 * 4 * sizeof(fake::Cell));  // 8 positions
  (void)bench.submit(request_of({1, 2, 3}, 50));
  bench.run();
  EXPECT_EQ(bench.engine->state_bytes(), 14 * 4 * sizeof(fake::Cell));
}

}  // namespace
}  // namespace tessera
