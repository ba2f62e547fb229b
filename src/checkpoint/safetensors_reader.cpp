#include "checkpoint/safetensors_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/mapped_file.h"
#include "checkpoint/printable.h"
#include "checkpoint/safetensors_header.h"

namespace tessera {
namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kLargestHeader = 100'000'000;  // the limit that the reference reader sets
constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr std::string_view kExtension = ".safetensors";

std::string join_path(const std::string& folder, std::string_view name) {
  return (std::filesystem::path(folder) / name).string();
}

struct ParsedFile {
  SafetensorsHeader header;
  std::span<const std::byte> data;
};

Result<ParsedFile> parse_file(std::span<const std::byte> file, const std::string& name) {
  if (file.size() < kLengthBytes)
    return fail(ErrorCode::kBadData, "{}: expected 8 bytes of header length, found a file of {} bytes", name,
                file.size());
  uint64_t length = 0;
  std::memcpy(&length, file.data(), kLengthBytes);
  const uint64_t rest = file.size() - kLengthBytes;
  if (length > rest)
    return fail(ErrorCode::kBadData, "{}: expected a header of {} bytes, found {} bytes after its length",
                name, length, rest);
  if (length > kLargestHeader)
    return fail(ErrorCode::kBadData, "{}: expected a header of at most {} bytes, found {}", name,
                kLargestHeader, length);
  const auto* text = reinterpret_cast<const char*>(file.data() + kLengthBytes);
  const auto data = file.subspan(kLengthBytes + length);
  TESSERA_TRY(SafetensorsHeader header, parse_safetensors_header({text, length}, data.size(), name));
  return ParsedFile{std::move(header), data};
}

void add_tensors(ParsedFile parsed, const std::string& name, std::shared_ptr<const void> owner,
                 CheckpointBuilder& builder) {
  const int file = builder.add_file(name, std::move(owner));
  const auto writer = parsed.header.metadata.find("format");
  if (writer != parsed.header.metadata.end() && writer->second == "mlx")
    builder.set_kind(CheckpointKind::kMlx);
  for (SafetensorsEntry& entry : parsed.header.entries)
    builder.add_tensor({std::move(entry.name), entry.shape, Format::plain(entry.dtype),
                        parsed.data.subspan(entry.begin, entry.end - entry.begin), file});
}

// Every tensor the index gives this shard is in it, and no other. `indexed` is sorted by name.
Status check_against_index(const SafetensorsHeader& header, std::span<const IndexedTensor> indexed,
                           const std::string& path) {
  std::vector<std::string_view> found;
  found.reserve(header.entries.size());
  for (const SafetensorsEntry& entry : header.entries) found.push_back(entry.name);
  std::sort(found.begin(), found.end());
  size_t next = 0;
  for (const IndexedTensor& tensor : indexed) {
    if (next < found.size() && found[next] < tensor.name) break;
    if (next == found.size() || found[next] != tensor.name)
      return fail(ErrorCode::kBadData, "{}: tensor {}: expected in this file by {}, not found", path,
                  printable(tensor.name), kIndexFile);
    ++next;
  }
  if (next < found.size())
    return fail(ErrorCode::kBadData, "{}: tensor {}: found, but {} does not name it for this file", path,
                printable(found[next]), kIndexFile);
  return {};
}

Status read_shards(const std::string& folder, CheckpointBuilder& builder) {
  const std::string index_path = join_path(folder, kIndexFile);
  TESSERA_TRY(const std::string text, read_file(index_path));
  TESSERA_TRY(const std::vector<IndexedTensor> tensors, parse_weight_map(text, index_path));
  if (tensors.empty()) return fail(ErrorCode::kBadData, "{}: weight_map names no tensor", index_path);
  for (size_t i = 1; i < tensors.size(); ++i)
    if (tensors[i].name == tensors[i - 1].name && tensors[i].file == tensors[i - 1].file)
      return fail(ErrorCode::kBadData, "{}: tensor {}: expected once, found twice", index_path,
                  printable(tensors[i].name));
  for (auto first = tensors.begin(); first != tensors.end();) {
    const auto last =
        std::find_if(first, tensors.end(), [&](const IndexedTensor& t) { return t.file != first->file; });
    const std::string& name = first->file;
    if (name.empty() || name.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos)
      return fail(ErrorCode::kBadData, "{}: tensor {}: expected the name of a file in this folder, found {}",
                  index_path, printable(first->name), printable(name));
    const std::string path = join_path(folder, name);
    TESSERA_TRY(const auto file, MappedFile::open(path));
    TESSERA_TRY(ParsedFile parsed, parse_file(file->bytes(), path));
    TESSERA_TRY_STATUS(check_against_index(parsed.header, {first, last}, path));
    add_tensors(std::move(parsed), path, file, builder);
    first = last;
  }
  return {};
}

Status read_mapped(const std::string& path, CheckpointBuilder& builder) {
  TESSERA_TRY(const auto file, MappedFile::open(path));
  return read_safetensors(file->bytes(), path, file, builder);
}

// The only .safetensors file of a folder that follows neither naming.
Result<std::string> find_lone_file(const std::string& folder) {
  TESSERA_TRY(const std::vector<std::string> names, list_directory(folder));
  std::vector<std::string_view> weights;
  std::vector<std::string_view> others;
  for (const std::string_view name : names) {
    if (name.ends_with(kExtension)) weights.push_back(name);
    if (name.ends_with(".gguf") || name.ends_with(".bin") || name == "ndarray-cache.json" ||
        name == "tensor-cache.json")
      others.push_back(name);
  }
  if (weights.size() == 1) return join_path(folder, weights[0]);
  if (weights.empty() && !others.empty())
    return fail(ErrorCode::kUnsupported, "{}: expected {} or {}, found {}", folder, kSingleFile, kIndexFile,
                printable(others[0]));
  return fail(ErrorCode::kNotFound, "{}: expected {} or {}, found {} .safetensors files", folder, kSingleFile,
              kIndexFile, weights.size());
}

}  // namespace

