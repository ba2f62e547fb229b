#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "engine/philox.h"

namespace tessera {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

bool more_likely(const Candidate& a, const Candidate& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
}

bool lower_id(const Candidate& a, const Candidate& b) {
  return a.id < b.id;
}

}  // namespace

Status validate_sampling(const SamplingOptions& options, int64_t vocabulary) {
  const auto refuse = [](const char* name, const char* expected, double found) {
    return fail(ErrorCode::kInvalidArgument, "{}: expected {}, found {}", name, expected, found);
  };
  if (!std::isfinite(options.temperature) || options.temperature < 0)
    return refuse("temperature", "a number of at least 0", options.temperature);
  if (options.top_k < 0)
    return fail(ErrorCode::kInvalidArgument, "top_k: expected a count of at least 0 (0: off), found {}",
                options.top_k);
  if (!(options.top_p > 0 && options.top_p <= 1))
    return refuse("top_p", "a number above 0 and at most 1", options.top_p);
  if (!(options.min_p >= 0 && options.min_p <= 1))
    return refuse("min_p", "a number between 0 and 1", options.min_p);
  if (!std::isfinite(options.repetition_penalty) || options.repetition_penalty <= 0)
    return refuse("repetition_penalty", "a number above 0", options.repetition_penalty);
  if (!std::isfinite(options.presence_penalty))
    return refuse("presence_penalty", "a finite number", options.presence_penalty);
  if (!std::isfinite(options.frequency_penalty))
    return refuse("frequency_penalty", "a finite number", options.frequency_penalty);
  for (const LogitBias& bias : options.bias) {
    if (bias.id < 0 || bias.id >= vocabulary)
      return fail(ErrorCode::kInvalidArgument, "logit_bias: expected an id below {}, found {}", vocabulary,
                  bias.id);
    if (std::isnan(bias.bias) || bias.bias == std::numeric_limits<float>::infinity())
      return refuse("logit_bias", "a finite number or -infinity", bias.bias);
  }
  return {};
}

void TokenCounts::add_prompt(std::span<const int32_t> ids) {
  for (const int32_t id : ids) output_.try_emplace(id, 0);
}

Sampler::Sampler(int64_t vocabulary) : logits_(static_cast<size_t>(vocabulary)) {}

void Sampler::penalise(const SamplingOptions& options, const TokenCounts& counts) {
  const auto repetition = static_cast<float>(options.repetition_penalty);
  for (const auto& [id, occurrences] : counts.output()) {
    if (id < 0 || id >= static_cast<int64_t>(logits_.size())) continue;  // embeddings have no ids
    float& logit = logits_[static_cast<size_t>(id)];
    logit = logit > 0 ? logit / repetition : logit * repetition;
    if (occurrences > 0)
      logit -= static_cast<float>(options.presence_penalty +
                                  options.frequency_penalty * static_cast<double>(occurrences));
  }
}

void Sampler::keep_top_k(int64_t k) {
  if (k <= 0 || static_cast<size_t>(k) >= candidates_.size()) return;
  scratch_.clear();
  for (const Candidate& candidate : candidates_)
    scratch_.push_back(logits_[static_cast<size_t>(candidate.id)]);
  const auto kth = scratch_.begin() + (k - 1);
  std::nth_element(scratch_.begin(), kth, scratch_.end(), std::greater<>());
  std::erase_if(candidates_, [this, least = *kth](const Candidate& candidate) {
    return logits_[static_cast<size_t>(candidate.id)] < least;
  });
}

void Sampler::keep_top_p(double p) {
  if (p >= 1 || candidates_.size() <= 1) return;
  double total = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  // A heap gives the most likely ones in order without sorting the whole vocabulary.
  const auto heap_less = [](const Candidate& a, const Candidate& b) { return more_likely(b, a); };
  std::make_heap(candidates_.begin(), candidates_.end(), heap_less);
  auto end = candidates_.end();
  double mass = 0;
  while (end != candidates_.begin() && mass < p * total) {
    std::pop_heap(candidates_.begin(), end, heap_less);
    --end;
    mass += end->weight;
  }
  candidates_.erase(candidates_.begin(), end);  // what was popped stands at the back
  std::sort(candidates_.begin(), candidates_.end(), lower_id);
}

void Sampler::keep_min_p(double p) {
  if (p <= 0) return;
  double largest = 0;
  for (const Candidate& candidate : candidates_) largest = std::max(largest, candidate.weight);
  std::erase_if(candidates_,
                [least = p * largest](const Candidate& candidate) { return candidate.weight < least; });
}

Result<int32_t> Sampler::sample(const SamplingOptions& options, const SampleInput& input) {
  CHECK(input.logits.size() == logits_.size(), "{} logits for a vocabulary of {}", input.logits.size(),
        logits_.size());
  candidates_.clear();
  std::copy(input.logits.begin(), input.logits.end(), logits_.begin());
  if (!input.mask.empty()) {
    CHECK(input.mask.size() * 64 >= logits_.size(), "a mask of {} words", input.mask.size());
    for (size_t id = 0; id < logits_.size(); ++id)
      if ((input.mask[id / 64] >> (id % 64) & 1u) == 0) logits_[id] = kForbidden;
  }
  for (const int32_t id : input.banned)
    if (id >= 0 && id < static_cast<int64_t>(logits_.size())) logits_[static_cast<size_t>(id)] = kForbidden;
  for (const LogitBias& bias : options.bias) logits_[static_cast<size_t>(bias.id)] += bias.bias;
  if (options.needs_counts() && input.counts != nullptr) penalise(options, *input.counts);

  size_t best = 0;
  for (size_t id = 0; id < logits_.size(); ++id) {
    if (std::isnan(logits_[id]) || logits_[id] == std::numeric_limits<float>::infinity())
      return fail(ErrorCode::kBadData,
                  "the logit of id {} at position {} is {}: the model's weights overflow", id, input.position,
                  logits_[id]);
    if (logits_[id] > logits_[best]) best = id;  // the first of equals stays
  }
  const float largest = logits_[best];
  if (largest == kForbidden)
    return fail(ErrorCode::kInvalidArgument, "every id is forbidden at position {}", input.position);
  if (options.temperature == 0) return static_cast<int32_t>(best);

  for (size_t id = 0; id < logits_.size(); ++id) {
    if (logits_[id] == kForbidden) continue;
    const double weight = std::exp((static_cast<double>(logits_[id]) - largest) / options.temperature);
    candidates_.push_back({static_cast<int32_t>(id), weight});
  }
  keep_top_k(options.top_k);
  keep_top_p(options.top_p);
  keep_min_p(options.min_p);

  double total = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  const double target = total * static_cast<double>(philox_uniform(input.seed, input.choice, input.position,
                                                                   DrawPurpose::kToken));
  double sum = 0;
  for (const Candidate& candidate : candidates_) {
    sum += candidate.weight;
    if (sum > target) return candidate.id;
  }
  return candidates_.back().id;  // rounding of the sum
}

}  // namespace tessera
