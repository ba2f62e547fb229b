// Whole published files open; the writers; the same weights through both formats.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "checkpoint_files.h"

namespace tessera {
namespace {

TEST(Checkpoint, EveryGoldenCheckpointOpens) {
  int opened = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("tests/goldens/")) {
    const std::string path = entry.path().string();
    const bool folder = entry.is_directory() && std::filesystem::exists(entry.path() / "model.safetensors");
    if (!folder && entry.path().extension() != ".gguf" && entry.path().extension() != ".safetensors")
      continue;
    const auto checkpoint = Checkpoint::open(path);
    ASSERT_TRUE(checkpoint) << checkpoint.error().message;
    EXPECT_FALSE((*checkpoint)->tensors().empty());
    ++opened;
  }
  EXPECT_GT(opened, 300);
}

// What GGUF metadata a file holds survives being written back, on real headers.
TEST(Checkpoint, GoldenGgufFilesAreWrittenBackEqual) {
  const TemporaryFolder folder;
  int compared = 0;
  for (const char* name : {"arch/llama.gguf", "arch/gemma3.gguf", "quant/Q4_K.gguf", "quant/IQ2_XS.gguf"}) {
    const std::string path = std::string("tests/goldens/gguf/") + name;
    const auto original = Checkpoint::open(path);
    ASSERT_TRUE(original) << original.error().message;
    std::vector<SmallTensor> tensors;
    for (const TensorEntry& entry : (*original)->tensors())
      tensors.push_back({{entry.name, entry.shape, entry.format}, {entry.bytes.begin(), entry.bytes.end()}});
    write_gguf(folder.file("copy.gguf"), tensors, (*original)->metadata());
    const auto copy = Checkpoint::open(folder.file("copy.gguf"));
    ASSERT_TRUE(copy) << copy.error().message;
    ASSERT_EQ((*copy)->tensors().size(), (*original)->tensors().size());
    EXPECT_EQ((*copy)->metadata().size(), (*original)->metadata().size());
    EXPECT_EQ(std::filesystem::file_size(path), std::filesystem::file_size(folder.file("copy.gguf")));
    for (const TensorEntry& entry : (*original)->tensors()) {
      const TensorEntry* found = (*copy)->find(entry.name);
      ASSERT_NE(found, nullptr);
      EXPECT_EQ(found->shape, entry.shape);
      EXPECT_EQ(found->format, entry.format);
      EXPECT_TRUE(
          std::equal(entry.bytes.begin(), entry.bytes.end(), found->bytes.begin(), found->bytes.end()));
      ++compared;
    }
  }
  EXPECT_GT(compared, 20);
}

std::vector<float> decode_all(const TensorEntry& entry) {
  const Weight matrix = matrix_view(entry);
  std::vector<float> values(static_cast<size_t>(matrix.rows * matrix.columns));
  for (int64_t row = 0; row < matrix.rows; ++row)
    decode_row(matrix, row, 0, matrix.columns, values.data() + row * matrix.columns);
  return values;
}

// F32, F16 and BF16 are stored as they are in both formats; the block formats hold the same values as their
// decoded twin.
TEST(Checkpoint, TheSameWeightsInBothFormatsReadEqual) {
  const TemporaryFolder folder;
  const Format formats[] = {Format::plain(DType::kF32), Format::plain(DType::kF16),
                            Format::plain(DType::kBF16), Format::block(FormatKind::kQ8_0),
                            Format::block(FormatKind::kQ4_0)};
  std::vector<SmallTensor> gguf;
  std::vector<SmallTensor> safetensors;
  for (const Format& format : formats) {
    SmallTensor tensor = make_tensor(format_name(format), {3, 5, 64}, format);
    SmallTensor twin = tensor;
    if (!format.is_plain()) {
      const std::vector<float> values =
          decode_all({tensor.declaration.name, tensor.declaration.shape, format, tensor.bytes, 0});
      twin.declaration.format = Format::plain(DType::kF32);
      twin.bytes.resize(values.size() * sizeof(float));
      std::memcpy(twin.bytes.data(), values.data(), twin.bytes.size());
    }
    gguf.push_back(std::move(tensor));
    safetensors.push_back(std::move(twin));
  }
  write_gguf(folder.file("m.gguf"), gguf);
  write_safetensors(folder.file("m.safetensors"), safetensors);
  const auto one = Checkpoint::open(folder.file("m.gguf"));
  const auto other = Checkpoint::open(folder.file("m.safetensors"));
  ASSERT_TRUE(one) << one.error().message;
  ASSERT_TRUE(other) << other.error().message;
  ASSERT_EQ((*one)->tensors().size(), std::size(formats));
  for (size_t i = 0; i < std::size(formats); ++i) {
    const TensorEntry& a = (*one)->tensors()[i];
    const TensorEntry& b = (*other)->tensors()[i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.shape, b.shape);
    EXPECT_EQ(decode_all(a), decode_all(b)) << a.name;
    const std::vector<float> values = small_values(a.shape.elements());
    if (a.format.is_plain()) {
      EXPECT_EQ(decode_all(a), values) << a.name;
    }
  }
}

TEST(TensorFileWriter, PlacesAreAligned) {
  const TemporaryFolder folder;
  write_safetensors(folder.file("m.safetensors"),
                    {make_tensor("bytes", {3}, Format::plain(DType::kBF16)),
                     make_tensor("words", {4, 0}, Format::plain(DType::kF32)),
                     make_tensor("floats", {5}, Format::plain(DType::kF32))},
                    {{"quote\"", "line\n"}});
  const std::vector<std::byte> bytes = folder.read("m.safetensors");
  const auto safetensors = Checkpoint::from_safetensors(bytes, "m", Json());
  ASSERT_TRUE(safetensors) << safetensors.error().message;
  for (const TensorEntry& entry : (*safetensors)->tensors())
    EXPECT_EQ((entry.bytes.data() - bytes.data()) % dtype_size(entry.format.element), 0) << entry.name;

  write_gguf(folder.file("m.gguf"),
             {make_tensor("a", {3}, Format::plain(DType::kBF16)),
              make_tensor("b", {32}, Format::block(FormatKind::kQ4_0)),
              make_tensor("c", {5}, Format::plain(DType::kF32))},
             {{"general.alignment", {uint64_t{128}}}});
  const std::vector<std::byte> other = folder.read("m.gguf");
  const auto gguf = Checkpoint::from_gguf(other, "m");
  ASSERT_TRUE(gguf) << gguf.error().message;
  for (const TensorEntry& entry : (*gguf)->tensors())
    EXPECT_EQ((entry.bytes.data() - other.data()) % 128, 0) << entry.name;
}

size_t files_in(const TemporaryFolder& folder) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    count += entry.path().empty() ? 0 : 1;
  return count;
}

