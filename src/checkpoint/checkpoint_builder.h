// How readers fill a Checkpoint: files, tensors, metadata; finish() sorts, refuses duplicates and folds companions into the
// tensors they belong to (companions.h).
#pragma once

#include "checkpoint/checkpoint.h"

namespace tessera {

class CheckpointBuilder {
 public:
  CheckpointBuilder(CheckpointKind kind, std::string path);

  // Returns the file's index. `owner` keeps the file's bytes alive; null when the caller does.
  int add_file(std::string name, std::shared_ptr<const void> owner);
  void add_tensor(TensorEntry entry);
  void set_folder(std::string folder);
  void set_kind(CheckpointKind kind);
  void set_config(Json config);
  void set_metadata(GgufMetadata metadata);
  [[nodiscard]] Result<std::shared_ptr<const Checkpoint>> finish();

 private:
  void note_mappings();
  Status fold();

  std::shared_ptr<Checkpoint> checkpoint_;
};

}  // namespace tessera
