// Starts a safetensors file: the header, padded so that the data begins at a multiple of 8, and tensors
// placed by falling element size, so that each one is aligned to its elements.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "checkpoint/tensor_file_writer.h"

namespace tessera {

// `metadata` becomes __metadata__ (left out when empty). Plain formats only; names must differ.
[[nodiscard]] Result<std::unique_ptr<TensorFileWriter>> create_safetensors_file(
    const std::string& path, std::span<const TensorDeclaration> tensors,
    const std::map<std::string, std::string>& metadata);

}  // namespace tessera
