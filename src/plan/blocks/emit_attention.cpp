// q, k, v from one Linear; norms of heads; rotation; Attend; output projection.
#include "plan/plan_builder.h"

namespace tessera {

Slice emit_block(PlanBuilder& builder, const std::string& name, const AttentionSpec& attention, Slice input) {
  const int64_t q_width = attention.heads * attention.head_dim;
  const int64_t k_width = attention.kv_heads * attention.head_dim;
  const int64_t v_width = attention.kv_heads * attention.value_dim;
  const Slice qkv = builder.value(name + ".qkv", q_width + k_width + v_width);
  builder.emit(LinearOp{
      input, qkv, {builder.part(name + ".q"), builder.part(name + ".k"), builder.part(name + ".v")}});
  const Slice q{qkv.value, 0, q_width};
  const Slice k{qkv.value, q_width, k_width};
  const Slice v{qkv.value, q_width + k_width, v_width};
  if (attention.q_norm) builder.norm(name + ".q_norm", *attention.q_norm, q, q);
  if (attention.k_norm) builder.norm(name + ".k_norm", *attention.k_norm, k, k);
  if (attention.rope) {
    builder.emit(RopeOp{q, attention.heads, attention.head_dim, *attention.rope});
    builder.emit(RopeOp{k, attention.kv_heads, attention.head_dim, *attention.rope});
  }
  const PlanBuilder::StatePlace state = builder.next_state();
  AttendOp attend;
  attend.q = q;
  attend.k = k;
  attend.v = v;
  attend.output = builder.value(name + ".mix", attention.heads * attention.value_dim);
  attend.heads = attention.heads;
  attend.kv_heads = attention.kv_heads;
  attend.head_dim = attention.head_dim;
  attend.value_dim = attention.value_dim;
  attend.scale = attention.scale;
  attend.softcap = attention.softcap;
  attend.window = attention.window;
  attend.causal = attention.causal;
  attend.query_scale_beta = attention.query_scale_beta;
  attend.query_scale_context = attention.query_scale_context;
  attend.group = state.group;
  attend.layer = state.layer;
  builder.emit(attend);
  const Slice output = builder.value(name + ".o", builder.spec().hidden);
  builder.emit(LinearOp{attend.output, output, {builder.part(name + ".o")}});
  return output;
}

}  // namespace tessera
