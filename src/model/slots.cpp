// The slots of every block, in one visitor: what a block needs is listed where its shapes are known.
#include "model/slots.h"

#include <set>

#include "base/check.h"

namespace tessera {
namespace {

class SlotList {
 public:
  explicit SlotList(const ModelSpec& spec) : spec_(spec) {}

  std::vector<Slot> build() {
    const EmbeddingSpec& embedding = spec_.embedding;
    const int64_t table_width = embedding.width > 0 ? embedding.width : spec_.hidden;
    add("embed", ".weight", SlotRole::kTable, SlotGroup::kEmbed,
        {embedding.rows > 0 ? embedding.rows : spec_.vocabulary, table_width});
    if (embedding.width > 0)
      add_matrix("embed.projection", SlotGroup::kOther, spec_.hidden, table_width, Presence::kAbsent);
    if (embedding.learned_positions > 0)
      add("embed.positions", ".weight", SlotRole::kTable, SlotGroup::kEmbed,
          {embedding.learned_positions, spec_.hidden});
    if (spec_.embedding.norm) add_norm("embed.norm", *spec_.embedding.norm, spec_.hidden, spec_.hidden);
    for (size_t i = 0; i < spec_.ropes.size(); ++i) {
      const std::string name = i == 0 ? "rope" : "rope" + std::to_string(i);
      add(name + ".divisors", ".weight", SlotRole::kVector, SlotGroup::kOther, {spec_.ropes[i].dim / 2},
          Presence::kIfPresent);
    }
    for (layer_ = 0; layer_ < static_cast<int>(spec_.layers.size()); ++layer_)
      for (const Sublayer& sublayer : spec_.layers[static_cast<size_t>(layer_)].sublayers)
        add_sublayer(sublayer);
    layer_ = -1;
    if (spec_.final_norm) add_norm("final_norm", *spec_.final_norm, spec_.hidden, spec_.hidden);
    const int64_t head_width = spec_.head.width > 0 ? spec_.head.width : spec_.hidden;
    if (spec_.head.width > 0)
      add_matrix("head.projection", SlotGroup::kOther, head_width, spec_.hidden, Presence::kAbsent);
    if (spec_.head.tie == HeadTie::kUntied)
      add("head", ".weight", SlotRole::kMatrix, SlotGroup::kHead, {spec_.vocabulary, head_width},
          Presence::kIfPresent);
    if (spec_.head.bias != Presence::kAbsent)
      add("head", ".bias", SlotRole::kVector, SlotGroup::kOther, {spec_.vocabulary}, spec_.head.bias);
    return std::move(slots_);
  }

 private:
  void add(const std::string& stem, const std::string& suffix, SlotRole role, SlotGroup group, Shape shape,
           Presence presence = Presence::kRequired) {
    if (presence == Presence::kAbsent) return;
    Slot slot;
    slot.pattern = layer_ < 0 ? stem : "layers.*." + stem;
    slot.name = (layer_ < 0 ? stem : "layers." + std::to_string(layer_) + "." + stem) + suffix;
    slot.suffix = suffix;
    slot.layer = layer_;
    slot.role = role;
    slot.group = group;
    slot.shape = shape;
    slot.presence = presence;
    CHECK(names_.insert(slot.name).second, "slot {} twice", slot.name);
    slots_.push_back(std::move(slot));
  }

  // `row` is the width of what is normalised, `group` the width normalised together.
  void add_norm(const std::string& stem, const NormSpec& norm, int64_t row, int64_t group) {
    const int64_t width = norm.gain_span == NormSpec::Gain::kPerRow ? row : group;
    add(stem, ".weight", SlotRole::kVector, SlotGroup::kOther, {width}, norm.gain);
    add(stem, ".bias", SlotRole::kVector, SlotGroup::kOther, {width}, norm.bias);
  }

  void add_matrix(const std::string& stem, SlotGroup group, int64_t out, int64_t in, Presence bias) {
    add(stem, ".weight", SlotRole::kMatrix, group, {out, in});
    add(stem, ".bias", SlotRole::kVector, SlotGroup::kOther, {out}, bias);
  }

