// Philox against the published vectors; every stage of the sampler against numbers worked out by hand.
#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "engine/philox.h"

namespace tessera {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// kat_vectors of Random123 (Salmon et al., 2011), philox4x32, 10 rounds.
static_assert(philox4x32({0, 0, 0, 0}, {0, 0}) ==
              PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
              PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
              PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

std::vector<int32_t> kept(Sampler& sampler) {
  std::vector<int32_t> ids;
  for (const Candidate& candidate : sampler.candidates()) ids.push_back(candidate.id);
  return ids;
}

std::vector<double> shares(Sampler& sampler) {
  double total = 0;
  for (const Candidate& candidate : sampler.candidates()) total += candidate.weight;
  std::vector<double> result;
  for (const Candidate& candidate : sampler.candidates()) result.push_back(candidate.weight / total);
  return result;
}

int32_t sample(Sampler& sampler, const SamplingOptions& options, const std::vector<float>& logits,
               SampleInput input = {}) {
  input.logits = logits;
  const Result<int32_t> id = sampler.sample(options, input);
  EXPECT_TRUE(id) << id.error().message;
  return id.value_or(-1);
}

TEST(Philox, UniformIsBelowOneAndSpreads) {
  double sum = 0;
  float largest = 0;
  for (uint32_t position = 0; position < 20000; ++position) {
    const float value = philox_uniform(7, 0, position, DrawPurpose::kToken);
    ASSERT_GE(value, 0.0f);
    ASSERT_LT(value, 1.0f);
    largest = std::max(largest, value);
    sum += static_cast<double>(value);
  }
  EXPECT_NEAR(sum / 20000, 0.5, 0.01);
  EXPECT_GT(largest, 0.999f);
  EXPECT_NE(philox_uniform(7, 0, 1, DrawPurpose::kToken), philox_uniform(7, 1, 1, DrawPurpose::kToken));
  EXPECT_NE(philox_uniform(7, 0, 1, DrawPurpose::kToken),
            philox_uniform(7 + (uint64_t{1} << 32), 0, 1, DrawPurpose::kToken));
}

TEST(Sampler, GreedyTakesTheLowestIdOfEquals) {
  Sampler sampler(4);
  EXPECT_EQ(sample(sampler, {}, {1, 3, 3, 2}), 1);
  EXPECT_EQ(sample(sampler, {}, {-5, -5, -5, -5}), 0);
  EXPECT_TRUE(sampler.candidates().empty());
}

TEST(Sampler, TemperatureComesBeforeTopP) {
  // softmax of [3, 2, 1] / 0.5 = [0.8668, 0.1173, 0.0159]: 0.8 is reached by the first alone. With the filter
  // first (softmax [0.6652, 0.2447, 0.0900]) it would take two.
  Sampler sampler(3);
  SamplingOptions options;
  options.temperature = 0.5;
  options.top_p = 0.8;
  EXPECT_EQ(sample(sampler, options, {3, 2, 1}), 0);
  EXPECT_EQ(kept(sampler), (std::vector<int32_t>{0}));
  options.temperature = 1;
  (void)sample(sampler, options, {3, 2, 1});
  EXPECT_EQ(kept(sampler), (std::vector<int32_t>{0, 1}));
  EXPECT_NEAR(shares(sampler)[0], 0.6652 / (0.6652 + 0.2447), 1e-4);
  options.temperature = 1e-9;  // as good as greedy, and no NaN
  EXPECT_EQ(sample(sampler, options, {3, 2, 1}), 0);
}

TEST(Sampler, TopKKeepsTies) {
  Sampler sampler(5);
  SamplingOptions options;
  options.temperature = 1;
  options.top_k = 2;
  (void)sample(sampler, options, {1, 4, 3, 3, 0});
  EXPECT_EQ(kept(sampler), (std::vector<int32_t>{1, 2, 3}));
  options.top_k = 99;
  (void)sample(sampler, options, {1, 4, 3, 3, 0});
  EXPECT_EQ(kept(sampler).size(), 5u);
}

TEST(Sampler, TopPStopsExactlyWhenTheMassIsReached) {
  Sampler sampler(3);
  SamplingOptions options;
  options.temperature = 1;
  const std::vector<float> logits = {std::log(0.25f), std::log(0.5f), std::log(0.25f)};
  options.top_p = 0.49;
  (void)sample(sampler, options, logits);
  EXPECT_EQ(kept(sampler), (std::vector<int32_t>{1}));
  options.top_p = 0.6;  // of equals the lower id
  (void)sample(sampler, options, logits);
  EXPECT_EQ(kept(sampler), (std::vector<int32_t>{0, 1}));
  options.top_p = 1e-12;  // never nothing
  (void)sample(sampler, options, logits);
  EXPECT_EQ(kept(sampler), (std::vector<int32_t>{1}));
}

TEST(Sampler, FiltersSeeWhatTheFormerLeftRenormalised) {
  // Shares 0.4, 0.3, 0.2, 0.1. top-k 3 leaves 0.444, 0.333, 0.222; top-p 0.75 of that takes two (0.777), of
  // the whole it would take three (0.4 + 0.3 < 0.75).
  Sampler sampler(4);
  SamplingOptions options;
  options.temperature = 1;
  options.top_k = 3;
  options.top_p = 0.75;
  const std::vector<float> logits = {std::log(0.4f), std::log(0.3f), std::log(0.2f), std::log(0.1f)};
  (void)sample(sampler, options, logits);
  EXPECT_EQ(kept(sampler), (std::vector<int32_t>{0, 1}));
  EXPECT_NEAR(shares(sampler)[0], 4.0 / 7, 1e-6);
}

TEST(Sampler, MinPIsRelativeToTheMostLikely) {
  Sampler sampler(4);
  SamplingOptions options;
  options.temperature = 1;
  options.min_p = 0.3;
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.16f), std::log(0.04f)};
  (void)sample(sampler, options, logits);  // least: 0.15
  EXPECT_EQ(kept(sampler), (std::vector<int32_t>{0, 1, 2}));
  options.min_p = 1;
  (void)sample(sampler, options, logits);
  EXPECT_EQ(kept(sampler), (std::vector<int32_t>{0}));
}

