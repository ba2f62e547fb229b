// Blocks with a fixed state: short convolution, delta rule, state spaces, the WKV recurrence, and the per-layer input (which has none).
#include "plan/plan_builder.h"

namespace tessera {
namespace {

Slice project(PlanBuilder& builder, const std::string& name, Slice input) {
  const Slice output = builder.value(name + ".o", builder.spec().hidden);
  builder.emit(LinearOp{input, output, {builder.part(name + ".o")}});
  return output;
}

Slice convolve(PlanBuilder& builder, const std::string& name, Slice input, int64_t kernel,
               Activation activation) {
  const PlanBuilder::StatePlace state = builder.next_state();
  const Slice output = builder.value(name + ".conv", input.width);
  builder.emit(CausalConvOp{input, output, builder.weight(name + ".conv.weight"),
                            builder.weight(name + ".conv.bias"), kernel, activation, state.group,
                            state.layer});
  return output;
}

}  // namespace

Slice emit_block(PlanBuilder& builder, const std::string& name, const ShortConvSpec& conv,
                 const BlockInput& input) {
  const int64_t hidden = builder.spec().hidden;
  const Slice bcx = builder.value(name + ".bcx", 3 * hidden);
  builder.emit(LinearOp{input.x, bcx, {builder.part(name + ".in")}});
  const Slice b{bcx.value, 0, hidden};
  const Slice c{bcx.value, hidden, hidden};
  const Slice x{bcx.value, 2 * hidden, hidden};
  builder.emit(ActivateOp{b, x, x, Activation::kIdentity});
  const Slice mixed = convolve(builder, name, x, conv.kernel, Activation::kIdentity);
  builder.emit(ActivateOp{c, mixed, mixed, Activation::kIdentity});
  return project(builder, name, mixed);
}

Slice emit_block(PlanBuilder& builder, const std::string& name, const DeltaNetSpec& delta,
                 const BlockInput& input) {
  const int64_t k = delta.key_heads * delta.key_dim;
  const int64_t v = delta.value_heads * delta.value_dim;
  const Slice all = builder.value(name + ".qkvzba", 2 * k + 2 * v + 2 * delta.value_heads);
  LinearOp linear{input.x, all, {}};
  for (const char* part : {".q", ".k", ".v", ".z", ".b", ".a"})
    linear.parts.push_back(builder.part(name + part));
  builder.emit(std::move(linear));
  const Slice mixed =
      convolve(builder, name, Slice{all.value, 0, 2 * k + v}, delta.kernel, Activation::kSilu);
  const PlanBuilder::StatePlace state = builder.next_state();
  const Slice z{all.value, 2 * k + v, v};
  DeltaRuleOp rule;
  rule.q = Slice{mixed.value, 0, k};
  rule.k = Slice{mixed.value, k, k};
  rule.v = Slice{mixed.value, 2 * k, v};
  rule.b = Slice{all.value, 2 * k + 2 * v, delta.value_heads};
  rule.a = Slice{all.value, 2 * k + 2 * v + delta.value_heads, delta.value_heads};
  rule.output = builder.value(name + ".rule", v);
  rule.decay = builder.weight(name + ".decay");
  rule.dt_bias = builder.weight(name + ".dt_bias");
  rule.key_heads = delta.key_heads;
  rule.value_heads = delta.value_heads;
  rule.key_dim = delta.key_dim;
  rule.value_dim = delta.value_dim;
  rule.head_map = delta.head_map;
  rule.group = state.group;
  rule.layer = state.layer;
  builder.emit(rule);
  builder.norm(name + ".o_norm", delta.norm, rule.output, rule.output);
  builder.emit(ActivateOp{z, rule.output, rule.output, Activation::kSilu});
  return project(builder, name, rule.output);
}

Slice emit_block(PlanBuilder& builder, const std::string& name, const MambaSpec& mamba,
                 const BlockInput& input) {
  const Slice xz = builder.value(name + ".xz", 2 * mamba.inner);
  builder.emit(LinearOp{input.x, xz, {builder.part(name + ".in")}});
  const Slice z{xz.value, mamba.inner, mamba.inner};
  const Slice x = convolve(builder, name, Slice{xz.value, 0, mamba.inner}, mamba.kernel, Activation::kSilu);
  const Slice parameters = builder.value(name + ".parameters", mamba.dt_rank + 2 * mamba.state);
  builder.emit(LinearOp{x, parameters, {builder.part(name + ".x_proj")}});
  const Slice rank{parameters.value, 0, mamba.dt_rank};
  const Slice b{parameters.value, mamba.dt_rank, mamba.state};
  const Slice c{parameters.value, mamba.dt_rank + mamba.state, mamba.state};
  if (mamba.parameter_norm) {
    builder.norm(name + ".dt_norm", *mamba.parameter_norm, rank, rank);
    builder.norm(name + ".b_norm", *mamba.parameter_norm, b, b);
    builder.norm(name + ".c_norm", *mamba.parameter_norm, c, c);
  }
  const Slice dt = builder.value(name + ".dt", mamba.inner);
  builder.emit(LinearOp{rank, dt, {builder.part(name + ".dt_proj")}});
  const PlanBuilder::StatePlace state = builder.next_state();
  const Slice y = builder.value(name + ".scan", mamba.inner);
  builder.emit(SelectiveScanOp{x, dt, b, c, y, builder.weight(name + ".decay"), builder.weight(name + ".d"),
                               state.group, state.layer});
  builder.emit(ActivateOp{z, y, y, Activation::kSilu});
  return project(builder, name, y);
}

Slice emit_block(PlanBuilder& builder, const std::string& name, const Mamba2Spec& mamba,
                 const BlockInput& input) {
  const int64_t inner = mamba.inner();
  const int64_t bc = mamba.groups * mamba.state;
  const Slice all = builder.value(name + ".zxbcdt", 2 * inner + 2 * bc + mamba.heads);
  builder.emit(LinearOp{input.x, all, {builder.part(name + ".in")}});
  int64_t begin = 0;
  const auto section = [&](int64_t width, double scale) {
    const Slice slice{all.value, begin, width};
    begin += width;
    if (scale != 1.0) builder.emit(CombineOp{slice, {}, 1, scale, -1, slice});
    return slice;
  };
  const Slice z = section(inner, mamba.z_scale);
  (void)section(inner, mamba.x_scale);
  (void)section(bc, mamba.b_scale);
  (void)section(bc, mamba.c_scale);
  const Slice dt = section(mamba.heads, mamba.dt_scale);
  const Slice mixed =
      convolve(builder, name, Slice{all.value, inner, inner + 2 * bc}, mamba.kernel, Activation::kSilu);
  const PlanBuilder::StatePlace state = builder.next_state();
  HeadScanOp scan;
  scan.x = Slice{mixed.value, 0, inner};
  scan.b = Slice{mixed.value, inner, bc};
  scan.c = Slice{mixed.value, inner + bc, bc};
  scan.dt = dt;
  scan.output = builder.value(name + ".scan", inner);
  scan.decay = builder.weight(name + ".decay");
  scan.dt_bias = builder.weight(name + ".dt_bias");
  scan.d = builder.weight(name + ".d");
  scan.heads = mamba.heads;
  scan.head_dim = mamba.head_dim;
  scan.states = mamba.state;
  scan.groups = mamba.groups;
  scan.dt_min = mamba.dt_min;
  scan.dt_max = mamba.dt_max;
  scan.group = state.group;
  scan.layer = state.layer;
  builder.emit(scan);
  const Slice y = scan.output;
  if (mamba.gated_norm == GatedNorm::kNormFirst) builder.norm(name + ".o_norm", mamba.norm, y, y);
  builder.emit(ActivateOp{z, y, y, Activation::kSilu});
  if (mamba.gated_norm == GatedNorm::kGateFirst) builder.norm(name + ".o_norm", mamba.norm, y, y);
  return project(builder, name, y);
}

Slice emit_block(PlanBuilder& builder, const std::string& name, const RwkvTimeSpec& rwkv,
                 const BlockInput& input) {
  const int64_t hidden = builder.spec().hidden;
  const PlanBuilder::StatePlace shift = builder.next_state();
  TokenShiftOp mix{input.x, {}, {}, shift.group, shift.layer};
  for (const char* part : {".mix_k", ".mix_v", ".mix_r"}) {
    mix.mixes.push_back(builder.weight(name + part));
    mix.outputs.push_back(builder.value(name + part, hidden));
  }
  const std::vector<Slice> mixed = mix.outputs;
  builder.emit(std::move(mix));
  const Slice k = builder.value(name + ".k", rwkv.width);
  const Slice v = builder.value(name + ".v", rwkv.width);
  const Slice r = builder.value(name + ".r", rwkv.width);
  builder.emit(LinearOp{mixed[0], k, {builder.part(name + ".k")}});
  builder.emit(LinearOp{mixed[1], v, {builder.part(name + ".v")}});
  builder.emit(LinearOp{mixed[2], r, {builder.part(name + ".r")}});
  const PlanBuilder::StatePlace state = builder.next_state();
  const Slice y = builder.value(name + ".wkv", rwkv.width);
  builder.emit(WkvOp{k, v, y, builder.weight(name + ".decay"), builder.weight(name + ".first"), state.group,
                     state.layer});
  builder.emit(ActivateOp{r, y, y, Activation::kSigmoid});
  return project(builder, name, y);
}

Slice emit_block(PlanBuilder& builder, const std::string& name, const RwkvChannelSpec& rwkv,
                 const BlockInput& input) {
  const int64_t hidden = builder.spec().hidden;
  const PlanBuilder::StatePlace shift = builder.next_state();
  TokenShiftOp mix{input.x, {}, {}, shift.group, shift.layer};
  for (const char* part : {".mix_k", ".mix_r"}) {
    mix.mixes.push_back(builder.weight(name + part));
    mix.outputs.push_back(builder.value(name + part, hidden));
  }
  const std::vector<Slice> mixed = mix.outputs;
  builder.emit(std::move(mix));
  const Slice up = builder.value(name + ".up", rwkv.width);
  const Slice r = builder.value(name + ".r", hidden);
  builder.emit(LinearOp{mixed[0], up, {builder.part(name + ".up")}});
  builder.emit(LinearOp{mixed[1], r, {builder.part(name + ".r")}});
  builder.emit(ActivateOp{up, {}, up, Activation::kReluSquared});
  const Slice output = builder.value(name + ".down", hidden);
  builder.emit(LinearOp{up, output, {builder.part(name + ".down")}});
  builder.emit(ActivateOp{r, output, output, Activation::kSigmoid});
  return output;
}

Slice emit_block(PlanBuilder& builder, const std::string& name, const PerLayerInputSpec& input_spec,
                 const BlockInput& input) {
  const Slice gate = builder.value(name + ".gate", input_spec.width);
  builder.emit(LinearOp{input.x, gate, {builder.part(name + ".gate")}});
  builder.emit(ActivateOp{gate, builder.per_layer_input(), gate, input_spec.activation});
  const Slice output = builder.value(name + ".projection", builder.spec().hidden);
  builder.emit(LinearOp{gate, output, {builder.part(name + ".projection")}});
  return output;
}

}  // namespace tessera
