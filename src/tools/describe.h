// A bound model as a JSON object, for `inspect`: dimensions, sublayers, tensors with formats, state and memory.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "arch/load.h"
#include "backend/backend.h"
#include "base/json.h"
#include "plan/plan.h"

namespace tessera {

// Memory figures are for one sequence of `context` positions in steps of options.max_tokens, on the backend whose needs are given:
// state in whole pages and slots as it hands them out, copies of weights in another layout.
[[nodiscard]] Json describe_model(const LoadedModel& model, const Plan& plan, const MemoryNeeds& needs,
                                  const CompileOptions& options, int64_t context);

}  // namespace tessera