  void add_sublayer(const Sublayer& sublayer) {
    if (sublayer.pre) add_norm(sublayer.name + ".norm", *sublayer.pre, spec_.hidden, spec_.hidden);
    for (const Branch& branch : sublayer.branches) {
      if (branch.pre) add_norm(branch.name + ".branch_norm", *branch.pre, spec_.hidden, spec_.hidden);
      std::visit([&](const auto& block) { add_block(branch.name, block); }, branch.block);
      if (branch.post) add_norm(branch.name + ".branch_post_norm", *branch.post, spec_.hidden, spec_.hidden);
      if (branch.weight.slot)
        add(branch.name + ".branch_weight", "", SlotRole::kVector, SlotGroup::kOther, {1});
    }
    if (sublayer.post) add_norm(sublayer.name + ".post_norm", *sublayer.post, spec_.hidden, spec_.hidden);
    if (sublayer.out) add_norm(sublayer.name + ".out_norm", *sublayer.out, spec_.hidden, spec_.hidden);
    if (sublayer.beta.slot) add(sublayer.name + ".scale", "", SlotRole::kVector, SlotGroup::kOther, {1});
  }

  void add_block(const std::string& name, const AttentionSpec& a) {
    add_matrix(name + ".q", SlotGroup::kQkv, a.heads * a.head_dim, spec_.hidden, a.qkv_bias);
    const bool own_kv = a.kv_source_layer < 0;
    const bool own_v = own_kv && a.value_source == ValueSource::kProjection;
    if (own_kv) add_matrix(name + ".k", SlotGroup::kQkv, a.kv_heads * a.head_dim, spec_.hidden, a.qkv_bias);
    if (own_v) add_matrix(name + ".v", SlotGroup::kQkv, a.kv_heads * a.value_dim, spec_.hidden, a.qkv_bias);
    if (a.output_gate != OutputGate::kNone)
      add_matrix(name + ".output_gate", SlotGroup::kQkv, a.heads * a.value_dim, spec_.hidden, a.qkv_bias);
    if (a.sinks) add(name + ".sinks", "", SlotRole::kVector, SlotGroup::kOther, {a.heads});
    add_matrix(name + ".o", SlotGroup::kO, spec_.hidden, a.heads * a.value_dim, a.o_bias);
    if (a.q_norm)
      add_norm(name + ".q_norm", *a.q_norm, a.heads * a.head_dim,
               a.q_norm->group == 0 ? a.heads * a.head_dim : a.head_dim);
    if (own_kv && a.v_norm)
      add_norm(name + ".v_norm", *a.v_norm, a.kv_heads * a.value_dim,
               a.v_norm->group == 0 ? a.kv_heads * a.value_dim : a.value_dim);
    if (own_kv && a.k_norm)
      add_norm(name + ".k_norm", *a.k_norm, a.kv_heads * a.head_dim,
               a.k_norm->group == 0 ? a.kv_heads * a.head_dim : a.head_dim);
  }

  void add_block(const std::string& name, const FfnSpec& f) {
    if (f.gated) add_matrix(name + ".gate", SlotGroup::kGateUp, f.width, spec_.hidden, f.up_bias);
    add_matrix(name + ".up", SlotGroup::kGateUp, f.width, spec_.hidden, f.up_bias);
    if (f.token_gate) add_matrix(name + ".token_gate", SlotGroup::kOther, 1, spec_.hidden, Presence::kAbsent);
    add_matrix(name + ".down", SlotGroup::kDown, spec_.hidden, f.width, f.down_bias);
  }

  const ModelSpec& spec_;
  int layer_ = -1;
  std::vector<Slot> slots_;
  std::set<std::string> names_;
};

}  // namespace

std::vector<Slot> model_slots(const ModelSpec& spec) {
  return SlotList(spec).build();
}

}  // namespace tessera