Status read_safetensors(std::span<const std::byte> file, const std::string& name,
                        std::shared_ptr<const void> owner, CheckpointBuilder& builder) {
  TESSERA_TRY(ParsedFile parsed, parse_file(file, name));
  add_tensors(std::move(parsed), name, std::move(owner), builder);
  return {};
}

Result<std::shared_ptr<const Checkpoint>> open_safetensors_file(const std::string& path) {
  CheckpointBuilder builder(CheckpointKind::kSafetensors, path);
  TESSERA_TRY_STATUS(read_mapped(path, builder));
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  const std::string config_path = join_path(folder, "config.json");
  if (file_exists(config_path)) {
    TESSERA_TRY(Json config, read_json_file(config_path));
    builder.set_config(std::move(config));
  }
  builder.set_folder(std::move(folder));
  return builder.finish();
}

Result<std::shared_ptr<const Checkpoint>> open_safetensors_folder(const std::string& path) {
  CheckpointBuilder builder(CheckpointKind::kSafetensors, path);
  builder.set_folder(path);
  const std::string config_path = join_path(path, "config.json");
  if (!file_exists(config_path))
    return fail(ErrorCode::kNotFound, "{}: expected a model folder, found no config.json", path);
  TESSERA_TRY(Json config, read_json_file(config_path));
  builder.set_config(std::move(config));
  const std::string single_path = join_path(path, kSingleFile);
  if (file_exists(single_path)) {
    TESSERA_TRY_STATUS(read_mapped(single_path, builder));
  } else if (file_exists(join_path(path, kIndexFile))) {
    TESSERA_TRY_STATUS(read_shards(path, builder));
  } else {
    TESSERA_TRY(const std::string lone, find_lone_file(path));
    TESSERA_TRY_STATUS(read_mapped(lone, builder));
  }
  return builder.finish();
}

}  // namespace tessera
