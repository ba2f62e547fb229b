// A checkpoint made in a test: tensors of given elements and a config, opened as a folder of that kind would be.
#pragma once

#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "base/json.h"
#include "checkpoint/checkpoint_builder.h"
#include "formats/format_info.h"

namespace tessera {

class RawCheckpoint {
 public:
  explicit RawCheckpoint(std::string config, CheckpointKind kind = CheckpointKind::kSafetensors)
      : config_(std::move(config)), kind_(kind) {}

  template <class T>
  RawCheckpoint& add(std::string name, Shape shape, DType element, const std::vector<T>& values) {
    auto bytes = std::make_shared<std::vector<std::byte>>(values.size() * sizeof(T));
    if (!bytes->empty()) std::memcpy(bytes->data(), values.data(), bytes->size());
    tensors_.push_back(
        {std::move(name), shape, Format::plain(element), {bytes->data(), bytes->size()}, 0, {}});
    owned_.push_back(std::move(bytes));
    return *this;
  }

  [[nodiscard]] Result<std::shared_ptr<const Checkpoint>> open() const {
    CheckpointBuilder builder(kind_, "raw");
    builder.add_file("raw.safetensors", nullptr);
    for (const auto& bytes : owned_) builder.add_file("owned", bytes);
    for (const TensorEntry& tensor : tensors_) builder.add_tensor(tensor);
    auto config = parse_json(config_, "config");
    if (!config) return Failure(config.error());
    builder.set_config(*std::move(config));
    return builder.finish();
  }
  [[nodiscard]] std::string error() const {
    const auto opened = open();
    return opened ? "(opened)" : opened.error().message;
  }

 private:
  std::string config_;
  CheckpointKind kind_;
  std::vector<TensorEntry> tensors_;
  std::vector<std::shared_ptr<std::vector<std::byte>>> owned_;
};

// All values of a tensor, in float32.
inline std::vector<float> values_of(const Checkpoint& checkpoint, const std::string& name) {
  const TensorEntry* entry = checkpoint.find(name);
  if (entry == nullptr) return {};
  const Weight matrix = matrix_view(*entry);
  std::vector<float> values(static_cast<size_t>(matrix.rows * matrix.columns));
  for (int64_t row = 0; row < matrix.rows; ++row)
    decode_row(matrix, row, 0, matrix.columns, values.data() + row * matrix.columns);
  return values;
}

// `count` numbers below `limit`.
inline std::vector<uint32_t> random_codes(size_t count, uint32_t limit, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint32_t> codes(count);
  for (uint32_t& code : codes) code = random() % limit;
  return codes;
}

// Codes of `bits` bits one after another into 32-bit words, lowest bits first, every `row` of them from a new word on.
inline std::vector<uint32_t> pack_words(const std::vector<uint32_t>& codes, int bits, size_t row) {
  std::vector<uint32_t> words;
  for (size_t first = 0; first < codes.size(); first += row) {
    std::vector<uint32_t> packed((row * static_cast<size_t>(bits) + 31) / 32, 0);
    for (size_t i = 0; i < row; ++i)
      for (int b = 0; b < bits; ++b) {
        const size_t bit = i * static_cast<size_t>(bits) + static_cast<size_t>(b);
        packed[bit / 32] |= (codes[first + i] >> b & 1) << (bit % 32);
      }
    words.insert(words.end(), packed.begin(), packed.end());
  }
  return words;
}

}  // namespace tessera
