// Reading safetensors: one file in memory or mapped, a folder as the ecosystem publishes it, sharded or not.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_builder.h"

namespace tessera {

// Adds the tensors of one file. `owner` keeps the bytes alive (null: the caller does).
[[nodiscard]] Status read_safetensors(std::span<const std::byte> file, const std::string& name,
                                      std::shared_ptr<const void> owner, CheckpointBuilder& builder);

[[nodiscard]] Result<std::shared_ptr<const Checkpoint>> open_safetensors_file(const std::string& path);

// config.json, and model.safetensors or the shards that model.safetensors.index.json names; where both lie
// there, model.safetensors counts (as in transformers). A folder with neither but one .safetensors file: that
// file.
[[nodiscard]] Result<std::shared_ptr<const Checkpoint>> open_safetensors_folder(const std::string& path);

}  // namespace tessera