TEST(TensorFileWriter, TheOldFileStaysUntilTheNewOneIsWhole) {
  const TemporaryFolder folder;
  folder.write("m.gguf", std::string_view("old"));
  const TensorDeclaration declaration{"a", {8}, Format::plain(DType::kF32)};
  const std::vector<std::byte> bytes(32, std::byte{1});
  {
    auto writer = create_gguf_file(folder.file("m.gguf"), {&declaration, 1}, {});
    ASSERT_TRUE(writer) << writer.error().message;
    ASSERT_TRUE((*writer)->write(0, bytes));
    EXPECT_EQ(files_in(folder), 2U);
  }
  EXPECT_EQ(files_in(folder), 1U);
  EXPECT_EQ(folder.read("m.gguf").size(), 3U);
  auto writer = create_gguf_file(folder.file("m.gguf"), {&declaration, 1}, {});
  ASSERT_TRUE(writer);
  ASSERT_TRUE((*writer)->write(0, 16, std::span(bytes).first(16)));  // pieces, in any order
  ASSERT_TRUE((*writer)->write(0, 0, std::span(bytes).first(16)));
  ASSERT_TRUE((*writer)->finish());
  writer->reset();
  EXPECT_EQ(files_in(folder), 1U);
  const auto checkpoint = Checkpoint::open(folder.file("m.gguf"));
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), (*checkpoint)->tensors()[0].bytes.begin()));
}

TEST(TensorFileWriter, WhatAFormatCannotHoldIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder.file("m");
  const auto gguf = [&](const TensorDeclaration& tensor, const GgufMetadata& metadata = {}) {
    const auto writer = create_gguf_file(path, {&tensor, 1}, metadata);
    return writer ? std::string("written") : writer.error().message.substr(path.size() + 2);
  };
  const auto safetensors = [&](std::vector<TensorDeclaration> tensors) {
    const auto writer = create_safetensors_file(path, tensors, {});
    return writer ? std::string("written") : writer.error().message.substr(path.size() + 2);
  };
  const TensorDeclaration good{"a", {8}, Format::plain(DType::kF32)};
  EXPECT_EQ(gguf({"a", {8}, Format::plain(DType::kU32)}), "tensor a: GGUF cannot hold U32");
  EXPECT_EQ(gguf({"a", {1, 1, 1, 1, 8}, Format::plain(DType::kF32)}),
            "tensor a: expected at most 4 dimensions, none of them 0, found [1, 1, 1, 1, 8]");
  EXPECT_EQ(gguf({"a", {0, 8}, Format::plain(DType::kF32)}),
            "tensor a: expected at most 4 dimensions, none of them 0, found [0, 8]");
  EXPECT_EQ(gguf({"a", {2, 40}, Format::block(FormatKind::kQ8_0)}),
            "tensor a: expected rows of a multiple of 32 values for Q8_0, found shape [2, 40]");
  EXPECT_EQ(gguf({"", {8}, Format::plain(DType::kF32)}), "a tensor without a name cannot be written");
  EXPECT_EQ(gguf({std::string(64, 'x'), {8}, Format::plain(DType::kF32)}),
            "tensor " + std::string(64, 'x') + ": expected a name of at most 63 bytes, found 64");
  EXPECT_EQ(gguf(good, {{"general.alignment", {uint64_t{3}}}}),
            "general.alignment: expected a power of two up to 16777216");
  EXPECT_EQ(gguf(good, {{"k", {uint64_t{300}, GgufType::kU8}}}),
            "metadata k: the value does not fit its type");
  EXPECT_EQ(safetensors({{"a", {32}, Format::block(FormatKind::kQ4_0)}}),
            "tensor a: safetensors cannot hold Q4_0");
  EXPECT_EQ(safetensors({good, good}), "tensor a: the name is taken");
  EXPECT_EQ(safetensors({{"a", {int64_t{1} << 40, int64_t{1} << 40}, Format::plain(DType::kF32)}}),
            "tensor a: shape [1099511627776, 1099511627776] overflows");
  EXPECT_EQ(files_in(folder), 0U);
  const auto nowhere = create_safetensors_file(folder.file("no/m"), {&good, 1}, {});
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().message,
            folder.file("no/m") + ": cannot create a file beside it: No such file or directory");
}

}  // namespace
}  // namespace tessera
