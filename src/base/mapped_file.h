// A file mapped read-only into memory, shared by whoever holds views into it. Weights are read where they
// lie: nothing is copied until a page is touched.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace tessera {

class MappedFile {
 public:
  // Maps a regular file. An empty file gives an empty span.
  [[nodiscard]] static Result<std::shared_ptr<MappedFile>> open(const std::string& path);

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_}; }
  [[nodiscard]] const std::string& path() const { return path_; }

  // Tells the kernel that the whole file is about to be read in order.
  void advise_sequential() const;

 private:
  MappedFile() = default;
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Gives pages that lie wholly inside `bytes`, a part of a mapped file, back to the system; reading them again is slower, nothing
// else changes. Never for memory that is no mapping of a file.
void release_mapped_pages(std::span<const std::byte> bytes);

// A whole (small) file. Errors name the path and the system's reason.
[[nodiscard]] Result<std::string> read_file(const std::string& path);

[[nodiscard]] bool file_exists(const std::string& path);
[[nodiscard]] bool is_directory(const std::string& path);

// Names (not paths) of the entries of a directory, sorted.
[[nodiscard]] Result<std::vector<std::string>> list_directory(const std::string& path);

}  // namespace tessera
