// The tensors of a checkpoint while companions (scales, zero points, biases) are folded into the tensors they belong to: found
// by name, taken out once used, and the errors that all readers of companions share.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "tensor/weight.h"

namespace tessera {

class CompanionTable {
 public:
  CompanionTable(std::vector<TensorEntry>& tensors, const std::vector<std::string>& files,
                 std::vector<std::shared_ptr<const void>>& owners);

  [[nodiscard]] TensorEntry* find(std::string_view name);  // nullptr when absent or taken
  // The tensor, or an error that names `owner`, the tensor which needs it.
  [[nodiscard]] Result<TensorEntry*> require(const std::string& name, const TensorEntry& owner);
  // Names of tensors that end so, without the ending.
  [[nodiscard]] std::vector<std::string> stems(std::string_view ending) const;
  [[nodiscard]] const std::vector<TensorEntry>& tensors() const { return tensors_; }

  // Taken out of the list at the end; find() no longer sees it.
  void take(const TensorEntry& entry);
  // Gives a tensor another name at the end.
  void rename(TensorEntry& entry, std::string name);
  // Bytes that live as long as the checkpoint.
  [[nodiscard]] std::byte* allocate(uint64_t bytes);

  // "file: tensor name: expected ..., found ...".
  [[nodiscard]] Failure bad(const TensorEntry& entry, std::string_view expected,
                            std::string_view found) const;
  [[nodiscard]] Status check_shape(const TensorEntry& entry, const Shape& expected) const;
  [[nodiscard]] Status check_element(const TensorEntry& entry, std::initializer_list<DType> allowed) const;

  // Removes what was taken, applies the names, sorts.
  void finish();

 private:
  std::vector<TensorEntry>& tensors_;
  const std::vector<std::string>& files_;
  std::vector<std::shared_ptr<const void>>& owners_;
  std::map<std::string, size_t, std::less<>> index_;
  std::vector<bool> taken_;
  std::vector<std::string> names_;  // given ones
};

// The shape with another last dimension.
[[nodiscard]] Shape with_columns(const Shape& shape, int64_t columns);

}  // namespace tessera
