// What a caller asks of the engine, and what the engine tells it: a Request goes in, Events come out, the
// last of them with a Report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/sampler.h"

namespace tessera {

using RequestId = uint64_t;

enum class EndOfSequence : uint8_t {
  kStops,    // a stop id of the model ends the answer
  kIgnored,  // it is a token like any other
};

struct Request {
  std::vector<int32_t> prompt;  // ids below the vocabulary, at least one
  SamplingOptions sampling;
  std::optional<int64_t> max_tokens;  // none: until something else ends it
  int64_t min_tokens = 0;             // no stop id and no stop string ends it before
  EndOfSequence end_of_sequence = EndOfSequence::kStops;
  std::vector<int32_t> stop_ids;          // besides the model's
  std::vector<std::string> stop_strings;  // not part of the answer; need a tokenizer
};

enum class FinishReason : uint8_t {
  kStopId,       // "stop"
  kStopString,   // "stop"
  kMaxTokens,    // "length"
  kContextFull,  // "context_full"
  kCancelled,    // "cancelled"
  kError,        // "error"; Report::error says which
};
[[nodiscard]] const char* finish_reason_name(FinishReason reason);

struct Report {
  FinishReason reason = FinishReason::kError;
  std::string error;
  uint64_t seed = 0;          // what replays this answer
  int64_t prompt_tokens = 0;  // ids
  int64_t output_tokens = 0;  // ids, a stop id included
  int64_t recomputed = 0;     // positions computed more than once (preempted, or another rope table)
  double queued_seconds = 0;  // until its first step began
  double prompt_seconds = 0;  // from there to the first token
  double decode_seconds = 0;  // from there to the last
};

struct Event {
  RequestId request = 0;
  int32_t id = -1;   // the new token; -1: none, only held text or the end
  std::string text;  // what has become certain by it: whole UTF-8 characters, no part of a stop string
  std::optional<Report> finished;
};

}  // namespace tessera
