// Router, choice, experts.
#include "plan/plan_builder.h"

namespace tessera {

Slice emit_block(PlanBuilder& builder, const std::string& name, const MoeSpec& moe, const BlockInput& input) {
  Slice routed = moe.router_input == RouterInput::kSublayer ? input.sublayer : input.x;
  if (moe.router_norm) routed = builder.norm(name + ".router_norm", *moe.router_norm, routed);
  if (moe.router_input_scale != 1.0) {
    const Slice scaled = builder.value(name + ".router_input", routed.width);
    builder.emit(CombineOp{routed, {}, 1, moe.router_input_scale, -1, scaled});
    routed = scaled;
  }
  const Slice logits = builder.value(name + ".logits", moe.experts);
  builder.emit(LinearOp{routed, logits, {builder.part(name + ".router")}});
  RouteOp route;
  route.logits = logits;
  route.output = builder.value(name + ".routes", 2 * moe.top_k);
  route.top_k = moe.top_k;
  route.score = moe.score;
  route.renormalise = moe.renormalise;
  route.renormalise_eps = moe.renormalise_eps;
  route.scale = moe.scale;
  route.groups = moe.groups;
  route.top_groups = moe.top_groups;
  route.group_score = moe.group_score;
  route.sparsemixer_threshold = moe.sparsemixer_threshold;
  route.selection_bias = builder.weight(name + ".selection_bias");
  route.expert_scale = builder.weight(name + ".expert_scale");
  builder.emit(route);
  ExpertsOp experts;
  experts.input = input.x;
  experts.routes = route.output;
  experts.output = builder.value(name + ".experts", builder.spec().hidden);
  experts.gate = builder.weight(name + ".gate.weight");
  experts.up = builder.weight(name + ".up.weight");
  experts.down = builder.weight(name + ".down.weight");
  experts.gate_bias = builder.weight(name + ".gate.bias");
  experts.up_bias = builder.weight(name + ".up.bias");
  experts.down_bias = builder.weight(name + ".down.bias");
  experts.experts = moe.experts;
  experts.top_k = moe.top_k;
  experts.width = moe.width;
  experts.activation = moe.activation;
  experts.limit = moe.limit;
  experts.up_offset = moe.up_offset;
  builder.emit(experts);
  return experts.output;
}

}  // namespace tessera
