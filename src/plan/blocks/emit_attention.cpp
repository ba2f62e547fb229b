// q, k, v (and the output gate) from one Linear; clamp; norms of heads and rotation in the block's order; Attend; gate; projection.
#include "model/alibi.h"
#include "plan/plan_builder.h"

namespace tessera {
namespace {

class AttentionEmitter {
 public:
  AttentionEmitter(PlanBuilder& builder, std::string name, const AttentionSpec& attention)
      : builder_(builder), name_(std::move(name)), a_(attention) {}

  Slice emit(Slice input) {
    project(input);
    if (a_.clip_place == ClipPlace::kProjected) clamp();
    if (a_.value_source == ValueSource::kKey && k_.present()) take_value_from_key();
    if (a_.norm_order == NormOrder::kBeforeRope) normalise();
    if (a_.clip_place == ClipPlace::kNormed) clamp();
    rotate();
    if (a_.norm_order == NormOrder::kAfterRope) normalise();
    const Slice mixed = attend();
    if (gate_.present()) builder_.emit(ActivateOp{gate_, mixed, mixed, Activation::kSigmoid});
    const Slice output = builder_.value(name_ + ".o", builder_.spec().hidden);
    builder_.emit(LinearOp{mixed, output, {builder_.part(name_ + ".o")}});
    return output;
  }

 private:
  void project(Slice input) {
    std::vector<std::pair<std::string, Slice*>> parts = {{".q", &q_}};
    if (a_.kv_source_layer < 0) {
      parts.emplace_back(".k", &k_);
      if (a_.value_source == ValueSource::kProjection) parts.emplace_back(".v", &v_);
    }
    if (a_.output_gate != OutputGate::kNone) parts.emplace_back(".output_gate", &gate_);
    LinearOp linear;
    int64_t width = 0;
    for (auto& [stem, slice] : parts) {
      linear.parts.push_back(builder_.part(name_ + stem));
      *slice = Slice{0, width, linear.parts.back().rows};
      width += slice->width;
    }
    linear.input = input;
    linear.output = builder_.value(name_ + ".qkv", width);
    for (auto& [stem, slice] : parts) slice->value = linear.output.value;
    clamped_ = Slice{linear.output.value, 0, width - gate_.width};
    builder_.emit(std::move(linear));
  }

  void clamp() {
    if (a_.clip > 0) builder_.emit(ClampOp{clamped_, clamped_, a_.clip});
  }

  void take_value_from_key() {
    v_ = builder_.value(name_ + ".v", k_.width);
    builder_.emit(CombineOp{k_, {}, 1, 1, -1, v_});
  }

  void normalise() {
    if (a_.q_norm) builder_.norm(name_ + ".q_norm", *a_.q_norm, q_, q_);
    if (!k_.present()) return;
    if (a_.k_norm) builder_.norm(name_ + ".k_norm", *a_.k_norm, k_, k_);
    if (a_.v_norm) builder_.norm(name_ + ".v_norm", *a_.v_norm, v_, v_);
  }

  void rotate() {
    if (!a_.rope) return;
    builder_.emit(RopeOp{q_, a_.heads, a_.head_dim, *a_.rope});
    if (k_.present()) builder_.emit(RopeOp{k_, a_.kv_heads, a_.head_dim, *a_.rope});
  }

  Slice attend() {
    const PlanBuilder::StatePlace state =
        a_.kv_source_layer < 0 ? builder_.next_state() : builder_.state_of(a_.kv_source_layer, 0);
    AttendOp attend;
    attend.q = q_;
    attend.k = k_;
    attend.v = v_;
    attend.output = builder_.value(name_ + ".mix", a_.heads * a_.value_dim);
    attend.heads = a_.heads;
    attend.kv_heads = a_.kv_heads;
    attend.head_dim = a_.head_dim;
    attend.value_dim = a_.value_dim;
    attend.scale = a_.scale;
    attend.softcap = a_.softcap;
    attend.window = a_.window;
    attend.causal = a_.causal;
    if (a_.sinks) attend.sinks = builder_.weight(name_ + ".sinks");
    if (a_.alibi != Alibi::kNone)
      attend.alibi_slopes = alibi_slopes(a_.heads, a_.alibi == Alibi::kBeforeScale ? a_.scale : 1.0);
    attend.query_scale_beta = a_.query_scale_beta;
    attend.query_scale_context = a_.query_scale_context;
    attend.group = state.group;
    attend.layer = state.layer;
    const Slice output = attend.output;
    builder_.emit(std::move(attend));
    return output;
  }

  PlanBuilder& builder_;
  std::string name_;
  const AttentionSpec& a_;
  Slice q_;
  Slice k_;
  Slice v_;
  Slice gate_;
  Slice clamped_;  // q, k and v side by side
};

}  // namespace

Slice emit_block(PlanBuilder& builder, const std::string& name, const AttentionSpec& attention,
                 const BlockInput& input) {
  return AttentionEmitter(builder, name, attention).emit(input.x);
}

}  // namespace tessera
