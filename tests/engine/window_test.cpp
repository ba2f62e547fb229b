// Windowed layers hold no more than window + one chunk: models with windows, on a pool of exactly so many pages, far past the
// window, compute what they compute when every page is kept.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "arch/load.h"
#include "base/checked_math.h"
#include "engine/state_pool.h"
#include "plan/plan.h"

namespace tessera {
namespace {

constexpr int64_t kPositions = 100;
constexpr int64_t kPage = 4;

// Logits of the last token of every step; `bounded`: pages as they are needed, otherwise all are kept.
std::vector<float> run(const LoadedModel& model, const Plan& plan, const std::string& name, int64_t chunk,
                       bool bounded, int64_t& most_held) {
  std::vector<float> logits;
  CompileOptions options;
  options.activations = ActivationType::kExact;
  options.state = StateType::kF32;
  options.page_positions = kPage;
  options.threads = 1;
  auto backend = make_backend(name);
  auto executable = (*backend)->compile(plan, model.weights, options);
  if (!executable) {
    ADD_FAILURE() << executable.error().message;
    return logits;
  }
  std::vector<StateGroup> groups = plan.states;
  if (!bounded)
    for (StateGroup& group : groups)
      if (group.kind == StateKind::kWindowed) group.kind = StateKind::kPaged;
  const StateCapacity capacity = capacity_for(groups, kPage, {kPositions, 1, chunk});
  for (size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].kind != StateKind::kWindowed) continue;
    EXPECT_EQ(capacity.pages[g], ceil_divide(groups[g].window + chunk, kPage) + 1);
  }
  auto pool = StatePool::create(**executable, groups, capacity);
  if (!pool) {
    ADD_FAILURE() << pool.error().message;
    return logits;
  }
  SequenceState state = (*pool)->make_state();
  for (int64_t past = 0; past < kPositions; past += chunk) {
    const int64_t count = std::min(chunk, kPositions - past);
    const Result<Grant> grant = (*pool)->extend(state, past, count);
    if (!grant || *grant != Grant::kGiven) {
      ADD_FAILURE() << "the pool is full at position " << past;
      return logits;
    }
    std::vector<int32_t> tokens, positions;
    for (int64_t i = 0; i < count; ++i) {
      tokens.push_back(static_cast<int32_t>((past + i) * 37 % (plan.vocabulary - 3) + 3));
      positions.push_back(static_cast<int32_t>(past + i));
    }
    const std::vector<int32_t> offsets{0, static_cast<int32_t>(count)};
    const std::vector<int32_t> pasts{static_cast<int32_t>(past)};
    const std::vector<int32_t> lengths{static_cast<int32_t>(kPositions)};
    const std::vector<int32_t> slots{std::max(state.slot, 0)};
    const std::vector<int32_t> rows{static_cast<int32_t>(count) - 1};
    std::vector<std::vector<int32_t>> page_offsets;
    std::vector<PageTable> tables;
    for (size_t g = 0; g < groups.size(); ++g)
      page_offsets.push_back({0, static_cast<int32_t>(state.groups[g].pages.size())});
    for (size_t g = 0; g < groups.size(); ++g) {
      tables.push_back({state.groups[g].pages, page_offsets[g]});
      if (plan.states[g].kind != StateKind::kWindowed) continue;
      int64_t held = 0;
      for (const int32_t page : state.groups[g].pages) held += page >= 0 ? 1 : 0;
      most_held = std::max(most_held, held * kPage);
    }
    StepInput input;
    input.state = &(*pool)->storage();
    input.tokens = tokens;
    input.positions = positions;
    input.sequence_offsets = offsets;
    input.past = pasts;
    input.rope_lengths = lengths;
    input.page_tables = tables;
    input.read_slots = slots;
    input.write_slots = slots;
    input.output_rows = rows;
    const auto ticket = (*executable)->submit(input);
    if (!ticket) {
      ADD_FAILURE() << ticket.error().message;
      return logits;
    }
    const auto output = (*executable)->wait(*ticket);
    logits.insert(logits.end(), output->logits.begin(), output->logits.end());
  }
  return logits;
}

TEST(Window, PagesBehindWindowAndChunkAreFreed) {
  int compared = 0;
  for (const char* name : {"mistral_swa", "gemma3", "gpt_oss", "cohere2", "gemma4_edge"}) {
    const auto checkpoint = Checkpoint::open(std::string("tests/goldens/arch/") + name);
    ASSERT_TRUE(checkpoint) << checkpoint.error().message;
    const auto model = load_model(*checkpoint);
    ASSERT_TRUE(model) << model.error().message;
    const auto plan = build_plan(model->spec, model->weights);
    ASSERT_TRUE(plan) << plan.error().message;
    int64_t window = 0;
    for (const StateGroup& group : plan->states) window = std::max(window, group.window);
    ASSERT_GT(window, 0) << name;
    for (const std::string& backend : backend_names()) {
      for (const int64_t chunk : {1, 7}) {
        int64_t kept = 0;
        int64_t held = 0;
        const std::vector<float> all = run(*model, *plan, backend, chunk, false, kept);
        const std::vector<float> bounded = run(*model, *plan, backend, chunk, true, held);
        ASSERT_FALSE(all.empty());
        EXPECT_EQ(all, bounded) << name << " on " << backend << ", chunks of " << chunk;
        EXPECT_GE(kept, kPositions);
        // Pages begin where they begin: at most one more than window + chunk fill.
        EXPECT_LE(held, window + chunk + 2 * kPage) << name;
        ++compared;
      }
    }
  }
  EXPECT_EQ(compared, 5 * 2 * static_cast<int>(backend_names().size()));
}

}  // namespace
}  // namespace tessera
