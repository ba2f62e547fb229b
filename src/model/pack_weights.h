// Packing while loading: the weights of a bound model, unquantised, are encoded in the formats of a precision policy, matrix by
// matrix from the mapped file, so that memory holds the result and some rows in float32 and never the model twice.
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "base/thread_pool.h"
#include "model/binder.h"
#include "model/precision.h"

namespace tessera {

// Values encoded so far, and all that will be.
using PackProgress = std::function<void(uint64_t done, uint64_t total)>;

// Rows of several matrices, one after another, encoded in `format`; `importance` as in encode_rows. The part of the rows that
// comes from a file that `from` maps is released behind the encoder (null: nothing is).
[[nodiscard]] Status encode_matrices(std::span<const Weight> parts, const Format& format,
                                     const float* importance, ThreadPool& threads, const Checkpoint* from,
                                     std::byte* out);

// Every weight the policy names gets its format; what has it already stays in place. Errors: a policy that does not fit the model
// (PrecisionPolicy::check), weights that are quantised in another format, values that a format cannot hold.
[[nodiscard]] Status pack_weights(const ModelSpec& spec, const PrecisionPolicy& policy, ThreadPool& threads,
                                  const Checkpoint* from, const PackProgress& progress,
                                  BoundWeights& weights);

}  // namespace tessera
