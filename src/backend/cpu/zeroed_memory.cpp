#include "backend/cpu/zeroed_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

namespace tessera::cpu {

Result<ZeroedMemory> ZeroedMemory::allocate(uint64_t bytes, const char* what) {
  ZeroedMemory memory;
  if (bytes == 0) return memory;
  if (bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    return fail(ErrorCode::kResourceLimit, "{}: {} bytes are more than can be addressed", what, bytes);
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    return fail(ErrorCode::kResourceLimit, "{}: cannot allocate {} bytes: {}", what, bytes,
                std::strerror(errno));
  memory.data_ = static_cast<std::byte*>(data);
  memory.size_ = bytes;
  return memory;
}

ZeroedMemory::ZeroedMemory(ZeroedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

ZeroedMemory& ZeroedMemory::operator=(ZeroedMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

ZeroedMemory::~ZeroedMemory() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

}  // namespace tessera::cpu
