// Latent attention in two forms. A page holds, per layer, the rows [latent | rotated key] of its positions, in float32 or
// float16. Absorbed: K_h goes into the query and V_h behind the mix, so that all heads read the latents themselves; best for
// few tokens. Expanded: keys and values of a head are made from the latents step by step and serve all tokens of the sequence;
// best for long prompts. A sequence's own sizes choose the form (CompileOptions::latent_form may force one), never what else is in
// the step.
#pragma once

#include <vector>

#include "backend/cpu/absorbed_weights.h"
#include "backend/cpu/cpu_step.h"
#include "backend/cpu/sequence_args.h"

namespace tessera::cpu {

class CpuMla {
 public:
  CpuMla(const Plan& plan, const BoundWeights& weights, const CompileOptions& options,
         const KernelTable& kernels, ThreadPool& pool);

  // `index`: of the op in the plan.
  void run(const CpuStep& step, const MlaAttendOp& op, size_t index, const BoundWeights& weights);
  [[nodiscard]] uint64_t scratch_bytes() const;

 private:
  struct Task {
    int64_t sequence;
    int64_t first;  // token of the sequence, here and below
    int64_t last;
    int64_t first_head;
    int64_t last_head;
  };
  // What a thread works in; all floats.
  struct Workspace {
    float* weights;  // rows of kv_b: [nope_dim + value_dim, kv_lora]
    float* latents;  // [kLatentStep, kv_lora + rope_dim]
    float* keys;     // [kLatentStep, nope_dim + rope_dim + value_dim]
    float* scores;   // [queries, kLatentStep]
    float* maxima;
    float* totals;
    float* corrections;
    int32_t* visible;
  };
  class Pages;

  void store(const CpuStep& step, const MlaAttendOp& op);
  void run_absorbed(const CpuStep& step, const MlaAttendOp& op, size_t index, int64_t first, int64_t last);
  void attend_latents(const CpuStep& step, const MlaAttendOp& op, const Task& task, int64_t first_row,
                      int thread);
  void attend_expanded(const CpuStep& step, const MlaAttendOp& op, const BoundWeights& weights,
                       const Task& task, int thread);
  [[nodiscard]] Workspace workspace(const MlaAttendOp& op, int thread);

  LatentForm form_;
  int64_t most_tokens_;
  AbsorbedWeights absorbed_;
  int64_t scratch_stride_ = 0;  // floats per thread
  Buffer scratch_;
  Buffer queries_;  // [kAbsorbedTokens, heads, kv_lora + rope_dim]
  Buffer mixes_;    // [kAbsorbedTokens, heads, kv_lora]
  std::vector<Task> tasks_;
};

}  // namespace tessera::cpu
