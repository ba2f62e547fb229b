// Speed of a loaded model: prompt and decode tokens per second, and the memory traffic of decoding.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "engine/session.h"

namespace tessera {

struct BenchmarkOptions {
  std::vector<int64_t> prompts = {128, 512};  // tokens
  int64_t decode = 64;                        // tokens after the first; 0: no decoding
  int64_t depth = 0;                          // positions in the state before decoding begins
  int repeat = 3;                             // medians of so many runs
};

struct PromptSpeed {
  int64_t tokens = 0;
  double tokens_per_second = 0;
};

struct DecodeSpeed {
  int64_t tokens = 0;
  int64_t depth = 0;
  double tokens_per_second = 0;
  double bytes_per_second = 0;  // weights and state that are read
};

struct BenchmarkResult {
  std::vector<PromptSpeed> prompts;
  std::vector<DecodeSpeed> decodes;  // one, or none
};

[[nodiscard]] Result<BenchmarkResult> run_benchmark(Session& session, const BenchmarkOptions& options);

// Bytes of weights that one decode step reads: every matrix of the plan once, of experts those that one token
// chooses, no embedding rows.
[[nodiscard]] uint64_t weight_bytes_per_step(const Plan& plan, const BoundWeights& weights);
// Bytes of paged state per position, over all groups.
[[nodiscard]] uint64_t state_bytes_per_position(const Session& session);

// Peak resident memory of this process until now, bytes; 0 where the system does not say.
[[nodiscard]] uint64_t peak_memory();

}  // namespace tessera
