// The walk over a spec that lists its slots; what a block needs stands in model/blocks/block.cpp.
#include "model/slots.h"

#include "model/slot_list.h"

namespace tessera {
namespace {

void add_embedding(SlotList& slots, const ModelSpec& spec) {
  const EmbeddingSpec& embedding = spec.embedding;
  const int64_t rows = embedding.rows > 0 ? embedding.rows : spec.vocabulary;
  const int64_t width = embedding.width > 0 ? embedding.width : spec.hidden;
  slots.add("embed", ".weight", SlotRole::kTable, SlotGroup::kEmbed, {rows, width});
  if (embedding.width > 0) slots.add_matrix("embed.projection", SlotGroup::kOther, spec.hidden, width);
  if (embedding.learned_positions > 0)
    slots.add("embed.positions", ".weight", SlotRole::kTable, SlotGroup::kOther,
              {embedding.learned_positions, spec.hidden});
  if (embedding.norm) slots.add_norm("embed.norm", *embedding.norm, spec.hidden);
  if (embedding.per_layer_width > 0) {
    const int64_t all = static_cast<int64_t>(spec.layers.size()) * embedding.per_layer_width;
    slots.add("embed.per_layer", ".weight", SlotRole::kTable, SlotGroup::kEmbed,
              {embedding.per_layer_rows, all});
    slots.add_matrix("embed.per_layer_projection", SlotGroup::kOther, all, spec.hidden);
    slots.add_norm("embed.per_layer_norm", embedding.per_layer_norm, all);
  }
}

void add_sublayer(SlotList& slots, const ModelSpec& spec, const Sublayer& sublayer) {
  if (sublayer.pre) slots.add_norm(sublayer.name + ".norm", *sublayer.pre, spec.hidden);
  for (const Branch& branch : sublayer.branches) {
    if (branch.pre) slots.add_norm(branch.name + ".branch_norm", *branch.pre, spec.hidden);
    add_slots(slots, branch.name, branch.block);
    if (branch.post) slots.add_norm(branch.name + ".branch_post_norm", *branch.post, spec.hidden);
    if (branch.weight.slot) slots.add_vector(branch.name + ".branch_weight", {1});
  }
  if (sublayer.post) slots.add_norm(sublayer.name + ".post_norm", *sublayer.post, spec.hidden);
  if (sublayer.out) slots.add_norm(sublayer.name + ".out_norm", *sublayer.out, spec.hidden);
  if (sublayer.beta.slot) slots.add_vector(sublayer.name + ".scale", {1});
}

}  // namespace

void add_stream_ends(SlotList& slots, const ModelSpec& spec) {
  for (int64_t i = 1; i < spec.streams->count; ++i) {
    const std::string number = std::to_string(i - 1);
    slots.add_matrix("streams.projection" + number, SlotGroup::kOther, spec.hidden, spec.hidden);
    slots.add_matrix("streams.unprojection" + number, SlotGroup::kOther, spec.hidden, spec.hidden);
  }
}

void add_stream_layer(SlotList& slots, const ModelSpec& spec) {
  const StreamSpec& streams = *spec.streams;
  slots.add_norm("streams.router_norm", streams.router_norm, spec.hidden);
  slots.add_matrix("streams.router", SlotGroup::kOther, streams.count, spec.hidden);
  slots.add_matrix("streams.predict", SlotGroup::kOther, streams.count * streams.count, streams.count);
  slots.add_matrix("streams.correct", SlotGroup::kOther, streams.count, streams.count);
  if (streams.output_scale) slots.add_vector("streams.output_scale", {spec.hidden});
  add_slots(slots, "input", streams.input);
  slots.add_norm("input.post_norm", streams.input_post_norm, spec.hidden);
}

std::vector<Slot> model_slots(const ModelSpec& spec) {
  SlotList slots(spec);
  add_embedding(slots, spec);
  for (size_t i = 0; i < spec.ropes.size(); ++i) {
    const std::string name = i == 0 ? "rope" : "rope" + std::to_string(i);
    slots.add(name + ".divisors", ".weight", SlotRole::kVector, SlotGroup::kOther, {spec.ropes[i].dim / 2},
              Presence::kIfPresent);
    if (spec.ropes[i].factors_in_file())
      for (const char* list : {".short_factors", ".long_factors"})
        slots.add(name + list, ".weight", SlotRole::kVector, SlotGroup::kOther, {spec.ropes[i].dim / 2});
  }
  for (size_t layer = 0; layer < spec.layers.size(); ++layer) {
    slots.set_layer(static_cast<int>(layer));
    for (const Sublayer& sublayer : spec.layers[layer].sublayers) add_sublayer(slots, spec, sublayer);
    if (spec.streams) add_stream_layer(slots, spec);
  }
  slots.set_layer(-1);
  if (spec.streams) add_stream_ends(slots, spec);
  if (spec.final_norm) slots.add_norm("final_norm", *spec.final_norm, spec.hidden);
  const int64_t head_width = spec.head.width > 0 ? spec.head.width : spec.hidden;
  if (spec.head.width > 0) slots.add_matrix("head.projection", SlotGroup::kOther, head_width, spec.hidden);
  if (spec.head.tie == HeadTie::kUntied)
    slots.add("head", ".weight", SlotRole::kMatrix, SlotGroup::kHead, {spec.vocabulary, head_width},
              Presence::kIfPresent);
  slots.add("head", ".bias", SlotRole::kVector, SlotGroup::kOther, {spec.vocabulary}, spec.head.bias);
  return slots.take();
}

}  // namespace tessera
