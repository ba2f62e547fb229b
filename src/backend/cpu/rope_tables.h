// Cosines and sines of a step's tokens, computed once per step and rope table, not once per layer.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "base/thread_pool.h"

namespace tessera::cpu {

class RopeTables {
 public:
  RopeTables(const Plan& plan, const CompileOptions& options);

  void prepare(const StepInput& input, ThreadPool& pool);
  [[nodiscard]] const float* cos(int rope) const { return tables_[static_cast<size_t>(rope)].cos.data(); }
  [[nodiscard]] const float* sin(int rope) const { return tables_[static_cast<size_t>(rope)].sin.data(); }

 private:
  struct Table {
    const RopeSpec* spec = nullptr;
    std::vector<int> axes;   // [dim / 2]: whose position turns a pair
    std::vector<float> cos;  // [max_tokens, dim / 2]
    std::vector<float> sin;
    std::vector<float> frequencies;  // [dim / 2], of the last key
    int64_t key = -1;
  };
  std::vector<Table> tables_;
};

}  // namespace tessera::cpu
