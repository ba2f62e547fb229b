// A model of random weights with the dimensions of a config.json: for benchmarks of models that are not here.
#pragma once

#include <string>

#include "arch/load.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "tensor/format.h"

namespace tessera {

// Matrices and tables in `format` (one that has an encoder), in memory; gains are 1, biases 0; what is optional is
// left out, the output head excepted. The weights keep the variance of what passes through, so that nothing
// overflows.
[[nodiscard]] Result<LoadedModel> random_model(const Config& config, const Format& format,
                                               ThreadPool& threads);

// The same model without any matrix's bytes: for plans and sizes, never to compute with.
[[nodiscard]] Result<LoadedModel> outline_model(const Config& config, const Format& format);

}  // namespace tessera
