// The safetensors reader: legal oddities, files broken in one way each, every truncation, shards.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "checkpoint_files.h"

namespace tessera {
namespace {

Result<std::shared_ptr<const Checkpoint>> read(std::span<const std::byte> bytes) {
  return Checkpoint::from_safetensors(bytes, "m.safetensors", Json::object());
}

struct BadFile {
  const char* header;
  size_t data;
  const char* message;
};

const BadFile kBadFiles[] = {
    {R"({"a":{"dtype":"F32","shape":[1000,1000],"data_offsets":[0,4]}})", 4,
     "m.safetensors: tensor a: expected 4000000 bytes for F32 [1000, 1000], found 4 (data_offsets [0, 4])"},
    {R"({"k":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"v":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
     8, "m.safetensors: tensor v: overlaps another: expected its data to start at 8, found 0"},
    {R"({"k":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"v":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
     12, "m.safetensors: tensor v: overlaps another: expected its data to start at 8, found 4"},
    {R"({"k":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"v":{"dtype":"F32","shape":[2],"data_offsets":[12,20]}})",
     20, "m.safetensors: tensor v: a gap before it: expected its data to start at 8, found 12"},
    {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 12,
     "m.safetensors: expected 8 bytes of data, as its tensors need, found 12"},
    {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4,
     "m.safetensors: tensor a: expected data up to byte 8, found 4 bytes of data in the file"},
    {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8,
     "m.safetensors: tensor a: data_offsets: expected begin <= end, found [8, 0]"},
    {R"({"a":{"dtype":"F32","shape":[4611686018427387904,8],"data_offsets":[0,8]}})", 8,
     "m.safetensors: tensor a: shape [4611686018427387904, 8] of F32 overflows"},
    {R"({"a":{"dtype":"F32","shape":[4611686018427387904,4611686018427387904,0],"data_offsets":[0,0]}})", 0,
     "m.safetensors: tensor a: shape [4611686018427387904, 4611686018427387904, 0] of F32 overflows"},
    {R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]}})", 8,
     "m.safetensors: tensor a: shape: 18446744073709551615 is too large"},
    {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,8]}})", 8,
     "m.safetensors: tensor a: shape: expected a number that is not negative, found a negative number"},
    {R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,8]}})", 8,
     "m.safetensors: tensor a: shape: expected a number that is not negative, found a fraction"},
    {R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}})", 4,
     "m.safetensors: tensor a: shape: expected at most 8 numbers, found more"},
    {R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})", 4,
     "m.safetensors: tensor a: shape: expected a number that is not negative, found an array"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})", 4,
     "m.safetensors: tensor a: data_offsets: expected at most 2 numbers, found more"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4,
     "m.safetensors: tensor a: data_offsets: expected 2 numbers, found 1"},
    {R"({"a":{"dtype":"F6","shape":[1],"data_offsets":[0,4]}})", 4,
     "m.safetensors: tensor a: dtype: dtype F6 is not known"},
    {R"({"a":{"dtype":"F4","shape":[2,3],"data_offsets":[0,3]}})", 3,
     "m.safetensors: tensor a: expected rows of whole bytes, found shape [2, 3] of F4"},
    {R"({"a":{"dtype":3,"shape":[1],"data_offsets":[0,4]}})", 4,
     "m.safetensors: tensor a: dtype: expected a string, found a number"},
    {R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4, "m.safetensors: tensor a: dtype is missing"},
    {R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4, "m.safetensors: tensor a: shape is missing"},
    {R"({"a":{"dtype":"F32","shape":[1]}})", 4, "m.safetensors: tensor a: data_offsets is missing"},
    {R"({"a":{"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]}})", 4,
     "m.safetensors: tensor a: shape: expected once, found twice"},
    {R"({"a":{"dtype":"F32","shape":[1],"offsets":[0,4]}})", 4,
     "m.safetensors: tensor a: expected dtype, shape and data_offsets, found offsets"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
     8, "m.safetensors: tensor a: expected once, found twice"},
    {R"({"a":[1]})", 0, "m.safetensors: tensor a: expected an object, found an array"},
    {R"({"a\nb":null})", 0, "m.safetensors: tensor a\\x0ab: expected an object, found null"},
    {R"({"__metadata__":{"a":{}}})", 0, "m.safetensors: __metadata__: a: expected a string, found an object"},
    {R"([])", 0, "m.safetensors: header: expected an object, found an array"},
    {R"({"a":)", 0, "m.safetensors: not valid JSON near byte 6"},
    {R"({}{})", 0, "m.safetensors: not valid JSON near byte 3"},
    {"", 0, "m.safetensors: not valid JSON near byte 1"},
};

