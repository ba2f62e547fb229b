// Attention: keys and values of the step are stored first, then every (sequence, kv head, block of tokens) is a task.
#pragma once

#include <vector>

#include "backend/cpu/cpu_step.h"

namespace tessera::cpu {

class CpuAttend {
 public:
  CpuAttend(const Plan& plan, const CompileOptions& options, int threads);

  void run(const CpuStep& step, const AttendOp& op, const BoundWeights& weights);
  [[nodiscard]] uint64_t scratch_bytes() const { return scratch_.size(); }

 private:
  struct Task {
    AttendSequence sequence;
    int64_t kv_head;
    int64_t first;
    int64_t last;
  };
  std::vector<Task> tasks_;
  std::vector<float> query_scales_;
  int64_t scratch_stride_ = 0;  // floats per thread
  Buffer scratch_;
};

}  // namespace tessera::cpu
