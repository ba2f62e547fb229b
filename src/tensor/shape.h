// A shape of at most kMaxRank dimensions, outermost first (row-major), as safetensors and the formulas write
// it.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace tessera {

class Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims);  // CHECKs the rank: readers refuse larger ranks first

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int64_t operator[](int axis) const { return dims_[static_cast<size_t>(axis)]; }
  [[nodiscard]] std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  // Product of the dimensions (1 for rank 0). Readers check for overflow before they make a Shape.
  [[nodiscard]] int64_t elements() const;
  // The shape seen as a matrix: [product of all but the last, last]; [1, n] for rank 1.
  [[nodiscard]] int64_t rows() const;
  [[nodiscard]] int64_t columns() const { return rank_ == 0 ? 1 : dims_[static_cast<size_t>(rank_ - 1)]; }
  [[nodiscard]] std::string to_string() const;  // "[4096, 1024]"

  friend bool operator==(const Shape& a, const Shape& b) { return a.rank_ == b.rank_ && a.dims_ == b.dims_; }

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

}  // namespace tessera
