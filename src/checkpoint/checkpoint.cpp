// Opening: which reader a path needs, and what can be asked of a checkpoint once it is read.
#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/mapped_file.h"
#include "checkpoint/checkpoint_builder.h"
#include "checkpoint/gguf_reader.h"
#include "checkpoint/mlc_reader.h"
#include "checkpoint/safetensors_reader.h"
#include "formats/format_info.h"

namespace tessera {

Result<std::shared_ptr<const Checkpoint>> Checkpoint::open(const std::string& path) {
  if (is_directory(path)) return is_mlc_folder(path) ? open_mlc_folder(path) : open_safetensors_folder(path);
  const std::string_view name = path;
  if (name.ends_with(".gguf")) return open_gguf_file(path);
  if (name.ends_with(".safetensors")) return open_safetensors_file(path);
  if (!file_exists(path)) return fail(ErrorCode::kNotFound, "{}: no such file or folder", path);
  return fail(ErrorCode::kUnsupported,
              "{}: expected a folder with config.json, a .safetensors file or a .gguf file", path);
}

Result<std::shared_ptr<const Checkpoint>> Checkpoint::from_safetensors(std::span<const std::byte> file,
                                                                       const std::string& name, Json config) {
  CheckpointBuilder builder(CheckpointKind::kSafetensors, name);
  TESSERA_TRY_STATUS(read_safetensors(file, name, nullptr, builder));
  builder.set_config(std::move(config));
  return builder.finish();
}

Result<std::shared_ptr<const Checkpoint>> Checkpoint::from_gguf(std::span<const std::byte> file,
                                                                std::string name) {
  return read_gguf_memory(file, std::move(name));
}

const TensorEntry* Checkpoint::find(std::string_view name) const {
  const auto it =
      std::lower_bound(tensors_.begin(), tensors_.end(), name,
                       [](const TensorEntry& entry, std::string_view key) { return entry.name < key; });
  return it != tensors_.end() && it->name == name ? &*it : nullptr;
}

std::optional<std::string> Checkpoint::companion(std::string_view name) const {
  if (folder_.empty()) return std::nullopt;
  std::string path = (std::filesystem::path(folder_) / name).string();
  if (!file_exists(path)) return std::nullopt;
  return path;
}

uint64_t Checkpoint::total_bytes() const {
  uint64_t total = 0;
  for (const TensorEntry& entry : tensors_) total += entry.bytes.size();
  return total;
}

void Checkpoint::release(std::span<const std::byte> bytes) const {
  for (const std::span<const std::byte> file : mapped_)
    if (bytes.data() >= file.data() && bytes.data() + bytes.size() <= file.data() + file.size())
      return release_mapped_pages(bytes);
}

Weight matrix_view(const TensorEntry& entry) {
  const int64_t rows = entry.shape.rows();
  const int64_t columns = entry.shape.columns();
  return {entry.format,
          rows,
          columns,
          {Plane{entry.bytes.data(), format_row_bytes(entry.format, columns)}, entry.companions[0],
           entry.companions[1]}};
}

}  // namespace tessera
