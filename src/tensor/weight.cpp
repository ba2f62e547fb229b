#include "tensor/weight.h"

#include <cstdlib>

#include "base/check.h"
#include "base/checked_math.h"

namespace tessera {

Weight Weight::slice_rows(int64_t first, int64_t count, int64_t step) const {
  CHECK(first >= 0 && count >= 0 && step >= 1 && (count == 0 || first + (count - 1) * step < rows),
        "rows {} + {} x {} of {}", first, count, step, rows);
  Weight slice = *this;
  slice.rows = count;
  for (Plane& plane : slice.planes) {
    if (plane.data == nullptr) continue;
    plane.data += first * plane.row_stride;
    plane.row_stride *= step;
  }
  return slice;
}

Buffer::Buffer(size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(64, round_up(bytes, 64))));
  CHECK(data_ != nullptr, "out of memory: {} bytes", bytes);
}

void Buffer::Free::operator()(std::byte* data) const {
  std::free(data);
}

}  // namespace tessera
