#include "backend/cpu/cpu_streams.h"

#include <cmath>
#include <cstring>

namespace tessera::cpu {

void run_mix_streams(const CpuStep& step, const MixStreamsOp& op) {
  const int64_t width = op.input.width / op.streams;
  const auto mix_row = [&](int64_t t) {
    const float* in = step.data(op.input) + t * step.stride(op.input);
    const float* coefficients = step.data(op.coefficients) + t * step.stride(op.coefficients);
    float* out = step.data(op.output) + t * step.stride(op.output);
    std::memcpy(out, in, static_cast<size_t>(op.input.width) * sizeof(float));
    for (int64_t i = 0; i < op.streams; ++i) {
      float* stream = out + i * width;
      if (op.kind == MixStreamsOp::Kind::kPredict) {
        for (int64_t j = 0; j < op.streams; ++j)
          step.kernels.add_scaled(stream, in + j * width, coefficients[i * op.streams + j], width);
      } else {
        const float* actual = step.data(op.actual) + t * step.stride(op.actual);
        step.kernels.add_scaled(stream, actual, 1.0f + coefficients[i], width);
        step.kernels.add_scaled(stream, in + op.active * width, -(1.0f + coefficients[i]), width);
      }
    }
  };
  step.for_rows(step.rows(op.input), op.streams * op.input.width, [&](int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t) mix_row(t);
  });
}

void run_match_magnitude(const CpuStep& step, const MatchMagnitudeOp& op) {
  const int64_t width = op.x.width / op.streams;
  const auto mean_square = [&](const float* x) {
    float total = 0;
    FloatDotArgs args;  // a row times itself
    args.weights = reinterpret_cast<const std::byte*>(x);
    args.rows = 1;
    args.columns = width;
    args.x = x;
    args.tokens = 1;
    args.out = &total;
    step.kernels.plain[static_cast<size_t>(DType::kF32)].float_dot(args);
    return static_cast<double>(total) / static_cast<double>(width);
  };
  step.for_rows(step.rows(op.x), 2 * op.x.width, [&](int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t) {
      float* x = step.data(op.x) + t * step.stride(op.x);
      const double target = mean_square(x);
      for (int64_t i = 1; i < op.streams; ++i) {
        float* stream = x + i * width;
        const double factor = std::sqrt(target) / std::sqrt(std::max(mean_square(stream), op.eps));
        step.kernels.scale(stream, width, static_cast<float>(factor));
      }
    }
  });
}

void run_scale_columns(const CpuStep& step, const ScaleColumnsOp& op, const BoundWeights& weights) {
  ActivateArgs args;  // the factors are an `up` that is the same for every row
  args.gate = step.data(op.input);
  args.gate_stride = step.stride(op.input);
  args.up = weights.at(op.scale).values.data();
  args.output = step.data(op.output);
  args.output_stride = step.stride(op.output);
  args.width = op.input.width;
  args.activation = Activation::kIdentity;
  step.for_rows(step.rows(op.input), op.input.width,
                [&](int64_t first, int64_t last) { step.kernels.activate(args, first, last); });
}

}  // namespace tessera::cpu
