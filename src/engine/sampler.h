// The sampler: from one row of logits to one token id. The stages, each on what the former left, renormalised
// (the order of transformers' LogitsProcessorList):
//
//   mask, bias, penalties, temperature, top-k, top-p, min-p, draw
//
// repetition: over prompt and output, a positive logit is divided by it, a negative one multiplied;
// presence, frequency: over the output, subtracted once, and once per occurrence;
// temperature 0: the largest logit, the lowest id on ties, no filter and no draw;
// top-k: what is at least the k-th largest (ties stay); top-p: the fewest most likely tokens that together
// reach p (ties: the lower id first); min-p: what is at least min_p times as likely as the most likely one;
// the draw walks the kept ids upward with a Philox uniform (philox.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.h"

namespace tessera {

struct LogitBias {
  int32_t id = 0;
  float bias = 0;  // added to the logit; -infinity forbids the id
};

struct SamplingOptions {
  double temperature = 0;         // 0: greedy
  int64_t top_k = 0;              // 0: off
  double top_p = 1;               // (0, 1]; 1: off
  double min_p = 0;               // [0, 1]; 0: off
  double repetition_penalty = 1;  // > 0; 1: off
  double presence_penalty = 0;
  double frequency_penalty = 0;
  std::vector<LogitBias> bias;
  std::optional<uint64_t> seed;  // none: the engine draws one and reports it

  [[nodiscard]] bool needs_counts() const {
    return repetition_penalty != 1 || presence_penalty != 0 || frequency_penalty != 0;
  }
};

// An error names the option, what it may be and what it is.
[[nodiscard]] Status validate_sampling(const SamplingOptions& options, int64_t vocabulary);

// Which ids a sequence has used, for the penalties.
class TokenCounts {
 public:
  void add_prompt(std::span<const int32_t> ids);
  void add_output(int32_t id) { ++output_[id]; }
  // id -> occurrences in the output; 0 for an id of the prompt only.
  [[nodiscard]] const std::unordered_map<int32_t, int64_t>& output() const { return output_; }

 private:
  std::unordered_map<int32_t, int64_t> output_;
};

struct SampleInput {
  std::span<const float> logits;    // [vocabulary]
  std::span<const uint64_t> mask;   // one bit per id, 1: allowed; empty: every id is
  std::span<const int32_t> banned;  // ids that may not be drawn now (stop ids before the minimum length)
  const TokenCounts* counts = nullptr;
  uint64_t seed = 0;
  uint32_t choice = 0;    // which of n choices of one request
  uint32_t position = 0;  // where in the sequence the token will stand
};

struct Candidate {
  int32_t id = 0;
  double weight = 0;  // not normalised
};

class Sampler {
 public:
  explicit Sampler(int64_t vocabulary);

  // The id. Errors: a logit is NaN or +infinity, or nothing is left to choose from.
  [[nodiscard]] Result<int32_t> sample(const SamplingOptions& options, const SampleInput& input);

  // What the last draw chose from, ascending ids, weights before normalisation; empty after a greedy choice.
  [[nodiscard]] std::span<const Candidate> candidates() const { return candidates_; }

 private:
  void penalise(const SamplingOptions& options, const TokenCounts& counts);
  void keep_top_k(int64_t k);
  void keep_top_p(double p);
  void keep_min_p(double p);

  std::vector<float> logits_;          // [vocabulary], modified
  std::vector<float> scratch_;         // top-k's selection
  std::vector<Candidate> candidates_;  // what is left
};

}  // namespace tessera
