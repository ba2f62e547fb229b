// Starts a GGUF file of version 3: metadata, tensor list, and tensors placed in declared order, each at a
// multiple of general.alignment.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "checkpoint/checkpoint.h"
#include "checkpoint/tensor_file_writer.h"

namespace tessera {

// Values keep the type they were read with; for one without, the writer takes u32, i32 or f32, or the 64-bit
// type where the number needs it. Refused: formats without a GGUF number, more than four dimensions, a zero
// dimension, names that repeat or are longer than the 63 bytes that other readers of the format take.
[[nodiscard]] Result<std::unique_ptr<TensorFileWriter>> create_gguf_file(
    const std::string& path, std::span<const TensorDeclaration> tensors, const GgufMetadata& metadata);

}  // namespace tessera
