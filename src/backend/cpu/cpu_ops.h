// The ops that work row by row: embedding, norms, rotary embedding, activations, sums.
#pragma once

#include "backend/cpu/cpu_step.h"
#include "backend/cpu/rope_tables.h"

namespace tessera::cpu {

void run_embed(const CpuStep& step, const EmbedOp& op, const BoundWeights& weights);
// `row` holds op.x.width floats of scratch.
void run_position_embed(const CpuStep& step, const PositionEmbedOp& op, const BoundWeights& weights,
                        float* row);
void run_clamp(const CpuStep& step, const ClampOp& op);
void run_sparsify(const CpuStep& step, const SparsifyOp& op);
void run_sigmoid_gate(const CpuStep& step, const SigmoidGateOp& op);
void run_norm(const CpuStep& step, const NormOp& op, const BoundWeights& weights);
void run_rope(const CpuStep& step, const RopeOp& op, const RopeTables& tables);
void run_activate(const CpuStep& step, const ActivateOp& op);
// `terms` holds op.terms.size() entries of scratch.
void run_combine(const CpuStep& step, const CombineOp& op, const BoundWeights& weights, CombineInput* terms);
void run_gather_rows(const CpuStep& step, const GatherRowsOp& op);
void run_scale_logits(const CpuStep& step, const ScaleLogitsOp& op);

}  // namespace tessera::cpu
