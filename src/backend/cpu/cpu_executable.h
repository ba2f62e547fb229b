// A plan on the CPU. Everything a step needs is allocated here once; a step runs in submit and completes at once.
#pragma once

#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/cpu_attend.h"
#include "backend/cpu/cpu_experts.h"
#include "backend/cpu/cpu_linear.h"
#include "backend/cpu/cpu_mla.h"
#include "backend/cpu/cpu_recurrent.h"
#include "backend/cpu/rope_tables.h"
#include "backend/cpu/zeroed_memory.h"
#include "base/thread_pool.h"

namespace tessera::cpu {

[[nodiscard]] MemoryNeeds memory_needs(const Plan& plan, const BoundWeights& weights,
                                       const CompileOptions& options, const KernelTable& kernels);

class CpuExecutable : public Executable {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Executable>> create(const Plan& plan,
                                                                  const BoundWeights& weights,
                                                                  const CompileOptions& options,
                                                                  const KernelTable& kernels);

  Result<std::unique_ptr<StateStorage>> allocate_state(const StateCapacity& capacity) override;
  Result<Ticket> submit(const StepInput& input) override;
  Result<bool> ready(Ticket ticket) override;
  Result<StepOutput> wait(Ticket ticket) override;
  [[nodiscard]] uint64_t page_bytes(int group) const override;
  [[nodiscard]] uint64_t slot_bytes() const override;
  [[nodiscard]] uint64_t arena_bytes() const override;
  [[nodiscard]] const CompileOptions& options() const override { return options_; }

 private:
  CpuExecutable(const Plan& plan, const BoundWeights& weights, const CompileOptions& options,
                const KernelTable& kernels);
  void run_op(const CpuStep& step, size_t index);

  const Plan& plan_;
  const BoundWeights& weights_;
  CompileOptions options_;
  const KernelTable& kernels_;
  MemoryNeeds needs_;
  ThreadPool pool_;
  ZeroedMemory token_arena_;
  ZeroedMemory output_arena_;
  CpuExperts experts_;  // before linear_, which makes room for it
  CpuLinear linear_;
  CpuAttend attend_;
  CpuMla mla_;
  CpuRecurrent recurrent_;
  CpuRouter router_;
  RopeTables ropes_;
  std::vector<CombineInput> combine_terms_;
  std::vector<float> position_row_;
  StepOutput output_;
  Ticket ticket_ = 0;
};

}  // namespace tessera::cpu
