#include "checkpoint/checkpoint_builder.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "checkpoint/companions.h"
#include "checkpoint/printable.h"

namespace tessera {

CheckpointBuilder::CheckpointBuilder(CheckpointKind kind, std::string path) : checkpoint_(new Checkpoint()) {
  checkpoint_->kind_ = kind;
  checkpoint_->path_ = std::move(path);
}

int CheckpointBuilder::add_file(std::string name, std::shared_ptr<const void> owner) {
  checkpoint_->files_.push_back(std::move(name));
  if (owner != nullptr) checkpoint_->owners_.push_back(std::move(owner));
  return static_cast<int>(checkpoint_->files_.size()) - 1;
}

void CheckpointBuilder::add_tensor(TensorEntry entry) {
  checkpoint_->tensors_.push_back(std::move(entry));
}

void CheckpointBuilder::set_folder(std::string folder) {
  checkpoint_->folder_ = std::move(folder);
}

void CheckpointBuilder::set_kind(CheckpointKind kind) {
  checkpoint_->kind_ = kind;
}

void CheckpointBuilder::set_config(Json config) {
  checkpoint_->config_ = std::make_unique<Json>(std::move(config));
}

void CheckpointBuilder::set_metadata(GgufMetadata metadata) {
  checkpoint_->metadata_ = std::move(metadata);
}

// Files that somebody else keeps in memory are no mappings. Before fold(), which adds owners that are no files.
void CheckpointBuilder::note_mappings() {
  if (checkpoint_->owners_.size() != checkpoint_->files_.size()) return;
  checkpoint_->mapped_.resize(checkpoint_->files_.size());
  for (const TensorEntry& entry : checkpoint_->tensors_) {
    std::span<const std::byte>& file = checkpoint_->mapped_[static_cast<size_t>(entry.file)];
    if (entry.bytes.empty()) continue;
    const std::byte* begin = file.empty() ? entry.bytes.data() : std::min(file.data(), entry.bytes.data());
    const std::byte* entry_end = entry.bytes.data() + entry.bytes.size();
    const std::byte* end = file.empty() ? entry_end : std::max(file.data() + file.size(), entry_end);
    file = {begin, static_cast<size_t>(end - begin)};
  }
}

Result<std::shared_ptr<const Checkpoint>> CheckpointBuilder::finish() {
  note_mappings();
  auto& tensors = checkpoint_->tensors_;
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const TensorEntry& a, const TensorEntry& b) { return a.name < b.name; });
  const auto twin =
      std::adjacent_find(tensors.begin(), tensors.end(),
                         [](const TensorEntry& a, const TensorEntry& b) { return a.name == b.name; });
  if (twin != tensors.end()) {
    const std::string& first = checkpoint_->file_name(twin[0]);
    const std::string& second = checkpoint_->file_name(twin[1]);
    const std::string where = first == second ? std::string() : " and in " + second;
    return fail(ErrorCode::kBadData, "{}: tensor {}: expected once, found twice{}", first,
                printable(twin->name), where);
  }
  TESSERA_TRY_STATUS(fold());
  return std::shared_ptr<const Checkpoint>(std::move(checkpoint_));
}

Status CheckpointBuilder::fold() {
  if (checkpoint_->config_ == nullptr) return {};
  const Json& config = *checkpoint_->config_;
  CompanionTable table(checkpoint_->tensors_, checkpoint_->files_, checkpoint_->owners_);
  if (checkpoint_->kind_ == CheckpointKind::kMlc) {
    TESSERA_TRY(const std::string name, json_string(config, "quantization", checkpoint_->path_));
    return fold_mlc(table, name, checkpoint_->path_);
  }
  TESSERA_TRY(checkpoint_->kind_, fold_companions(table, config, checkpoint_->kind_, checkpoint_->path_));
  return {};
}

}  // namespace tessera
