// Matrix products. Each weight of a LinearOp becomes a Segment when the plan is compiled; at a step the rows of all segments
// are one loop over tasks. Three ways to compute a segment: float32 (exact, and formats without a fast path), 8-bit
// activations, bfloat16; for few tokens rows are streamed in their own format, for many a tile of rows is re-laid in a
// thread's scratch first.
#pragma once

#include <array>
#include <vector>

#include "backend/cpu/cpu_step.h"

namespace tessera::cpu {

enum class LinearMode : uint8_t { kFloat, kInt8, kBf16 };

struct LinearSegment {
  Weight weight;
  const FormatKernels* kernels = nullptr;
  LinearMode mode = LinearMode::kFloat;
  int64_t column = 0;           // of the op's output
  const float* bias = nullptr;  // of the segment's first row
};

struct PreparedLinear {
  std::vector<LinearSegment> segments;
  bool int8 = false;  // any segment of that mode
  bool bf16 = false;
};

class CpuLinear {
 public:
  CpuLinear(const Plan& plan, const BoundWeights& weights, const CompileOptions& options,
            const KernelTable& kernels, int threads);

  // Index of the op in the plan.
  void run(const CpuStep& step, size_t op);
  [[nodiscard]] uint64_t scratch_bytes() const;

 private:
  struct Task {
    const LinearSegment* segment;
    int64_t first_row;
    int64_t rows;
    int64_t first_token;
    int64_t tokens;
  };
  struct Source {  // the rows of the op's input
    const float* data;
    int64_t stride;
    int64_t rows;
    int64_t columns;
  };

  using SpreadFunction = decltype(FormatKernels::int8_spread);
  struct SpreadActivations {
    SpreadFunction made_by = nullptr;  // at the present op
    Buffer bytes;
  };

  [[nodiscard]] SpreadActivations& spread_for(SpreadFunction function);
  void quantise(const CpuStep& step, const PreparedLinear& linear, const Source& source);
  void add_tasks(const LinearSegment& segment, const Source& source, int threads);
  void run_task(const CpuStep& step, const Task& task, const Source& source, const Slice& output, int thread);
  [[nodiscard]] std::byte* scratch(int thread) const;

  const KernelTable& kernels_;
  std::vector<PreparedLinear> ops_;  // by op of the plan; empty for other ops
  int64_t largest_columns_ = 0;
  std::vector<Task> tasks_;
  Buffer int8_codes_;
  Buffer int8_scales_;
  Buffer int8_offsets_;
  Buffer bf16_;
  std::array<SpreadActivations, 4> spreads_;  // formats that read activations in the same order share one
  Int8Activations int8_;
  int64_t scratch_stride_ = 0;
  Buffer scratch_;
};

}  // namespace tessera::cpu