// "Paris Paris" as the prompt, logits of 2 and -2: what is divided, multiplied, subtracted.
TEST(Sampler, PenaltiesCountWhatTheySay) {
  const int32_t paris = 0;
  const int32_t other = 1;
  const int32_t negative = 2;
  TokenCounts counts;
  counts.add_prompt(std::vector<int32_t>{paris, paris, negative});
  const std::vector<float> logits = {2, 1.6f, -2, -2.5f};
  Sampler sampler(4);
  SampleInput input;
  input.counts = &counts;

  SamplingOptions options;
  options.repetition_penalty = 1.3;  // 2 / 1.3 = 1.538 < 1.6
  EXPECT_EQ(sample(sampler, options, logits, input), other);
  options.temperature = 1;
  (void)sample(sampler, options, logits, input);
  EXPECT_NEAR(std::log(shares(sampler)[paris] / shares(sampler)[other]), 2 / 1.3 - 1.6, 1e-6);
  EXPECT_NEAR(std::log(shares(sampler)[negative] / shares(sampler)[other]), -2 * 1.3 - 1.6, 1e-6);

  options = {};
  options.presence_penalty = 1;  // output only: the prompt does not count
  EXPECT_EQ(sample(sampler, options, logits, input), paris);
  counts.add_output(paris);
  EXPECT_EQ(sample(sampler, options, logits, input), other);
  counts.add_output(paris);
  options.temperature = 1;
  (void)sample(sampler, options, logits, input);
  EXPECT_NEAR(std::log(shares(sampler)[paris] / shares(sampler)[other]), 2 - 1 - 1.6, 1e-6);  // once
  options.presence_penalty = 0;
  options.frequency_penalty = 1;
  (void)sample(sampler, options, logits, input);
  EXPECT_NEAR(std::log(shares(sampler)[paris] / shares(sampler)[other]), 2 - 2 - 1.6,
              1e-6);  // per occurrence
}

