// Slots, state and validity of every kind of block.
#include "model/blocks/block.h"

#include "model/slot_list.h"
#include "model/spec.h"
#include "model/state_list.h"

namespace tessera {
namespace {

struct SlotVisitor {
  SlotList& slots;
  const std::string& name;

  void operator()(const AttentionSpec& a) const {
    const int64_t hidden = slots.hidden();
    const int64_t q = a.heads * a.head_dim;
    const int64_t k = a.kv_heads * a.head_dim;
    const int64_t v = a.kv_heads * a.value_dim;
    const bool own_kv = a.kv_source_layer < 0;
    slots.add_matrix(name + ".q", SlotGroup::kQkv, q, hidden, a.qkv_bias);
    if (own_kv) slots.add_matrix(name + ".k", SlotGroup::kQkv, k, hidden, a.qkv_bias);
    if (own_kv && a.value_source == ValueSource::kProjection)
      slots.add_matrix(name + ".v", SlotGroup::kQkv, v, hidden, a.qkv_bias);
    if (a.output_gate != OutputGate::kNone)
      slots.add_matrix(name + ".output_gate", SlotGroup::kQkv, a.heads * a.value_dim, hidden, a.qkv_bias);
    if (a.sinks) slots.add_vector(name + ".sinks", {a.heads});
    slots.add_matrix(name + ".o", SlotGroup::kO, hidden, a.heads * a.value_dim, a.o_bias);
    if (a.q_norm) slots.add_norm(name + ".q_norm", *a.q_norm, q);
    if (a.k_norm && own_kv) slots.add_norm(name + ".k_norm", *a.k_norm, k);
    if (a.v_norm && own_kv) slots.add_norm(name + ".v_norm", *a.v_norm, v);
  }

  void operator()(const MlaSpec& m) const {
    const int64_t hidden = slots.hidden();
    const int64_t q = m.heads * (m.nope_dim + m.rope_dim);
    if (m.q_lora > 0) {
      slots.add_matrix(name + ".q_a", SlotGroup::kQkv, m.q_lora, hidden, m.bias);
      slots.add_norm(name + ".q_a_norm", m.latent_norm, m.q_lora);
      slots.add_matrix(name + ".q_b", SlotGroup::kQkv, q, m.q_lora);
    } else {
      slots.add_matrix(name + ".q", SlotGroup::kQkv, q, hidden);
    }
    slots.add_matrix(name + ".kv_a", SlotGroup::kQkv, m.kv_lora + m.rope_dim, hidden, m.bias);
    slots.add_norm(name + ".kv_a_norm", m.latent_norm, m.kv_lora);
    // Per head: the key's rows, then the value's.
    slots.add_matrix(name + ".kv_b", SlotGroup::kQkv, m.heads * (m.nope_dim + m.value_dim), m.kv_lora);
    slots.add_matrix(name + ".o", SlotGroup::kO, hidden, m.heads * m.value_dim, m.bias);
  }

  void operator()(const DeltaNetSpec& d) const {
    const int64_t hidden = slots.hidden();
    const int64_t k = d.key_heads * d.key_dim;
    const int64_t v = d.value_heads * d.value_dim;
    slots.add_matrix(name + ".q", SlotGroup::kQkv, k, hidden);
    slots.add_matrix(name + ".k", SlotGroup::kQkv, k, hidden);
    slots.add_matrix(name + ".v", SlotGroup::kQkv, v, hidden);
    slots.add_matrix(name + ".z", SlotGroup::kQkv, v, hidden);
    slots.add_matrix(name + ".b", SlotGroup::kOther, d.value_heads, hidden);
    slots.add_matrix(name + ".a", SlotGroup::kOther, d.value_heads, hidden);
    slots.add(name + ".conv", ".weight", SlotRole::kVector, SlotGroup::kOther, {2 * k + v, d.kernel});
    slots.add_vector(name + ".decay", {d.value_heads});
    slots.add_vector(name + ".dt_bias", {d.value_heads});
    slots.add_norm(name + ".o_norm", d.norm, v);
    slots.add_matrix(name + ".o", SlotGroup::kO, hidden, v);
  }

