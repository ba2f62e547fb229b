// Small checkpoint files for tests, whole or broken on purpose: written through the writers, or byte by byte.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf_writer.h"
#include "checkpoint/safetensors_writer.h"
#include "formats/format_info.h"
#include "temporary_folder.h"

namespace tessera {

struct SmallTensor {
  TensorDeclaration declaration;
  std::vector<std::byte> bytes;
};

// Values that depend on the place only, exact in every floating type.
inline std::vector<float> small_values(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    values[static_cast<size_t>(i)] = static_cast<float>((i * 37 % 97) - 48) / 16;
  return values;
}

inline SmallTensor make_tensor(std::string name, const Shape& shape, const Format& format) {
  SmallTensor tensor{{std::move(name), shape, format}, {}};
  const std::vector<float> values = small_values(shape.elements());
  tensor.bytes.resize(static_cast<size_t>(shape.rows() * format_row_bytes(format, shape.columns())));
  const Status status =
      encode_rows(format, values.data(), shape.rows(), shape.columns(), tensor.bytes.data());
  EXPECT_TRUE(status) << status.error().message;
  return tensor;
}

inline Status write_all(Result<std::unique_ptr<TensorFileWriter>> created,
                        const std::vector<SmallTensor>& tensors) {
  TESSERA_TRY(const auto writer, std::move(created));
  for (size_t i = 0; i < tensors.size(); ++i) TESSERA_TRY_STATUS(writer->write(i, tensors[i].bytes));
  return writer->finish();
}

inline std::vector<TensorDeclaration> declarations(const std::vector<SmallTensor>& tensors) {
  std::vector<TensorDeclaration> list;
  for (const SmallTensor& tensor : tensors) list.push_back(tensor.declaration);
  return list;
}

inline void write_safetensors(const std::string& path, const std::vector<SmallTensor>& tensors,
                              const std::map<std::string, std::string>& metadata = {}) {
  const Status status = write_all(create_safetensors_file(path, declarations(tensors), metadata), tensors);
  ASSERT_TRUE(status) << status.error().message;
}

inline void write_gguf(const std::string& path, const std::vector<SmallTensor>& tensors,
                       const GgufMetadata& metadata = {}) {
  const Status status = write_all(create_gguf_file(path, declarations(tensors), metadata), tensors);
  ASSERT_TRUE(status) << status.error().message;
}

// Bytes put together by hand.
class Bytes {
 public:
  template <class T>
  Bytes& number(T value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof(T));
    return *this;
  }
  Bytes& u32(uint32_t value) { return number(value); }
  Bytes& u64(uint64_t value) { return number(value); }
  Bytes& text(std::string_view text) {
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    bytes_.insert(bytes_.end(), bytes, bytes + text.size());
    return *this;
  }
  Bytes& string(std::string_view value) { return u64(value.size()).text(value); }
  Bytes& pad(size_t multiple) {
    bytes_.resize((bytes_.size() + multiple - 1) / multiple * multiple);
    return *this;
  }
  Bytes& zeros(size_t count) {
    bytes_.resize(bytes_.size() + count);
    return *this;
  }
  [[nodiscard]] const std::vector<std::byte>& get() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

inline std::vector<std::byte> safetensors_bytes(std::string_view header, size_t data) {
  return Bytes().string(header).zeros(data).get();
}

inline void expect_one_line(const std::string& message) {
  EXPECT_FALSE(message.empty());
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

}  // namespace tessera
