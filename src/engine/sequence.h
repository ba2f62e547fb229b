// Sequence: one request on its way. Everything that is known is `ids`; `computed` of them are in the state.
// What is not in the state is computed next, whether it is a prompt, one new token, or a sequence whose state
// was dropped: so preemption and a changed rope table need nothing of their own.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/request.h"
#include "engine/state_pool.h"
#include "engine/text_stream.h"

namespace tessera {

using Clock = std::chrono::steady_clock;

enum class SequenceStatus : uint8_t { kWaiting, kRunning, kFinished };

struct Sequence {
  RequestId id = 0;
  Request request;
  SequenceStatus status = SequenceStatus::kWaiting;
  bool cancelled = false;

  std::vector<int32_t> ids;   // prompt and output
  int64_t prompt_length = 0;  // of them
  int64_t limit = 0;          // ids it may grow to
  int64_t computed = 0;       // positions that are in the state
  int64_t rope_length = 0;    // the length whose rope tables the state was computed with
  int64_t furthest = 0;       // positions ever computed, for Report::recomputed
  SequenceState state;

  uint64_t seed = 0;
  TokenCounts counts;
  std::unique_ptr<TextStream> text;  // null without a tokenizer

  Report report;
  Clock::time_point submitted;
  Clock::time_point started;
  Clock::time_point first_token;

  [[nodiscard]] int64_t length() const { return static_cast<int64_t>(ids.size()); }
  [[nodiscard]] int64_t remaining() const { return length() - computed; }
  [[nodiscard]] int64_t outputs() const { return length() - prompt_length; }
};

}  // namespace tessera
