// Binding: every slot of a spec is filled exactly once from a checkpoint, through a dialect, with shapes
// checked; every tensor left over matches an ignore rule or is an error.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "model/dialect.h"
#include "model/slots.h"
#include "tensor/weight.h"

namespace tessera {

struct BoundSlot {
  Slot slot;
  std::string source;         // where it came from, for inspect ("model.layers.0.self_attn.q_proj.weight")
  std::vector<Weight> parts;  // kMatrix, kTable: their rows joined are the slot
  std::vector<float> values;  // kVector, in float32

  [[nodiscard]] int64_t rows() const { return slot.shape.rows(); }
  [[nodiscard]] int64_t columns() const { return slot.shape.columns(); }
};

class BoundWeights {
 public:
  [[nodiscard]] const BoundSlot* find(
      std::string_view name) const;  // nullptr: an if-present slot that is not there
  [[nodiscard]] const std::vector<BoundSlot>& slots() const { return slots_; }
  [[nodiscard]] int index(std::string_view name) const;  // -1 when not there
  [[nodiscard]] const BoundSlot& at(int index) const { return slots_[static_cast<size_t>(index)]; }
  // Bytes of all weights as they lie in memory.
  [[nodiscard]] uint64_t bytes() const;
  [[nodiscard]] const std::vector<std::string>& ignored() const {
    return ignored_;
  }  // tensors left over by rule

  int add(BoundSlot slot);
  // Other parts with the same rows in all.
  void replace_parts(int index, std::vector<Weight> parts) {
    slots_[static_cast<size_t>(index)].parts = std::move(parts);
  }
  void own(Buffer buffer) { buffers_.push_back(std::move(buffer)); }
  void ignore(std::string name) { ignored_.push_back(std::move(name)); }
  void hold(std::shared_ptr<const Checkpoint> checkpoint) { checkpoint_ = std::move(checkpoint); }

 private:
  std::vector<BoundSlot> slots_;
  std::map<std::string, int, std::less<>> index_;
  std::vector<Buffer> buffers_;  // what had to be copied (transposes)
  std::vector<std::string> ignored_;
  std::shared_ptr<const Checkpoint> checkpoint_;
};

// `own` is the architecture's dialect, `common` the file family's. Fills rope divisors of the spec where the
// file stores them.
[[nodiscard]] Result<BoundWeights> bind_weights(ModelSpec& spec, std::shared_ptr<const Checkpoint> checkpoint,
                                                const Dialect& own, const Dialect& common);

}  // namespace tessera