TEST(Safetensors, BrokenFilesAreRefusedWithOneLine) {
  for (const BadFile& bad : kBadFiles) {
    const auto checkpoint = read(safetensors_bytes(bad.header, bad.data));
    ASSERT_FALSE(checkpoint) << bad.header;
    EXPECT_EQ(checkpoint.error().message, bad.message) << bad.header;
    expect_one_line(checkpoint.error().message);
  }
}

TEST(Safetensors, HeaderLengthIsChecked) {
  EXPECT_EQ(read(Bytes().u32(1).get()).error().message,
            "m.safetensors: expected 8 bytes of header length, found a file of 4 bytes");
  EXPECT_EQ(read({}).error().message,
            "m.safetensors: expected 8 bytes of header length, found a file of 0 bytes");
  EXPECT_EQ(read(Bytes().u64(0xa766).text("{}").get()).error().message,
            "m.safetensors: expected a header of 42854 bytes, found 2 bytes after its length");
  EXPECT_EQ(read(Bytes().u64(UINT64_MAX).text("{}").get()).error().message,
            "m.safetensors: expected a header of 18446744073709551615 bytes, found 2 bytes after its length");
}

TEST(Safetensors, LegalOdditiesLoad) {
  // An odd number of bytes first, so that all others are unaligned; empty tensors; a scalar; metadata; spaces
  // after the header.
  const auto bytes = safetensors_bytes(
      R"({"odd":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"f":{"dtype":"F32","shape":[2],"data_offsets":[3,11]},)"
      R"("__metadata__":{"format":"pt"},"empty":{"dtype":"F32","shape":[2,0],"data_offsets":[3,3]},)"
      R"("scalar":{"shape":[],"dtype":"F64","data_offsets":[11,19]},"end":{"dtype":"F32","shape":[0],"data_offsets":[19,19]}}    )",
      19);
  const auto checkpoint = read(bytes);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  ASSERT_EQ((*checkpoint)->tensors().size(), 5U);
  const TensorEntry* unaligned = (*checkpoint)->find("f");
  ASSERT_NE(unaligned, nullptr);
  float values[2] = {1, 1};
  decode_row(matrix_view(*unaligned), 0, 0, 2, values);
  EXPECT_EQ(values[0], 0);
  EXPECT_EQ((*checkpoint)->find("empty")->bytes.size(), 0U);
  EXPECT_EQ((*checkpoint)->find("empty")->shape, (Shape{2, 0}));
  EXPECT_EQ((*checkpoint)->find("scalar")->shape.rank(), 0);
  EXPECT_EQ((*checkpoint)->find("absent"), nullptr);
  EXPECT_EQ((*checkpoint)->total_bytes(), 19U);
  EXPECT_TRUE(read(safetensors_bytes("{}", 0)));
}

TEST(Safetensors, EveryTruncationIsAnError) {
  const TemporaryFolder folder;
  std::vector<SmallTensor> tensors;
  for (int i = 0; i < 8; ++i)
    tensors.push_back(make_tensor(fmt::format("layers.{}.weight", i), {8, 16},
                                  Format::plain(i % 2 ? DType::kBF16 : DType::kF32)));
  write_safetensors(folder.file("m.safetensors"), tensors, {{"format", "pt"}});
  const std::vector<std::byte> whole = folder.read("m.safetensors");
  ASSERT_TRUE(read(whole));
  size_t cuts = 0;
  for (size_t size = 0; size < whole.size(); size += size < 64 ? 1 : 64, ++cuts) {
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const auto checkpoint = read(cut);
    ASSERT_FALSE(checkpoint) << size;
    expect_one_line(checkpoint.error().message);
  }
  EXPECT_GT(cuts, 100U);
}

