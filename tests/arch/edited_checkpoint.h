// A reference checkpoint with changes, in memory: tensors renamed, dropped, added or given other bytes, config
// keys (of a GGUF file: metadata) replaced. For tests of names and refusals that no file on disk shows.
#pragma once

#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint_builder.h"

namespace tessera {

class EditedCheckpoint {
 public:
  // `path` is relative to the source folder: "tests/goldens/arch/llama", "tests/goldens/gguf/arch/llama.gguf".
  explicit EditedCheckpoint(const std::string& path) {
    auto opened = Checkpoint::open(path);
    if (!opened) throw std::runtime_error(opened.error().message);
    original_ = *std::move(opened);
    if (original_->config() != nullptr) config_ = *original_->config();
    metadata_ = original_->metadata();
    for (const TensorEntry& entry : original_->tensors()) tensors_.push_back(entry);
  }

  Json& config() { return config_; }
  GgufMetadata& metadata() { return metadata_; }
  [[nodiscard]] std::vector<TensorEntry>& tensors() { return tensors_; }

  TensorEntry& at(std::string_view name) {
    for (TensorEntry& tensor : tensors_)
      if (tensor.name == name) return tensor;
    throw std::runtime_error("no tensor " + std::string(name));
  }

  void remove(std::string_view name) {
    at(name);
    std::erase_if(tensors_, [&](const TensorEntry& tensor) { return tensor.name == name; });
  }

  // A tensor with bytes of its own.
  void add(std::string name, Shape shape, Format format, std::vector<std::byte> bytes) {
    auto kept = std::make_shared<std::vector<std::byte>>(std::move(bytes));
    tensors_.push_back({std::move(name), shape, format, {kept->data(), kept->size()}, 0});
    owned_.push_back(std::move(kept));
  }

  // The checkpoint, called "edited.safetensors" or "edited.gguf" in messages.
  [[nodiscard]] Result<std::shared_ptr<const Checkpoint>> finish() const {
    const bool gguf = original_->kind() == CheckpointKind::kGguf;
    const char* name = gguf ? "edited.gguf" : "edited.safetensors";
    CheckpointBuilder builder(original_->kind(), name);
    builder.add_file(name, original_);
    for (const auto& bytes : owned_) builder.add_file("added", bytes);
    if (gguf)
      builder.set_metadata(metadata_);
    else
      builder.set_config(config_);
    for (TensorEntry tensor : tensors_) {
      tensor.file = 0;
      builder.add_tensor(std::move(tensor));
    }
    return builder.finish();
  }

 private:
  std::shared_ptr<const Checkpoint> original_;
  Json config_;
  GgufMetadata metadata_;
  std::vector<TensorEntry> tensors_;
  std::vector<std::shared_ptr<const std::vector<std::byte>>> owned_;
};

}  // namespace tessera
