// State of the CPU backend. A page of a group holds, for each layer, keys transposed and values (AttendArgs says how), in
// float32 or float16; a slot holds the recurrent values of every layer in float32. Memory is zero and untouched until used.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "backend/cpu/zeroed_memory.h"

namespace tessera::cpu {

// Where the layers of a group lie, in bytes.
struct StateLayout {
  std::vector<uint64_t> layers;  // of each layer inside a page (or slot)
  uint64_t bytes = 0;            // of a page (or slot)
  bool paged = true;
  int64_t slots = 0;  // positions per page, padded
};
[[nodiscard]] StateLayout state_layout(const StateGroup& group, const CompileOptions& options);

class CpuState : public StateStorage {
 public:
  [[nodiscard]] static Result<std::unique_ptr<CpuState>> create(const Plan& plan,
                                                                const CompileOptions& options,
                                                                const StateCapacity& capacity);

  [[nodiscard]] const StateCapacity& capacity() const override { return capacity_; }
  [[nodiscard]] uint64_t bytes() const override;
  Status copy_page(int group, int32_t from, int32_t to) override;
  Status copy_slot(int32_t from, int32_t to) override;
  Status clear_slot(int32_t slot) override;

  // A layer's part of page 0 (or slot 0); the next page lies layout(group).bytes further.
  [[nodiscard]] std::byte* layer(int group, int layer) const;
  [[nodiscard]] const StateLayout& layout(int group) const {
    return groups_[static_cast<size_t>(group)].layout;
  }

 private:
  struct Group {
    StateLayout layout;
    ZeroedMemory memory;
  };
  std::vector<Group> groups_;
  StateCapacity capacity_;
};

}  // namespace tessera::cpu
