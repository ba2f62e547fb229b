// Arrays of a golden.safetensors file, for tests: converted to float or int32 vectors. Whatever is missing or
// of another kind throws, so that a test that meant to compare cannot pass without having compared.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "formats/format_info.h"

namespace tessera {

class GoldenFile {
 public:
  // `path` is relative to the source folder: "tests/goldens/arch/llama/golden.safetensors".
  static GoldenFile open(const std::string& path) {
    auto checkpoint = Checkpoint::open(path);
    if (!checkpoint) throw std::runtime_error(checkpoint.error().message);
    return GoldenFile(*std::move(checkpoint));
  }

  [[nodiscard]] bool has(std::string_view name) const { return checkpoint_->find(name) != nullptr; }
  [[nodiscard]] std::span<const TensorEntry> entries() const { return checkpoint_->tensors(); }
  [[nodiscard]] Shape shape(std::string_view name) const { return entry(name).shape; }
  [[nodiscard]] std::span<const std::byte> bytes(std::string_view name) const { return entry(name).bytes; }

  // Row-major values of a floating tensor.
  [[nodiscard]] std::vector<float> floats(std::string_view name) const {
    const TensorEntry& found = entry(name);
    if (found.format.is_plain() && !is_floating(found.format.element)) throw wrong_kind(found, "floating");
    return decode(found);
  }

  // Row-major values of an I32 tensor.
  [[nodiscard]] std::vector<int32_t> ints(std::string_view name) const {
    const TensorEntry& found = entry(name);
    if (found.format != Format::plain(DType::kI32)) throw wrong_kind(found, "I32");
    std::vector<int32_t> values(found.bytes.size() / sizeof(int32_t));
    if (!values.empty()) std::memcpy(values.data(), found.bytes.data(), found.bytes.size());
    return values;
  }

 private:
  explicit GoldenFile(std::shared_ptr<const Checkpoint> checkpoint) : checkpoint_(std::move(checkpoint)) {}

  [[nodiscard]] const TensorEntry& entry(std::string_view name) const {
    const TensorEntry* found = checkpoint_->find(name);
    if (found == nullptr) throw std::runtime_error(checkpoint_->path() + ": no tensor " + std::string(name));
    return *found;
  }

  [[nodiscard]] std::runtime_error wrong_kind(const TensorEntry& found, const char* expected) const {
    return std::runtime_error(checkpoint_->path() + ": " + found.name + ": expected " + expected +
                              ", found " + format_name(found.format));
  }

  static std::vector<float> decode(const TensorEntry& found) {
    const Weight matrix = matrix_view(found);
    std::vector<float> values(static_cast<size_t>(matrix.rows * matrix.columns));
    for (int64_t row = 0; row < matrix.rows; ++row)
      decode_row(matrix, row, 0, matrix.columns, values.data() + row * matrix.columns);
    return values;
  }

  std::shared_ptr<const Checkpoint> checkpoint_;
};

}  // namespace tessera