  void operator()(const ShortConvSpec& s) const {
    const int64_t hidden = slots.hidden();
    slots.add_matrix(name + ".in", SlotGroup::kQkv, 3 * hidden, hidden, s.bias);
    slots.add(name + ".conv", ".weight", SlotRole::kVector, SlotGroup::kOther, {hidden, s.kernel});
    slots.add(name + ".conv", ".bias", SlotRole::kVector, SlotGroup::kOther, {hidden}, s.bias);
    slots.add_matrix(name + ".o", SlotGroup::kO, hidden, hidden, s.bias);
  }

  void operator()(const MambaSpec& m) const {
    slots.add_matrix(name + ".in", SlotGroup::kQkv, 2 * m.inner, slots.hidden(), m.proj_bias);
    slots.add(name + ".conv", ".weight", SlotRole::kVector, SlotGroup::kOther, {m.inner, m.kernel});
    slots.add(name + ".conv", ".bias", SlotRole::kVector, SlotGroup::kOther, {m.inner}, m.conv_bias);
    slots.add_matrix(name + ".x_proj", SlotGroup::kOther, m.dt_rank + 2 * m.state, m.inner);
    slots.add_matrix(name + ".dt_proj", SlotGroup::kOther, m.inner, m.dt_rank, Presence::kRequired);
    if (m.parameter_norm) {
      slots.add_norm(name + ".dt_norm", *m.parameter_norm, m.dt_rank);
      slots.add_norm(name + ".b_norm", *m.parameter_norm, m.state);
      slots.add_norm(name + ".c_norm", *m.parameter_norm, m.state);
    }
    slots.add_vector(name + ".decay", {m.inner, m.state});
    slots.add_vector(name + ".d", {m.inner});
    slots.add_matrix(name + ".o", SlotGroup::kO, slots.hidden(), m.inner, m.proj_bias);
  }

  void operator()(const Mamba2Spec& m) const {
    const int64_t conv = m.inner() + 2 * m.groups * m.state;
    slots.add_matrix(name + ".in", SlotGroup::kQkv, m.inner() + conv + m.heads, slots.hidden(), m.proj_bias);
    slots.add(name + ".conv", ".weight", SlotRole::kVector, SlotGroup::kOther, {conv, m.kernel});
    slots.add(name + ".conv", ".bias", SlotRole::kVector, SlotGroup::kOther, {conv}, m.conv_bias);
    slots.add_vector(name + ".decay", {m.heads});
    slots.add_vector(name + ".dt_bias", {m.heads});
    slots.add_vector(name + ".d", {m.heads});
    if (m.gated_norm != GatedNorm::kGateOnly) slots.add_norm(name + ".o_norm", m.norm, m.inner());
    slots.add_matrix(name + ".o", SlotGroup::kO, slots.hidden(), m.inner(), m.proj_bias);
  }

  void operator()(const RwkvTimeSpec& r) const {
    const int64_t hidden = slots.hidden();
    for (const char* part : {".mix_k", ".mix_v", ".mix_r"}) slots.add_vector(name + part, {hidden});
    for (const char* part : {".k", ".v", ".r"})
      slots.add_matrix(name + part, SlotGroup::kQkv, r.width, hidden);
    slots.add_vector(name + ".decay", {r.width});
    slots.add_vector(name + ".first", {r.width});
    slots.add_matrix(name + ".o", SlotGroup::kO, hidden, r.width);
  }

  void operator()(const RwkvChannelSpec& r) const {
    const int64_t hidden = slots.hidden();
    for (const char* part : {".mix_k", ".mix_r"}) slots.add_vector(name + part, {hidden});
    slots.add_matrix(name + ".up", SlotGroup::kGateUp, r.width, hidden);
    slots.add_matrix(name + ".r", SlotGroup::kGateUp, hidden, hidden);
    slots.add_matrix(name + ".down", SlotGroup::kDown, hidden, r.width);
  }

