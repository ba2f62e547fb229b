// MLC folders: the manifest's text, and shards that are not what it says.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/mapped_file.h"
#include "base/md5.h"
#include "checkpoint/mlc_reader.h"

namespace tessera {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// RFC 1321, appendix A.5.
TEST(Md5, KnownSums) {
  EXPECT_EQ(md5_hex({}), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(md5_hex(bytes_of("abc")), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(
      md5_hex(bytes_of("12345678901234567890123456789012345678901234567890123456789012345678901234567890")),
      "57edf4a22be3c955ac49da2e2107b67a");
  EXPECT_EQ(md5_hex(bytes_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")),
            "d174ab98d277d9f5a5611c2c9f419d9f");
}

std::string manifest(const std::string& record,
                     const std::string& shard = R"("dataPath": "s.bin", "nbytes": 64)") {
  return R"({"records": [{)" + shard + R"(, "records": [)" + record + "]}]}";
}
std::string error_of(const std::string& text) {
  const auto shards = parse_mlc_manifest(text, "m.json");
  return shards ? "(read)" : shards.error().message;
}

TEST(MlcManifest, ReadsShardsAndFlatRecords) {
  const auto shards = parse_mlc_manifest(
      manifest(R"({"name": "a", "shape": [2, 4], "dtype": "float32", "format": "f32-to-bf16", "nbytes": 16,
                   "byteOffset": 48})"),
      "m.json");
  ASSERT_TRUE(shards) << shards.error().message;
  ASSERT_EQ(shards->size(), 1u);
  const MlcRecord& record = shards->front().records.at(0);
  EXPECT_EQ(record.element, DType::kBF16);
  EXPECT_EQ(record.offset, 48u);
  EXPECT_EQ(record.shape, (Shape{2, 4}));
  const auto flat = parse_mlc_manifest(
      R"({"records": [{"dataPath": "a.bin", "name": "a", "shape": [4], "dtype": "uint32", "nbytes": 16}]})",
      "m.json");
  ASSERT_TRUE(flat) << flat.error().message;
  EXPECT_EQ(flat->at(0).records.at(0).element, DType::kU32);
}

TEST(MlcManifest, RefusesWhatContradictsItself) {
  EXPECT_EQ(error_of("{}"), "m.json: records: expected an array, found none");
  EXPECT_EQ(error_of(R"({"records": []})"), "m.json: records: expected some, found none");
  EXPECT_EQ(error_of(manifest("", R"("dataPath": "../s.bin", "nbytes": 64)")),
            "m.json: dataPath: expected the name of a file in this folder, found ../s.bin");
  EXPECT_EQ(error_of(manifest("", R"("dataPath": "s.bin", "nbytes": -1)")),
            "m.json: s.bin: nbytes: expected a size, found -1");
  EXPECT_EQ(error_of(manifest(R"({"name": "a", "shape": [2, 4], "dtype": "float32", "nbytes": 16})")),
            "m.json: s.bin: tensor a: nbytes: expected 32 for [2, 4] of F32, found 16");
  EXPECT_EQ(error_of(manifest(
                R"({"name": "a", "shape": [4], "dtype": "float32", "nbytes": 16, "byteOffset": 49})")),
            "m.json: s.bin: tensor a: expected bytes inside a shard of 64, found 16 bytes from 49 on");
  EXPECT_EQ(error_of(manifest(R"({"name": "a", "shape": [4, 0], "dtype": "float32", "nbytes": 0})")),
            "m.json: s.bin: tensor a: shape: expected numbers of at least 1, found 0");
  EXPECT_EQ(error_of(manifest(
                R"({"name": "a", "shape": [4294967296, 4294967296, 2], "dtype": "float32", "nbytes": 0})")),
            "m.json: s.bin: tensor a: shape [4294967296, 4294967296, 2] overflows");
  EXPECT_EQ(error_of(manifest(R"({"name": "a", "shape": [4], "dtype": "complex64", "nbytes": 16})")),
            "m.json: s.bin: tensor a: dtype complex64 is not computed");
  EXPECT_EQ(error_of(R"({"records": [{"dataPath": "s", "nbytes": 0, "records": []},
                                     {"dataPath": "s", "nbytes": 0, "records": []}]})"),
            "m.json: s: expected once, found twice");
}

// A copy of a reference folder that a test may damage.
class MlcFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("tessera-mlc-" + std::to_string(::getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::copy("tests/goldens/formats/mlc_llama_q4f16_1", folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string error() const {
    const auto opened = Checkpoint::open(folder_.string());
    return opened ? "(opened)" : opened.error().message;
  }
  std::filesystem::path folder_;
};

TEST_F(MlcFolder, ChecksSizesAndSums) {
  EXPECT_EQ(error(), "(opened)");
  const std::filesystem::path shard = folder_ / "params_shard_1.bin";
  {
    std::fstream file(shard, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(100);
    file.put('x');
  }
  const std::string sum = md5_hex(bytes_of(*read_file(shard.string())));
  EXPECT_EQ(error(), shard.string() +
                         ": expected the MD5 sum 87ff1a229c4f9a9aea6b2ff56c804f2a as the manifest says, "
                         "found " +
                         sum);
  std::filesystem::resize_file(shard, 20991);
  EXPECT_EQ(error(), shard.string() + ": expected 20992 bytes as the manifest says, found 20991");
  std::filesystem::remove(shard);
  EXPECT_NE(error().find(shard.string()), std::string::npos);
  std::filesystem::remove(folder_ / "ndarray-cache.json");
  EXPECT_EQ(error(), folder_.string() + ": expected tensor-cache.json or ndarray-cache.json, found neither");
}

TEST_F(MlcFolder, TakesEitherNameOfTheManifest) {
  std::filesystem::rename(folder_ / "ndarray-cache.json", folder_ / "tensor-cache.json");
  EXPECT_EQ(error(), "(opened)");
}

}  // namespace
}  // namespace tessera
