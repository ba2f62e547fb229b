// A reference checkpoint with changes, in memory: tensors renamed, dropped, added or given other bytes, config
// keys replaced. For tests of names and refusals that no file on disk shows.
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
  // `path` is relative to the source folder: "tests/goldens/arch/llama".
  explicit EditedCheckpoint(const std::string& path) {
    auto opened = Checkpoint::open(path);
    if (!opened) throw std::runtime_error(opened.error().message);
    original_ = *std::move(opened);
    config_ = *original_->config();
    for (const TensorEntry& entry : original_->tensors()) tensors_.push_back(entry);
  }

  Json& config() { return config_; }
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

  // The checkpoint, called "edited.safetensors" in messages.
  [[nodiscard]] Result<std::shared_ptr<const Checkpoint>> finish() const {
    CheckpointBuilder builder(CheckpointKind::kSafetensors, "edited.safetensors");
    builder.add_file("edited.safetensors", original_);
    for (const auto& bytes : owned_) builder.add_file("added", bytes);
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
  std::vector<TensorEntry> tensors_;
  std::vector<std::shared_ptr<const std::vector<std::byte>>> owned_;
};

}  // namespace tessera
