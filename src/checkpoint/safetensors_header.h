// The JSON parts of safetensors checkpoints, read as a stream of events: a header may list a hundred thousand
// tensors, and names must not repeat, which a parsed object would hide.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensor/format.h"
#include "tensor/shape.h"

namespace tessera {

struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  uint64_t begin = 0;  // bytes from the end of the header
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // sorted by place; contiguous, sizes equal to shape x element size
  std::map<std::string, std::string> metadata;  // __metadata__
};

// `text` is the header, `data_size` the number of bytes after it, `what` the file's name for messages.
[[nodiscard]] Result<SafetensorsHeader> parse_safetensors_header(std::string_view text, uint64_t data_size,
                                                                 std::string_view what);

struct IndexedTensor {
  std::string name;
  std::string file;
};

// The weight_map of a model.safetensors.index.json, sorted by file, then by name.
[[nodiscard]] Result<std::vector<IndexedTensor>> parse_weight_map(std::string_view text,
                                                                  std::string_view what);

}  // namespace tessera
