// Reading GGUF, versions 2 and 3, little-endian; split sets.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "checkpoint/checkpoint.h"

namespace tessera {

// One file, or the first of a split set, whose other files lie beside it.
[[nodiscard]] Result<std::shared_ptr<const Checkpoint>> open_gguf_file(const std::string& path);

// One file that is no part of a split set.
[[nodiscard]] Result<std::shared_ptr<const Checkpoint>> read_gguf_memory(std::span<const std::byte> file,
                                                                         std::string name);

}  // namespace tessera
