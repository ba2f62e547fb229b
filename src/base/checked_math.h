// Overflow-checked arithmetic on sizes and offsets that come from files.
#pragma once

#include <cstdint>
#include <optional>

namespace tessera {

[[nodiscard]] inline std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

[[nodiscard]] inline std::optional<uint64_t> checked_multiply(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// True when [offset, offset + size) lies inside [0, total).
[[nodiscard]] inline bool range_fits(uint64_t offset, uint64_t size, uint64_t total) {
  return offset <= total && size <= total - offset;
}

// Rounds up to a multiple of step (> 0).
[[nodiscard]] constexpr uint64_t round_up(uint64_t value, uint64_t step) {
  return (value + step - 1) / step * step;
}
[[nodiscard]] constexpr int64_t ceil_divide(int64_t value, int64_t step) {
  return (value + step - 1) / step;
}

}  // namespace tessera
