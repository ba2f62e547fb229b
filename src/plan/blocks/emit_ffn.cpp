// gate and up from one Linear; activation; down.
#include "plan/plan_builder.h"

namespace tessera {

Slice emit_block(PlanBuilder& builder, const std::string& name, const FfnSpec& ffn, Slice input) {
  const Slice up = builder.value(name + ".up", ffn.gated ? 2 * ffn.width : ffn.width);
  LinearOp linear{input, up, {}};
  if (ffn.gated) linear.parts.push_back(builder.part(name + ".gate"));
  linear.parts.push_back(builder.part(name + ".up"));
  builder.emit(std::move(linear));
  const Slice act = builder.value(name + ".act", ffn.width);
  ActivateOp activate{Slice{up.value, 0, ffn.width}, {}, act, ffn.activation};
  if (ffn.gated) activate.up = Slice{up.value, ffn.width, ffn.width};
  builder.emit(activate);
  const Slice output = builder.value(name + ".down", builder.spec().hidden);
  builder.emit(LinearOp{act, output, {builder.part(name + ".down")}});
  return output;
}

}  // namespace tessera
