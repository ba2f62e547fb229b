// SlotList: how the blocks of a spec state the weights they need, with shapes, where those are known (model/blocks/*.cpp).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "model/slots.h"

namespace tessera {

class SlotList {
 public:
  explicit SlotList(const ModelSpec& spec) : spec_(spec) {}

  [[nodiscard]] int64_t hidden() const { return spec_.hidden; }
  void set_layer(int layer) { layer_ = layer; }  // -1: outside the layers

  void add(const std::string& stem, const std::string& suffix, SlotRole role, SlotGroup group, Shape shape,
           Presence presence = Presence::kRequired);
  // A float32 vector without suffix: "attn.sinks".
  void add_vector(const std::string& stem, Shape shape, Presence presence = Presence::kRequired);
  // <stem>.weight [out, in] and <stem>.bias [out].
  void add_matrix(const std::string& stem, SlotGroup group, int64_t out, int64_t in,
                  Presence bias = Presence::kAbsent);
  // One matrix per expert: <stem>.weight [experts, out, in] and <stem>.bias [experts, out].
  void add_experts(const std::string& stem, int64_t experts, int64_t out, int64_t in,
                   Presence bias = Presence::kAbsent);
  // `row` is the width of what is normalised; the group is the norm's, or the whole row.
  void add_norm(const std::string& stem, const NormSpec& norm, int64_t row);

  [[nodiscard]] std::vector<Slot> take() { return std::move(slots_); }

 private:
  const ModelSpec& spec_;
  int layer_ = -1;
  std::vector<Slot> slots_;
  std::set<std::string> names_;
};

}  // namespace tessera