TEST(Sampler, MaskBiasAndBannedIds) {
  Sampler sampler(70);
  std::vector<float> logits(70, 0.0f);
  logits[69] = 5;
  logits[3] = 4;
  const std::vector<uint64_t> mask = {~uint64_t{0}, 0};
  SampleInput input;
  input.mask = mask;
  EXPECT_EQ(sample(sampler, {}, logits, input), 3);
  const std::vector<int32_t> banned = {3};
  input.banned = banned;
  EXPECT_EQ(sample(sampler, {}, logits, input), 0);
  SamplingOptions options;
  options.bias = {{7, 1.5f}, {69, 50.0f}, {0, -kInfinity}};  // a bias does not lift the mask
  EXPECT_EQ(sample(sampler, options, logits, input), 7);

  const std::vector<uint64_t> nothing = {0, 0};
  input.mask = nothing;
  input.logits = logits;
  EXPECT_FALSE(sampler.sample({}, input));
}

TEST(Sampler, RefusesWhatIsNoNumber) {
  Sampler sampler(2);
  SampleInput input;
  const std::vector<float> nan = {0, std::nanf("")};
  input.logits = nan;
  EXPECT_FALSE(sampler.sample({}, input));
  const std::vector<float> infinite = {0, kInfinity};
  input.logits = infinite;
  EXPECT_FALSE(sampler.sample({}, input));
  const std::vector<float> minus = {-kInfinity, -3};  // the model's own mask
  EXPECT_EQ(sample(sampler, {}, minus), 1);
}

TEST(Sampler, DrawsFollowTheShares) {
  Sampler sampler(3);
  SamplingOptions options;
  options.temperature = 1;
  const std::vector<float> logits = {std::log(0.2f), std::log(0.7f), std::log(0.1f)};
  std::vector<int> counts(3, 0);
  for (uint32_t position = 0; position < 30000; ++position) {
    SampleInput input;
    input.seed = 42;
    input.position = position;
    ++counts[static_cast<size_t>(sample(sampler, options, logits, input))];
  }
  EXPECT_NEAR(counts[0] / 30000.0, 0.2, 0.01);
  EXPECT_NEAR(counts[1] / 30000.0, 0.7, 0.01);
  EXPECT_NEAR(counts[2] / 30000.0, 0.1, 0.01);
}

// A greedy and a sampled draw between leave the stream where it was: it depends on nothing but its counter.
TEST(Sampler, ADrawIsAFunctionOfSeedAndPosition) {
  SamplingOptions options;
  options.temperature = 0.9;
  const std::vector<float> logits = {0.1f, 0.4f, 0.2f, 0.3f, 0.0f, 0.25f};
  SampleInput input;
  input.seed = 123456789012345u;
  input.position = 17;
  Sampler first(6);
  const int32_t alone = sample(first, options, logits, input);
  Sampler second(6);
  (void)sample(second, {}, logits, input);
  SampleInput elsewhere = input;
  elsewhere.position = 18;
  (void)sample(second, options, logits, elsewhere);
  EXPECT_EQ(sample(second, options, logits, input), alone);
  std::set<int32_t> choices;
  for (input.choice = 0; input.choice < 30; ++input.choice)
    choices.insert(sample(first, options, logits, input));
  EXPECT_GT(choices.size(), 2u);  // n choices differ
}

TEST(Sampler, OptionsAreChecked) {
  const auto message = [](const SamplingOptions& options) {
    const Status status = validate_sampling(options, 10);
    return status ? std::string() : status.error().message;
  };
  EXPECT_EQ(message({}), "");
  SamplingOptions options;
  options.temperature = -1;
  EXPECT_EQ(message(options), "temperature: expected a number of at least 0, found -1");
  options = {};
  options.top_p = 0;
  EXPECT_EQ(message(options), "top_p: expected a number above 0 and at most 1, found 0");
  options = {};
  options.top_k = -2;
  EXPECT_NE(message(options), "");
  options = {};
  options.min_p = std::nan("");
  EXPECT_NE(message(options), "");
  options = {};
  options.repetition_penalty = 0;
  EXPECT_NE(message(options), "");
  options = {};
  options.bias = {{10, 1}};
  EXPECT_EQ(message(options), "logit_bias: expected an id below 10, found 10");
}

}  // namespace
}  // namespace tessera
