// Memory that is zero and costs nothing until it is touched: state pages and the activation arena.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace tessera::cpu {

class ZeroedMemory {
 public:
  ZeroedMemory() = default;
  // kResourceLimit with `what` when the system does not give so many bytes.
  [[nodiscard]] static Result<ZeroedMemory> allocate(uint64_t bytes, const char* what);
  ZeroedMemory(ZeroedMemory&& other) noexcept;
  ZeroedMemory& operator=(ZeroedMemory&& other) noexcept;
  ZeroedMemory(const ZeroedMemory&) = delete;
  ZeroedMemory& operator=(const ZeroedMemory&) = delete;
  ~ZeroedMemory();

  [[nodiscard]] std::byte* data() const { return data_; }  // aligned to a page of the system
  [[nodiscard]] uint64_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace tessera::cpu
