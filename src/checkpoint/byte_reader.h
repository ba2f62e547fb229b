// Reads numbers and strings off a span of bytes, checking every length against what is left. Errors name the
// file and the offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace tessera {

class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string what) : bytes_(bytes), what_(std::move(what)) {}

  [[nodiscard]] uint64_t offset() const { return offset_; }
  [[nodiscard]] uint64_t left() const { return bytes_.size() - offset_; }
  [[nodiscard]] const std::string& what() const { return what_; }

  // A little-endian number; `thing` is what it is, for the message.
  template <class T>
  [[nodiscard]] Result<T> number(std::string_view thing) {
    if (left() < sizeof(T))
      return fail(ErrorCode::kBadData, "{}: {} at byte {}: expected {} bytes, found {}", what_, thing,
                  offset_, sizeof(T), left());
    T value;
    std::memcpy(&value, bytes_.data() + offset_, sizeof(T));
    offset_ += sizeof(T);
    return value;
  }

  // A string of a 64-bit length and that many bytes; a view into the span.
  [[nodiscard]] Result<std::string_view> string(std::string_view thing);

 private:
  std::span<const std::byte> bytes_;
  std::string what_;
  uint64_t offset_ = 0;
};

}  // namespace tessera
