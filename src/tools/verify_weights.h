// Looks at every weight of a bound model: one that is NaN or infinite makes every answer wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "model/binder.h"

namespace tessera {

struct WeightFault {
  std::string slot;
  std::string source;  // the tensor in the file
  int64_t nan = 0;
  int64_t infinite = 0;
  int64_t row = 0;  // of the first one
  int64_t column = 0;
};

struct WeightCheck {
  int64_t values = 0;  // looked at
  std::vector<WeightFault> faults;
};

[[nodiscard]] WeightCheck verify_weights(const BoundWeights& weights, ThreadPool& threads,
                                         const std::function<void(uint64_t done, uint64_t total)>& progress);

}  // namespace tessera