  void operator()(const FfnSpec& f) const {
    const int64_t hidden = slots.hidden();
    if (f.gated) slots.add_matrix(name + ".gate", SlotGroup::kGateUp, f.width, hidden, f.up_bias);
    slots.add_matrix(name + ".up", SlotGroup::kGateUp, f.width, hidden, f.up_bias);
    if (f.token_gate) slots.add_matrix(name + ".token_gate", SlotGroup::kOther, 1, hidden);
    slots.add_matrix(name + ".down", SlotGroup::kDown, hidden, f.width, f.down_bias);
  }

  void operator()(const MoeSpec& m) const {
    const int64_t hidden = slots.hidden();
    if (m.router_norm) slots.add_norm(name + ".router_norm", *m.router_norm, hidden);
    slots.add_matrix(name + ".router", SlotGroup::kOther, m.experts, hidden, m.router_bias);
    slots.add_vector(name + ".selection_bias", {m.experts}, m.selection_bias);
    if (m.per_expert_scale) slots.add_vector(name + ".expert_scale", {m.experts});
    if (m.gated) slots.add_experts(name + ".gate", m.experts, m.width, hidden, m.expert_bias);
    slots.add_experts(name + ".up", m.experts, m.width, hidden, m.expert_bias);
    slots.add_experts(name + ".down", m.experts, hidden, m.width, m.expert_bias);
  }

  void operator()(const PerLayerInputSpec& p) const {
    slots.add_matrix(name + ".gate", SlotGroup::kOther, p.width, slots.hidden());
    slots.add_matrix(name + ".projection", SlotGroup::kOther, slots.hidden(), p.width);
  }

  void operator()(const LowRankSpec& l) const {
    slots.add_matrix(name + ".left", SlotGroup::kOther, l.rank, slots.hidden());
    slots.add_matrix(name + ".right", SlotGroup::kOther, slots.hidden(), l.rank);
  }

  void operator()(const IdentitySpec&) const {}
};

struct StateVisitor {
  StateList& state;

  void operator()(const AttentionSpec& a) const {
    if (a.kv_source_layer < 0) state.add_paged(a.kv_heads, a.head_dim, a.value_dim, a.window);
  }
  void operator()(const MlaSpec& m) const { state.add_paged(1, m.kv_lora + m.rope_dim, 0, 0); }
  void operator()(const DeltaNetSpec& d) const {
    state.add_fixed((2 * d.key_heads * d.key_dim + d.value_heads * d.value_dim) * (d.kernel - 1));
    state.add_fixed(d.value_heads * d.key_dim * d.value_dim);
  }
  void operator()(const ShortConvSpec& s) const { state.add_fixed(hidden * (s.kernel - 1)); }
  void operator()(const MambaSpec& m) const {
    state.add_fixed(m.inner * (m.kernel - 1));
    state.add_fixed(m.inner * m.state);
  }
  void operator()(const Mamba2Spec& m) const {
    state.add_fixed((m.inner() + 2 * m.groups * m.state) * (m.kernel - 1));
    state.add_fixed(m.inner() * m.state);
  }
  void operator()(const RwkvTimeSpec& r) const {
    state.add_fixed(hidden);
    state.add_fixed(3 * r.width);
  }
  void operator()(const RwkvChannelSpec&) const { state.add_fixed(hidden); }
  void operator()(const FfnSpec&) const {}
  void operator()(const MoeSpec&) const {}
  void operator()(const PerLayerInputSpec&) const {}
  void operator()(const LowRankSpec&) const {}
  void operator()(const IdentitySpec&) const {}

  int64_t hidden;
};

struct Validator {
  const ModelSpec& spec;
  const std::string& where;

  template <class... Args>
  [[nodiscard]] Failure bad(fmt::format_string<Args...> format, Args&&... args) const {
    return fail(ErrorCode::kBadData, "{}: {}", where, fmt::format(format, std::forward<Args>(args)...));
  }

