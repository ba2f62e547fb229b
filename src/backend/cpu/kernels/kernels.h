// The functions of one instruction set, gathered into a KernelTable by kernel_table.cpp.
#pragma once

#include "backend/cpu/kernel_table.h"

namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE {

// pointwise.cpp
void norm(const NormArgs& args, int64_t first, int64_t last);
void rope(const RopeArgs& args, int64_t first, int64_t last);
void activate(const ActivateArgs& args, int64_t first, int64_t last);
void clamp(const ClampArgs& args, int64_t first, int64_t last);
void sparsify(const SparsifyArgs& args, int64_t first, int64_t last);
void sigmoid_gate(const SigmoidGateArgs& args, int64_t first, int64_t last);
void combine(const CombineArgs& args, int64_t first, int64_t last);
void scale_logits(const ScaleLogitsArgs& args, int64_t first, int64_t last);
void scale(float* values, int64_t count, float factor);
void add(float* values, const float* others, int64_t count);

void add_scaled(float* values, const float* others, float factor, int64_t count);
void limit_gated(float* gate, float* up, float limit, float offset, int64_t count);

// recurrent.cpp, delta.cpp, blocked.cpp, latent.cpp
void add_recurrent_kernels(KernelTable& table);
void add_delta_kernels(KernelTable& table);
void add_blocked_kernels(KernelTable& table);
void add_latent_kernels(KernelTable& table);

// attend.cpp
void store_kv(const AttendArgs& args, const AttendSequence& sequence, int64_t kv_head, int64_t first,
              int64_t last);
void attend(const AttendArgs& args, const AttendSequence& sequence, int64_t kv_head, int64_t first,
            int64_t last, float* scratch);

// float_dot.cpp
void add_float_kernels(KernelTable& table);
// int8_dot.cpp, int8_super.cpp, int8_tile.cpp
void add_int8_dot_kernels(KernelTable& table);
void add_int8_super_kernels(KernelTable& table);
void add_int8_tile_kernels(KernelTable& table);
// bf16_dot.cpp; does nothing without bfloat16 instructions
void add_bf16_kernels(KernelTable& table);

}  // namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE
