// Weight: a view of one matrix [rows, columns] in some Format, up to three planes (codes, scales, biases or
// zero points). Rows are addressed through a stride, so a row range, every second row or one expert of a
// stack is a view and never a copy. Buffer owns bytes; whoever makes a Weight keeps its bytes alive (a mapped
// file or a Buffer held by the model).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "tensor/format.h"

namespace tessera {

struct Plane {
  const std::byte* data = nullptr;
  int64_t row_stride = 0;  // bytes from one row to the next

  [[nodiscard]] const std::byte* row(int64_t r) const { return data + r * row_stride; }
};

struct Weight {
  Format format;
  int64_t rows = 0;
  int64_t columns = 0;
  std::array<Plane, 3> planes;

  // Rows first, first + step, ..., count of them. CHECKs the range.
  [[nodiscard]] Weight slice_rows(int64_t first, int64_t count, int64_t step = 1) const;
};

// Owned bytes, aligned to 64, contents undefined until written.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t bytes);
  [[nodiscard]] std::byte* data() { return data_.get(); }
  [[nodiscard]] const std::byte* data() const { return data_.get(); }
  [[nodiscard]] size_t size() const { return size_; }
  template <class T>
  [[nodiscard]] std::span<T> as() {
    return {reinterpret_cast<T*>(data_.get()), size_ / sizeof(T)};
  }
  template <class T>
  [[nodiscard]] std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data_.get()), size_ / sizeof(T)};
  }

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte[], Free> data_;
  size_t size_ = 0;
};

}  // namespace tessera