  Status operator()(const AttentionSpec& a) const {
    if (a.heads < 1 || a.kv_heads < 1 || a.head_dim < 1 || a.value_dim < 1)
      return bad("head counts and widths must be positive");
    if (a.heads % a.kv_heads != 0)
      return bad("num_attention_heads {} is not a multiple of num_key_value_heads {}", a.heads, a.kv_heads);
    if (a.rope) {
      const RopeSpec& rope = spec.ropes.at(static_cast<size_t>(*a.rope));
      if (rope.dim > a.head_dim)
        return bad("{} rotated values do not fit the head width {}", rope.dim, a.head_dim);
    }
    if (a.value_source == ValueSource::kKey && a.head_dim != a.value_dim)
      return bad("values are keys, but their widths differ");
    if (a.scale <= 0) return bad("the softmax scale must be positive");
    return {};
  }
  Status operator()(const MlaSpec& m) const {
    if (m.heads < 1 || m.kv_lora < 1 || m.nope_dim < 1 || m.rope_dim < 2 || m.rope_dim % 2 != 0 ||
        m.value_dim < 1)
      return bad("kv_lora_rank and head widths must be positive, qk_rope_head_dim even");
    return {};
  }
  Status operator()(const DeltaNetSpec& d) const {
    if (d.key_heads < 1 || d.value_heads % d.key_heads != 0)
      return bad("linear_num_value_heads {} is not a multiple of linear_num_key_heads {}", d.value_heads,
                 d.key_heads);
    if (d.kernel < 1) return bad("the convolution's width must be positive");
    return {};
  }
  Status operator()(const ShortConvSpec& s) const {
    return s.kernel < 1 ? Status(bad("the convolution's width must be positive")) : Status();
  }
  Status operator()(const MambaSpec& m) const {
    if (m.inner < 1 || m.state < 1 || m.kernel < 1 || m.dt_rank < 1)
      return bad("sizes of the state space must be positive");
    return {};
  }
  Status operator()(const Mamba2Spec& m) const {
    if (m.heads < 1 || m.head_dim < 1 || m.state < 1 || m.kernel < 1)
      return bad("sizes of the state space must be positive");
    if (m.groups < 1 || m.heads % m.groups != 0)
      return bad("{} heads are not a multiple of {} groups", m.heads, m.groups);
    if (m.norm.group > 0 && m.inner() % m.norm.group != 0)
      return bad("{} values do not divide into norm groups", m.inner());
    return {};
  }
  Status operator()(const RwkvTimeSpec& r) const {
    return r.width < 1 ? Status(bad("the width must be positive")) : Status();
  }
  Status operator()(const RwkvChannelSpec& r) const {
    return r.width < 1 ? Status(bad("the width must be positive")) : Status();
  }
  Status operator()(const FfnSpec& f) const {
    return f.width < 1 ? Status(bad("intermediate_size must be positive")) : Status();
  }
  Status operator()(const MoeSpec& m) const {
    if (m.width < 1) return bad("the experts' width must be positive");
    if (m.top_k < 1 || m.top_k > m.experts) return bad("{} experts per token of {}", m.top_k, m.experts);
    if (m.groups < 1 || m.experts % m.groups != 0)
      return bad("{} experts do not divide into {} groups", m.experts, m.groups);
    if (m.top_groups < 1 || m.top_groups > m.groups || m.top_k > m.experts / m.groups * m.top_groups)
      return bad("{} experts per token do not fit {} groups of {}", m.top_k, m.top_groups,
                 m.experts / m.groups);
    return {};
  }
  Status operator()(const LowRankSpec& l) const {
    return l.rank < 1 ? Status(bad("the rank must be positive")) : Status();
  }
  Status operator()(const IdentitySpec&) const { return {}; }
  Status operator()(const PerLayerInputSpec& p) const {
    if (p.width != spec.embedding.per_layer_width)
      return bad("a per-layer input of {} values, but the embedding has {}", p.width,
                 spec.embedding.per_layer_width);
    return {};
  }
};

}  // namespace

void add_slots(SlotList& slots, const std::string& name, const Block& block) {
  std::visit(SlotVisitor{slots, name}, block);
}

void add_state(StateList& state, const Block& block, int64_t hidden) {
  std::visit(StateVisitor{state, hidden}, block);
}

Status validate_block(const ModelSpec& spec, const Block& block, const std::string& where) {
  return std::visit(Validator{spec, where}, block);
}

}  // namespace tessera
