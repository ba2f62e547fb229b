#include "tensor/shape.h"

#include <fmt/format.h>

#include "base/check.h"

namespace tessera {

Shape::Shape(std::span<const int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  CHECK(dims.size() <= kMaxRank, "rank {}", dims.size());
  for (size_t i = 0; i < dims.size(); ++i) dims_[i] = dims[i];
}

int64_t Shape::elements() const {
  int64_t product = 1;
  for (const int64_t dim : dims()) product *= dim;
  return product;
}

int64_t Shape::rows() const {
  int64_t product = 1;
  for (int axis = 0; axis + 1 < rank_; ++axis) product *= dims_[static_cast<size_t>(axis)];
  return product;
}

std::string Shape::to_string() const {
  return fmt::format("[{}]", fmt::join(dims(), ", "));
}

}  // namespace tessera
