// What a checkpoint's generation_config.json says about generating: how its authors sample from it, and the ids
// that end an answer.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "engine/sampler.h"

namespace tessera {

struct GenerationConfig {
  // As the file says when it has do_sample: true; greedy otherwise.
  SamplingOptions sampling;
  std::vector<int32_t> stop_ids;
};

// Absent file: the defaults. Values out of range are errors that name file and key.
[[nodiscard]] Result<GenerationConfig> read_generation_config(const Checkpoint& checkpoint);

}  // namespace tessera