TEST(Safetensors, AHundredThousandTensorsAreQuick) {
  std::string header = "{";
  for (int i = 0; i < 100000; ++i)
    header += fmt::format(
        R"({}"model.layers.{}.experts.weight":{{"dtype":"U8","shape":[1],"data_offsets":[{},{}]}})",
        i == 0 ? "" : ",", i, i, i + 1);
  const auto bytes = safetensors_bytes(header + "}", 100000);
  const auto checkpoint = read(bytes);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_EQ((*checkpoint)->tensors().size(), 100000U);
  EXPECT_NE((*checkpoint)->find("model.layers.99999.experts.weight"), nullptr);
}

class Sharded : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.write("config.json", std::string_view(R"({"model_type": "none"})"));
    write_safetensors(folder_.file("model-00001-of-00002.safetensors"),
                      {make_tensor("a", {4, 8}, Format::plain(DType::kF32)),
                       make_tensor("b", {4}, Format::plain(DType::kF16))});
    write_safetensors(folder_.file("model-00002-of-00002.safetensors"),
                      {make_tensor("c", {2, 2}, Format::plain(DType::kBF16))});
  }
  void write_index(std::string_view map) {
    folder_.write(
        "model.safetensors.index.json",
        fmt::format(R"({{"metadata": {{"total_size": 144, "more": [1, {{}}]}}, "weight_map": {}}})", map));
  }
  std::string error() {
    const auto checkpoint = Checkpoint::open(folder_.path());
    EXPECT_FALSE(checkpoint);
    if (checkpoint) return "no error";
    expect_one_line(checkpoint.error().message);
    std::string message = checkpoint.error().message;
    const std::string prefix = folder_.path() + "/";
    EXPECT_EQ(message.substr(0, prefix.size()), prefix);
    return message.substr(std::min(message.size(), prefix.size()));
  }

  static constexpr const char* kWholeMap = R"({"a": "model-00001-of-00002.safetensors",
    "c": "model-00002-of-00002.safetensors", "b": "model-00001-of-00002.safetensors"})";
  TemporaryFolder folder_;
};

TEST_F(Sharded, ReadsEveryShard) {
  write_index(kWholeMap);
  folder_.write("tokenizer.json", std::string_view("{}"));
  const auto checkpoint = Checkpoint::open(folder_.path());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_EQ((*checkpoint)->kind(), CheckpointKind::kSafetensors);
  ASSERT_EQ((*checkpoint)->tensors().size(), 3U);
  EXPECT_EQ((*checkpoint)->tensors()[0].name, "a");
  EXPECT_EQ((*checkpoint)->file_name(*(*checkpoint)->find("c")),
            folder_.file("model-00002-of-00002.safetensors"));
  ASSERT_NE((*checkpoint)->config(), nullptr);
  EXPECT_EQ((*checkpoint)->companion("tokenizer.json"), folder_.file("tokenizer.json"));
  EXPECT_EQ((*checkpoint)->companion("merges.txt"), std::nullopt);
  EXPECT_EQ((*checkpoint)->total_bytes(), 128U + 8 + 8);
}

