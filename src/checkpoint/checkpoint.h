// Checkpoint: a published model as it lies on disk (or in memory): a list of tensors with shape, format and
// bytes, and the metadata that came along. Readers check every size, offset and count against the file before
// use; bytes are mapped and touched only when somebody reads them. What a tensor is for is not known here:
// that is the dialect's work (model/dialect.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "tensor/format.h"
#include "tensor/shape.h"
#include "tensor/weight.h"

namespace tessera {

// One tensor of a file. Shape is outermost first (a GGUF file's dimensions are reversed on reading).
struct TensorEntry {
  std::string name;
  Shape shape;
  Format format;
  std::span<const std::byte> bytes;  // lies in the checkpoint's mapping
  int file = 0;                      // index into Checkpoint::files, for messages
  // Grouped formats: the second and third plane of the tensor seen as a matrix (see matrix_view).
  std::array<Plane, 2> companions = {};
};

// The types of GGUF metadata, with the numbers that files use.
enum class GgufType : uint8_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
  kUnset = 255,
};

// A GGUF metadata value: widened (unsigned, signed, floating) for whoever reads it; the type it was stored
// with is kept for whoever writes it back.
struct GgufValue;
using GgufArray = std::vector<GgufValue>;
struct GgufValue {
  std::variant<uint64_t, int64_t, double, bool, std::string, GgufArray> value;
  GgufType type = GgufType::kUnset;     // as stored; unset: the writer chooses
  GgufType element = GgufType::kUnset;  // of an array
};
using GgufMetadata = std::map<std::string, GgufValue, std::less<>>;

enum class CheckpointKind {
  kSafetensors,  // a folder with config.json and *.safetensors, or one such file
  kMlx,          // the same, written by MLX: some tensors are stored differently
  kMlc,          // a folder with mlc-chat-config.json, a manifest and its shards
  kGguf,
};

class Checkpoint {
 public:
  // A folder (config.json + model.safetensors or model.safetensors.index.json + shards, or mlc-chat-config.json
  // + ndarray-cache.json or tensor-cache.json + shards), a .safetensors file,
  // or a .gguf file (the first of a split set: -00001-of-0000N.gguf brings the others). A .safetensors file
  // takes the config.json beside it, if there is one.
  [[nodiscard]] static Result<std::shared_ptr<const Checkpoint>> open(const std::string& path);

  // A file already in memory: the caller keeps the bytes alive. `name` is used in messages.
  [[nodiscard]] static Result<std::shared_ptr<const Checkpoint>> from_safetensors(
      std::span<const std::byte> file, const std::string& name, Json config);
  [[nodiscard]] static Result<std::shared_ptr<const Checkpoint>> from_gguf(std::span<const std::byte> file,
                                                                           std::string name);

  [[nodiscard]] CheckpointKind kind() const { return kind_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::span<const TensorEntry> tensors() const { return tensors_; }  // sorted by name
  [[nodiscard]] const TensorEntry* find(std::string_view name) const;
  [[nodiscard]] const std::string& file_name(const TensorEntry& entry) const {
    return files_[static_cast<size_t>(entry.file)];
  }
  // config.json or mlc-chat-config.json; null for GGUF and for a lone .safetensors file.
  [[nodiscard]] const Json* config() const { return config_.get(); }
  [[nodiscard]] const GgufMetadata& metadata() const { return metadata_; }  // empty for safetensors
  // The path of a file beside config.json, if it is there ("tokenizer.json"); nullopt for GGUF.
  [[nodiscard]] std::optional<std::string> companion(std::string_view name) const;
  [[nodiscard]] uint64_t total_bytes() const;
  // `bytes`, part of a tensor, will not be read soon: where they lie in a mapped file, its pages need no memory.
  void release(std::span<const std::byte> bytes) const;

 private:
  friend class CheckpointBuilder;
  Checkpoint() = default;
  CheckpointKind kind_ = CheckpointKind::kSafetensors;
  std::string path_;
  std::string folder_;  // where companions lie; empty for GGUF and for memory
  std::vector<std::string> files_;
  std::vector<TensorEntry> tensors_;
  std::unique_ptr<Json> config_;
  GgufMetadata metadata_;
  std::vector<std::shared_ptr<const void>> owners_;  // the mappings
  std::vector<std::span<const std::byte>> mapped_;   // what the tensors take up in them, a part for each file
};

// The tensor as a matrix [product of all dimensions but the last, last], with its companions; a view into
// the checkpoint.
[[nodiscard]] Weight matrix_view(const TensorEntry& entry);

}  // namespace tessera
