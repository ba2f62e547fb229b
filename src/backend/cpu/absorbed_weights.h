// kv_b of latent attention laid out once for the absorbed form, so that a decoded token reads every weight once and decodes none
// twice. K_h is turned over: row l holds what latent l of head h takes from each of the query's values. V_h is used where it lies
// when its format has a product of its own, and copied as plain rows otherwise. Copies keep a plain element type; block formats
// become float32 with exact activations and bfloat16 with others.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "backend/cpu/kernel_table.h"
#include "base/thread_pool.h"
#include "tensor/weight.h"

namespace tessera::cpu {

class AbsorbedWeights {
 public:
  // Bytes of the copies that the constructor makes.
  [[nodiscard]] static uint64_t bytes(const Plan& plan, const BoundWeights& weights,
                                      const CompileOptions& options, const KernelTable& kernels);
  AbsorbedWeights(const Plan& plan, const BoundWeights& weights, const CompileOptions& options,
                  const KernelTable& kernels, ThreadPool& pool);

  // out[t, l] = sum over n < nope_dim of K_head[n, l] * x[t, n], l < kv_lora; `op` is the number of the op in the plan.
  void absorb(size_t op, int64_t head, const float* x, int64_t x_stride, int64_t tokens, float* out,
              int64_t out_stride) const;
  // out[t, r] = sum over l < kv_lora of V_head[r, l] * x[t, l], r < value_dim.
  void expand(size_t op, int64_t head, const float* x, int64_t x_stride, int64_t tokens, float* out,
              int64_t out_stride) const;

 private:
  struct Layer {
    const MlaAttendOp* op = nullptr;  // null: another op
    const BoundSlot* kv_b = nullptr;
    DType type = DType::kF32;
    Buffer keys;    // [heads][kv_lora][nope_dim]
    Buffer values;  // [heads][value_dim][kv_lora]; empty: used where they lie
  };
  void fill(Layer& layer, int64_t head, float* rows) const;

  const KernelTable& kernels_;
  std::vector<Layer> layers_;  // by op of the plan
};

}  // namespace tessera::cpu
