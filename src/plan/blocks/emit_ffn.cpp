// gate, up (and the token's gate) from one Linear; activation; down.
#include "plan/plan_builder.h"

namespace tessera {

Slice emit_block(PlanBuilder& builder, const std::string& name, const FfnSpec& ffn, const BlockInput& input) {
  LinearOp linear;
  linear.input = input.x;
  if (ffn.gated) linear.parts.push_back(builder.part(name + ".gate"));
  linear.parts.push_back(builder.part(name + ".up"));
  if (ffn.token_gate) linear.parts.push_back(builder.part(name + ".token_gate"));
  const int64_t width = ffn.gated ? 2 * ffn.width : ffn.width;
  linear.output = builder.value(name + ".up", ffn.token_gate ? width + 1 : width);
  const ValueId up = linear.output.value;
  builder.emit(std::move(linear));
  const Slice gate{up, 0, ffn.width};
  if (ffn.gate_scale != 1.0) builder.emit(CombineOp{gate, {}, 1, ffn.gate_scale, -1, gate});
  if (ffn.sparsity_deviations != 0.0) builder.emit(SparsifyOp{gate, gate, ffn.sparsity_deviations});
  const Slice act = builder.value(name + ".act", ffn.width);
  ActivateOp activate{gate, {}, act, ffn.activation};
  if (ffn.gated) activate.up = Slice{up, ffn.width, ffn.width};
  builder.emit(activate);
  const Slice output = builder.value(name + ".down", builder.spec().hidden);
  builder.emit(LinearOp{act, output, {builder.part(name + ".down")}});
  if (ffn.token_gate) builder.emit(SigmoidGateOp{output, Slice{up, width, 1}, output});
  return output;
}

}  // namespace tessera
