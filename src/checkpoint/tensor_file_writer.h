// Writes a file of tensors so that a reader finds the old file or the whole new one, never a part: the bytes
// go to a temporary file beside it, which finish() syncs and renames. Tensors may be written in any order and
// in pieces, also from several threads, so that a converter needs memory for one tensor only. The two formats
// differ in the header and the layout, which create_safetensors_file and create_gguf_file make.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "tensor/format.h"
#include "tensor/shape.h"

namespace tessera {

// A tensor that will be written; shape outermost first, as in TensorEntry.
struct TensorDeclaration {
  std::string name;
  Shape shape;
  Format format;
};

class TensorFileWriter {
 public:
  struct Region {
    uint64_t offset = 0;  // in the file
    uint64_t bytes = 0;
  };

  // `header` starts the file, `regions` are the places of the tensors (beyond the header, apart), `size` the
  // file's length.
  [[nodiscard]] static Result<std::unique_ptr<TensorFileWriter>> create(std::string path,
                                                                        std::span<const std::byte> header,
                                                                        std::vector<Region> regions,
                                                                        uint64_t size);
  ~TensorFileWriter();  // without finish(): removes the temporary file
  TensorFileWriter(const TensorFileWriter&) = delete;
  TensorFileWriter& operator=(const TensorFileWriter&) = delete;

  // A piece of a tensor (its index in the declarations), from byte `first` of it.
  [[nodiscard]] Status write(size_t tensor, uint64_t first, std::span<const std::byte> bytes);
  [[nodiscard]] Status write(size_t tensor, std::span<const std::byte> bytes) {
    return write(tensor, 0, bytes);
  }

  // Puts the file in place. CHECKs that every byte was written once.
  [[nodiscard]] Status finish();

 private:
  TensorFileWriter() = default;
  [[nodiscard]] Status write_at(uint64_t offset, std::span<const std::byte> bytes) const;

  std::string path_;
  std::string temporary_path_;
  std::vector<Region> regions_;
  std::atomic<uint64_t> written_ = 0;
  int descriptor_ = -1;
};

// Bytes that a declared tensor takes, and an error for what no file can hold: sizes that overflow, rows that
// are no multiple of the block, a name that is empty.
[[nodiscard]] Result<uint64_t> declared_bytes(const TensorDeclaration& tensor);

}  // namespace tessera
