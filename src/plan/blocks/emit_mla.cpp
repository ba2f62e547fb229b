// Query (through its own latent or directly), the shared latent with its rotated key, attention, projection.
#include "plan/plan_builder.h"

namespace tessera {

Slice emit_block(PlanBuilder& builder, const std::string& name, const MlaSpec& mla, const BlockInput& input) {
  const int64_t head = mla.nope_dim + mla.rope_dim;
  const int64_t latent_width = mla.kv_lora + mla.rope_dim;
  LinearOp down{input.x,
                builder.value(name + ".a", (mla.q_lora > 0 ? mla.q_lora : mla.heads * head) + latent_width),
                {}};
  down.parts = {builder.part(name + (mla.q_lora > 0 ? ".q_a" : ".q")), builder.part(name + ".kv_a")};
  const ValueId a = down.output.value;
  const int64_t first = down.parts.front().rows;
  builder.emit(std::move(down));
  Slice q{a, 0, first};
  if (mla.q_lora > 0) {
    builder.norm(name + ".q_a_norm", mla.latent_norm, q, q);
    const Slice full = builder.value(name + ".q", mla.heads * head);
    builder.emit(LinearOp{q, full, {builder.part(name + ".q_b")}});
    q = full;
  }
  const Slice latent{a, first, mla.kv_lora};
  const Slice k_rope{a, first + mla.kv_lora, mla.rope_dim};
  builder.norm(name + ".kv_a_norm", mla.latent_norm, latent, latent);
  builder.emit(RopeOp{q, mla.heads, head, mla.rope, mla.nope_dim});
  builder.emit(RopeOp{k_rope, 1, mla.rope_dim, mla.rope, 0});
  const PlanBuilder::StatePlace state = builder.next_state();
  const Slice mix = builder.value(name + ".mix", mla.heads * mla.value_dim);
  builder.emit(MlaAttendOp{q, latent, k_rope, builder.weight(name + ".kv_b.weight"), mix, mla.heads,
                           mla.nope_dim, mla.rope_dim, mla.value_dim, mla.scale, state.group, state.layer});
  const Slice output = builder.value(name + ".o", builder.spec().hidden);
  builder.emit(LinearOp{mix, output, {builder.part(name + ".o")}});
  return output;
}

}  // namespace tessera