TEST_F(Sharded, IndexAndShardsMustAgree) {
  write_index(R"({"a": "model-00001-of-00002.safetensors", "b": "model-00001-of-00002.safetensors",
                  "c": "model-00002-of-00002.safetensors", "d": "model-00002-of-00002.safetensors"})");
  EXPECT_EQ(error(),
            "model-00002-of-00002.safetensors: tensor d: expected in this file by "
            "model.safetensors.index.json, not found");
  write_index(R"({"a": "model-00001-of-00002.safetensors", "c": "model-00002-of-00002.safetensors"})");
  EXPECT_EQ(error(),
            "model-00001-of-00002.safetensors: tensor b: found, but model.safetensors.index.json does not "
            "name it for this file");
  write_index(R"({"b": "model-00001-of-00002.safetensors", "c": "model-00002-of-00002.safetensors"})");
  EXPECT_EQ(error(),
            "model-00001-of-00002.safetensors: tensor a: found, but model.safetensors.index.json does not "
            "name it for this file");
  write_index(R"({"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors",
                  "c": "model-00002-of-00002.safetensors"})");
  EXPECT_EQ(error(),
            "model-00001-of-00002.safetensors: tensor b: found, but model.safetensors.index.json does not "
            "name it for this file");
  write_index(R"({"a": "model-00003-of-00002.safetensors"})");
  EXPECT_EQ(error(), "model-00003-of-00002.safetensors: cannot open: No such file or directory");
}

TEST_F(Sharded, BrokenIndexesAreRefused) {
  write_index(R"({"a": "../model-00001-of-00002.safetensors"})");
  EXPECT_EQ(error(),
            "model.safetensors.index.json: tensor a: expected the name of a file in this folder, found "
            "../model-00001-of-00002.safetensors");
  write_index(R"({"a": ""})");
  EXPECT_EQ(error(),
            "model.safetensors.index.json: tensor a: expected the name of a file in this folder, found \"\"");
  write_index(R"({"a": 1})");
  EXPECT_EQ(error(), "model.safetensors.index.json: weight_map: a: expected a file name, found a number");
  write_index(R"({"a": {}})");
  EXPECT_EQ(error(), "model.safetensors.index.json: weight_map: a: expected a file name, found an object");
  write_index(R"({"a": "model-00001-of-00002.safetensors", "a": "model-00001-of-00002.safetensors"})");
  EXPECT_EQ(error(), "model.safetensors.index.json: tensor a: expected once, found twice");
  write_index("[]");
  EXPECT_EQ(error(), "model.safetensors.index.json: weight_map: expected an object, found an array");
  write_index("{}");
  EXPECT_EQ(error(), "model.safetensors.index.json: weight_map names no tensor");
  folder_.write("model.safetensors.index.json", std::string_view("{}"));
  EXPECT_EQ(error(), "model.safetensors.index.json: weight_map is missing");
  folder_.write("model.safetensors.index.json", std::string_view("3"));
  EXPECT_EQ(error(), "model.safetensors.index.json: index: expected an object, found a number");
}

TEST(Safetensors, FoldersWithoutWeightsOrConfig) {
  const TemporaryFolder folder;
  EXPECT_EQ(Checkpoint::open(folder.path()).error().message,
            folder.path() + ": expected a model folder, found no config.json");
  folder.write("config.json", std::string_view("{}"));
  EXPECT_EQ(Checkpoint::open(folder.path()).error().message,
            folder.path() +
                ": expected model.safetensors or model.safetensors.index.json, found 0 .safetensors files");
  folder.write("pytorch_model.bin", std::string_view("x"));
  EXPECT_EQ(Checkpoint::open(folder.path()).error().message,
            folder.path() +
                ": expected model.safetensors or model.safetensors.index.json, found pytorch_model.bin");
  write_safetensors(folder.file("weights.safetensors"), {make_tensor("a", {2}, Format::plain(DType::kF32))});
  EXPECT_TRUE(Checkpoint::open(folder.path()));
  EXPECT_TRUE(Checkpoint::open(folder.file("weights.safetensors")));
  folder.write("config.json", std::string_view("{"));
  EXPECT_EQ(Checkpoint::open(folder.path()).error().message,
            folder.file("config.json") + ": not valid JSON near line 1, column 2");
  EXPECT_EQ(Checkpoint::open(folder.file("none")).error().message,
            folder.file("none") + ": no such file or folder");
  folder.write("model.txt", std::string_view("x"));
  EXPECT_EQ(
      Checkpoint::open(folder.file("model.txt")).error().message,
      folder.file("model.txt") + ": expected a folder with config.json, a .safetensors file or a .gguf file");
}

}  // namespace
}  // namespace tessera
