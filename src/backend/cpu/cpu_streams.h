// Ops on parallel streams of the hidden state, row by row.
#pragma once

#include "backend/cpu/cpu_step.h"

namespace tessera::cpu {

void run_mix_streams(const CpuStep& step, const MixStreamsOp& op);
void run_match_magnitude(const CpuStep& step, const MatchMagnitudeOp& op);
void run_scale_columns(const CpuStep& step, const ScaleColumnsOp& op, const BoundWeights& weights);

}  // namespace tessera::cpu
