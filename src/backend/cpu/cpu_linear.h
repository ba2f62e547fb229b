// Matrix products. Each weight of a LinearOp becomes a Segment when the plan is compiled; at a step the rows of all segments
// are one loop over tasks. Three ways to compute a segment: float32 (exact, and formats without a fast path), 8-bit
// activations, bfloat16; for few tokens rows are streamed in their own format, for many a tile of rows is re-laid in a
// thread's scratch first. Routers and gates always see float32 activations. Experts are several products at once: groups of rows
// of one gathered input, each with segments of its own.
#pragma once

#include <array>
#include <span>
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

// Appends the first `rows` rows of the joined parts, whose products begin at `column` of the output.
void add_segments(PreparedLinear& linear, std::span<const Weight> parts, int64_t rows, int64_t column,
                  const float* bias, const KernelTable& kernels, ActivationType activations);

struct LinearSource {  // rows that are multiplied
  const float* data = nullptr;
  int64_t stride = 0;
  int64_t rows = 0;
  int64_t columns = 0;
};
struct LinearTarget {
  float* data = nullptr;  // row 0 belongs to row 0 of the source
  int64_t stride = 0;
};
// Rows [first_row, first_row + rows) of a source meet these matrices.
struct LinearGroup {
  const PreparedLinear* linear = nullptr;
  int64_t first_row = 0;
  int64_t rows = 0;
};

// What a caller of multiply() will ask for at most, known when the plan is compiled.
struct LinearNeeds {
  int64_t rows = 0;  // of a source
  int64_t columns = 0;
  int64_t groups = 0;
  int64_t segments = 0;      // of a group
  int64_t segment_rows = 0;  // of a segment
  bool int8 = false;
  bool bf16 = false;
};

class CpuLinear {
 public:
  CpuLinear(const Plan& plan, const BoundWeights& weights, const CompileOptions& options,
            const KernelTable& kernels, int threads, std::span<const LinearNeeds> others = {});

  // Index of the op in the plan.
  void run(const CpuStep& step, size_t op);
  // All groups in one loop over the threads. Groups do not overlap.
  void multiply(const CpuStep& step, const LinearSource& source, std::span<const LinearGroup> groups,
                const LinearTarget& target);
  [[nodiscard]] uint64_t scratch_bytes() const;

 private:
  struct Task {
    const LinearSegment* segment;
    int64_t first_row;
    int64_t rows;
    int64_t first_token;
    int64_t tokens;
    int64_t group_rows;  // how many rows the segment meets in all: chooses the way
    int64_t spread_row;  // of the group's first row, where activations are spread
  };
  using Source = LinearSource;

  using SpreadFunction = decltype(FormatKernels::int8_spread);
  struct SpreadActivations {
    SpreadFunction made_by = nullptr;  // at the present op
    Buffer bytes;
  };

  [[nodiscard]] SpreadActivations& spread_for(SpreadFunction function);
  void quantise(const CpuStep& step, std::span<const LinearGroup> groups, const Source& source);
  void spread(std::span<const LinearGroup> groups, const Source& source);
  void add_tasks(const LinearSegment& segment, const LinearGroup& group, int64_t spread_row, int64_t groups,
                 int threads);
  void run_task(const Task& task, const Source& source, const LinearTarget& target, int thread);
  [[nodiscard]] std::byte* scratch(int thread) const;

  const KernelTable& kernels_;
  std::vector<PreparedLinear> ops_;  // by op of the plan; empty for other ops
  int64_t largest_columns_ = 0;
  std::vector<Task> tasks_;
  Buffer int8_codes_;
  Buffer int8_scales_;
  Buffer int8_offsets_;
  Buffer int8_sums_;
  Buffer bf16_;
  std::array<SpreadActivations, 4> spreads_;  // formats that read activations in the same order share one
  Int8Activations int8_;
  int64_t scratch_stride_ = 0;
  Buffer scratch_;
};

}  // namespace tessera::cpu
