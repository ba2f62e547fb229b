// What the ops of a running step see: where values lie, what computes, and who shares the work.
#pragma once

#include <algorithm>

#include "backend/backend.h"
#include "backend/cpu/cpu_state.h"
#include "backend/cpu/kernel_table.h"
#include "base/thread_pool.h"

namespace tessera::cpu {

struct CpuStep {
  const Plan& plan;
  const CompileOptions& options;
  const KernelTable& kernels;
  ThreadPool& pool;
  const StepInput& input;
  CpuState* state;
  float* token_arena;
  float* output_arena;
  int64_t tokens;
  int64_t outputs;

  [[nodiscard]] const Value& value(const Slice& slice) const {
    return plan.values[static_cast<size_t>(slice.value)];
  }
  [[nodiscard]] int64_t rows(const Slice& slice) const {
    return value(slice).rows == RowSymbol::kTokens ? tokens : outputs;
  }
  // Row 0 of the slice; the next row lies stride(slice) floats further.
  [[nodiscard]] float* data(const Slice& slice) const {
    const Value& v = value(slice);
    return (v.rows == RowSymbol::kTokens ? token_arena + v.offset * tokens
                                         : output_arena + v.offset * outputs) +
           slice.offset;
  }
  [[nodiscard]] int64_t stride(const Slice& slice) const { return value(slice).width; }

  // body(first, last) over [0, rows), shared between threads when rows * cost (about one per value) is worth it.
  template <class Body>
  void for_rows(int64_t rows, int64_t cost, const Body& body) const {
    constexpr int64_t kWorthSharing = 16384;
    if (pool.threads() == 1 || rows < 2 || rows * cost < kWorthSharing) {
      if (rows > 0) body(int64_t{0}, rows);
      return;
    }
    const int64_t chunk = std::max<int64_t>(1, std::min(rows / (4 * pool.threads()), kWorthSharing));
    const auto part = [&](int64_t i, int) { body(i * chunk, std::min(rows, (i + 1) * chunk)); };
    pool.run((rows + chunk - 1) / chunk, part);
  }
};

}  // namespace tessera::cpu
