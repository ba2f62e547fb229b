// State of the reference backend: float32 pages [layer][position][head][k then v], and slots of recurrent
// values.
#pragma once

#include <vector>

#include "backend/backend.h"

namespace tessera {

class ReferenceState : public StateStorage {
 public:
  ReferenceState(const Plan& plan, const CompileOptions& options, StateCapacity capacity);

  [[nodiscard]] const StateCapacity& capacity() const override { return capacity_; }
  [[nodiscard]] uint64_t bytes() const override;
  Status copy_page(int group, int32_t from, int32_t to) override;
  Status copy_slot(int32_t from, int32_t to) override;
  Status clear_slot(int32_t slot) override;

  // The k (or, behind it, v) values of one head at a slot of a page: [k_width + v_width].
  [[nodiscard]] float* head(int group, int layer, int64_t page, int64_t position, int64_t head);
  // A block's recurrent values: [values].
  [[nodiscard]] float* fixed(int group, int layer, int64_t slot);

 private:
  struct Group {
    int64_t stride = 0;           // floats per page or slot
    std::vector<int64_t> layers;  // where a layer begins inside it
    std::vector<float> values;
    bool paged = true;
  };
  const Plan& plan_;
  int64_t page_positions_;
  StateCapacity capacity_;
  std::vector<Group> groups_;
};

}  // namespace tessera
