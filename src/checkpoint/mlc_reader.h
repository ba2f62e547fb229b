// Reading MLC folders: mlc-chat-config.json, a manifest (tensor-cache.json or ndarray-cache.json) and the shards it lists, each
// checked against the size and the MD5 sum that the manifest gives.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace tessera {

// One tensor of the manifest.
struct MlcRecord {
  std::string name;
  Shape shape;
  DType element = DType::kF32;
  uint64_t offset = 0;  // in its shard
  uint64_t bytes = 0;   // equal to shape x element size
};
struct MlcShard {
  std::string file;  // a name in the folder
  uint64_t bytes = 0;
  std::string md5;  // "" when the manifest has none
  std::vector<MlcRecord> records;
};

// Checks everything that can be checked without the shards; `what` is the manifest's name for messages.
[[nodiscard]] Result<std::vector<MlcShard>> parse_mlc_manifest(std::string_view text, std::string_view what);

// A folder with mlc-chat-config.json.
[[nodiscard]] bool is_mlc_folder(const std::string& path);
[[nodiscard]] Result<std::shared_ptr<const Checkpoint>> open_mlc_folder(const std::string& path);

}  // namespace tessera
