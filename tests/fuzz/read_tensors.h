// What a fuzz target does with a checkpoint that was accepted: touches all bytes it promised.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "checkpoint/checkpoint.h"
#include "formats/format_info.h"

namespace tessera {

inline uint64_t read_tensors(const Checkpoint& checkpoint, size_t file_size) {
  CHECK(checkpoint.total_bytes() <= file_size, "{} bytes of tensors in {}", checkpoint.total_bytes(),
        file_size);
  uint64_t sum = 0;
  for (const TensorEntry& entry : checkpoint.tensors()) {
    CHECK(checkpoint.find(entry.name) == &entry, "{}", entry.name);
    for (const std::byte byte : entry.bytes) sum += std::to_integer<uint64_t>(byte);
    const Weight matrix = matrix_view(entry);
    if (entry.bytes.empty()) continue;
    std::vector<float> values(static_cast<size_t>(matrix.columns));
    for (int64_t row = 0; row < std::min<int64_t>(matrix.rows, 4); ++row)
      decode_row(matrix, row, 0, matrix.columns, values.data());
    decode_row(matrix, matrix.rows - 1, 0, matrix.columns, values.data());
  }
  return sum;
}

}  // namespace tessera
