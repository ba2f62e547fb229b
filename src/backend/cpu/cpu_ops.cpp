#include "backend/cpu/cpu_ops.h"

#include <cstring>

#include "formats/format_info.h"

namespace tessera::cpu {
namespace {

const float* vector_of(const BoundWeights& weights, WeightId id) {
  return id < 0 ? nullptr : weights.at(id).values.data();
}

float factor_of(const BoundWeights& weights, double constant, WeightId slot) {
  return static_cast<float>(slot < 0 ? constant : constant * weights.at(slot).values[0]);
}

void decode_table_row(const KernelTable& kernels, const BoundSlot& table, int64_t row, int64_t width,
                      float* out) {
  const Weight* part = table.parts.data();
  while (row >= part->rows) row -= (part++)->rows;
  const FormatKernels& format = kernels.format(part->format);
  if (format.decode != nullptr)
    format.decode(part->planes[0].row(row), width, out);
  else
    decode_row(*part, row, 0, width, out);
}

}  // namespace

void run_embed(const CpuStep& step, const EmbedOp& op, const BoundWeights& weights) {
  float* out = step.data(op.output);
  const int64_t stride = step.stride(op.output);
  const int64_t width = op.output.width;
  const bool given = op.source == EmbedSource::kIdsOrEmbeddings && !step.input.embeddings.empty();
  step.for_rows(step.tokens, width, [&](int64_t first, int64_t last) {
    for (int64_t token = first; token < last; ++token) {
      float* row = out + token * stride;
      if (given) {
        std::memcpy(row, step.input.embeddings.data() + token * width,
                    static_cast<size_t>(width) * sizeof(float));
        continue;
      }
      decode_table_row(step.kernels, weights.at(op.table), step.input.tokens[static_cast<size_t>(token)],
                       width, row);
      if (op.scale != 1.0f) step.kernels.scale(row, width, op.scale);
    }
  });
}

void run_position_embed(const CpuStep& step, const PositionEmbedOp& op, const BoundWeights& weights,
                        float* row) {
  float* x = step.data(op.x);
  for (int64_t token = 0; token < step.tokens; ++token) {
    decode_table_row(step.kernels, weights.at(op.table),
                     step.input.positions[static_cast<size_t>(token)] + op.offset, op.x.width, row);
    step.kernels.add(x + token * step.stride(op.x), row, op.x.width);
  }
}

void run_clamp(const CpuStep& step, const ClampOp& op) {
  const ClampArgs args{step.data(op.input),    step.stride(op.input), step.data(op.output),
                       step.stride(op.output), op.input.width,        static_cast<float>(op.limit)};
  step.for_rows(step.rows(op.input), op.input.width,
                [&](int64_t first, int64_t last) { step.kernels.clamp(args, first, last); });
}

void run_sparsify(const CpuStep& step, const SparsifyOp& op) {
  const SparsifyArgs args{step.data(op.input),    step.stride(op.input), step.data(op.output),
                          step.stride(op.output), op.input.width,        static_cast<float>(op.deviations)};
  step.for_rows(step.rows(op.input), op.input.width,
                [&](int64_t first, int64_t last) { step.kernels.sparsify(args, first, last); });
}

void run_sigmoid_gate(const CpuStep& step, const SigmoidGateOp& op) {
  const SigmoidGateArgs args{step.data(op.x),      step.stride(op.x),         step.data(op.gate),
                             step.stride(op.gate), step.data(op.output),      step.stride(op.output),
                             op.x.width,           op.x.width / op.gate.width};
  step.for_rows(step.rows(op.x), 4 * op.x.width,
                [&](int64_t first, int64_t last) { step.kernels.sigmoid_gate(args, first, last); });
}

void run_norm(const CpuStep& step, const NormOp& op, const BoundWeights& weights) {
  const NormArgs args{step.data(op.input),
                      step.stride(op.input),
                      step.data(op.output),
                      step.stride(op.output),
                      op.input.width,
                      op.group,
                      op.kind,
                      static_cast<float>(op.eps),
                      vector_of(weights, op.gain),
                      vector_of(weights, op.bias),
                      op.gain_per_row};
  step.for_rows(step.rows(op.input), op.input.width,
                [&](int64_t first, int64_t last) { step.kernels.norm(args, first, last); });
}

void run_rope(const CpuStep& step, const RopeOp& op, const RopeTables& tables) {
  const RopeSpec& spec = step.plan.ropes[static_cast<size_t>(op.rope)];
  const RopeArgs args{step.data(op.x) + op.head_offset,
                      step.stride(op.x),
                      op.heads,
                      op.head_dim,
                      spec.dim,
                      spec.layout,
                      tables.cos(op.rope),
                      tables.sin(op.rope)};
  step.for_rows(step.tokens, op.heads * spec.dim,
                [&](int64_t first, int64_t last) { step.kernels.rope(args, first, last); });
}

void run_activate(const CpuStep& step, const ActivateOp& op) {
  ActivateArgs args;
  args.gate = step.data(op.gate);
  args.gate_stride = step.stride(op.gate);
  if (op.up.present()) {
    args.up = step.data(op.up);
    args.up_stride = step.stride(op.up);
  }
  args.output = step.data(op.output);
  args.output_stride = step.stride(op.output);
  args.width = op.gate.width;
  args.activation = op.activation;
  step.for_rows(step.rows(op.gate), 4 * op.gate.width,
                [&](int64_t first, int64_t last) { step.kernels.activate(args, first, last); });
}

void run_combine(const CpuStep& step, const CombineOp& op, const BoundWeights& weights, CombineInput* terms) {
  CombineArgs args;
  if (op.residual.present()) {
    args.residual = step.data(op.residual);
    args.residual_stride = step.stride(op.residual);
  }
  for (size_t i = 0; i < op.terms.size(); ++i)
    terms[i] = {step.data(op.terms[i].value), step.stride(op.terms[i].value),
                factor_of(weights, op.terms[i].factor, op.terms[i].factor_slot)};
  args.terms = terms;
  args.term_count = static_cast<int64_t>(op.terms.size());
  args.alpha = static_cast<float>(op.alpha);
  args.beta = factor_of(weights, op.beta, op.beta_slot);
  args.output = step.data(op.output);
  args.output_stride = step.stride(op.output);
  args.width = op.output.width;
  step.for_rows(step.rows(op.output), op.output.width,
                [&](int64_t first, int64_t last) { step.kernels.combine(args, first, last); });
}

void run_gather_rows(const CpuStep& step, const GatherRowsOp& op) {
  const float* in = step.data(op.input);
  float* out = step.data(op.output);
  for (int64_t r = 0; r < step.outputs; ++r)
    std::memcpy(out + r * step.stride(op.output),
                in + step.input.output_rows[static_cast<size_t>(r)] * step.stride(op.input),
                static_cast<size_t>(op.input.width) * sizeof(float));
}

void run_scale_logits(const CpuStep& step, const ScaleLogitsOp& op) {
  const ScaleLogitsArgs args{step.data(op.x), step.stride(op.x), op.x.width, static_cast<float>(op.scale),
                             static_cast<float>(op.softcap)};
  step.for_rows(step.rows(op.x), op.x.width,
                [&](int64_t first, int64_t last) { step.kernels.scale_logits(args, first, last); });
}

}  // namespace tessera::cpu
