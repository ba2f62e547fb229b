#include "model/slot_list.h"

#include "base/check.h"

namespace tessera {

void SlotList::add(const std::string& stem, const std::string& suffix, SlotRole role, SlotGroup group,
                   Shape shape, Presence presence) {
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

void SlotList::add_vector(const std::string& stem, Shape shape, Presence presence) {
  add(stem, "", SlotRole::kVector, SlotGroup::kOther, shape, presence);
}

void SlotList::add_matrix(const std::string& stem, SlotGroup group, int64_t out, int64_t in, Presence bias) {
  add(stem, ".weight", SlotRole::kMatrix, group, {out, in});
  add(stem, ".bias", SlotRole::kVector, SlotGroup::kOther, {out}, bias);
}

void SlotList::add_experts(const std::string& stem, int64_t experts, int64_t out, int64_t in, Presence bias) {
  add(stem, ".weight", SlotRole::kExperts, SlotGroup::kExperts, {experts, out, in});
  add(stem, ".bias", SlotRole::kVector, SlotGroup::kOther, {experts, out}, bias);
}

void SlotList::add_norm(const std::string& stem, const NormSpec& norm, int64_t row) {
  const bool whole = norm.group == 0 || norm.gain_span == NormSpec::Gain::kPerRow;
  const int64_t width = whole ? row : norm.group;
  add(stem, ".weight", SlotRole::kVector, SlotGroup::kOther, {width}, norm.gain);
  add(stem, ".bias", SlotRole::kVector, SlotGroup::kOther, {width}, norm.bias);
}

}  // namespace tessera
