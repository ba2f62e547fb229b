// The GGUF reader: every metadata type, files broken in one way each, every truncation, split sets.
#include <gtest/gtest.h>

#include <functional>

#include "checkpoint/gguf_layout.h"
#include "checkpoint_files.h"

namespace tessera {
namespace {

Result<std::shared_ptr<const Checkpoint>> read(std::span<const std::byte> bytes) {
  return Checkpoint::from_gguf(bytes, "m.gguf");
}

// One F32 tensor "t" [2, 8] and one u32 pair "k" = 7, with every field open to change. The fields' places:
// magic 0, version 4, tensors 8, pairs 16, key length 24, key 32, type 33, value 37, name length 41, name 49,
// rank 50, dims 54 62, format 70, offset 74, end of the list 82, data 96.
struct File {
  uint32_t magic = kGgufMagic;
  uint32_t version = 3;
  uint64_t tensors = 1;
  uint64_t pairs = 1;
  std::function<void(Bytes&)> pair = [](Bytes& out) { out.string("k").u32(4).u32(7); };
  std::string name = "t";
  uint32_t rank = 2;
  std::vector<uint64_t> dims = {8, 2};
  uint32_t format = 0;
  uint64_t offset = 0;
  size_t data = 64;

  [[nodiscard]] std::vector<std::byte> bytes() const {
    Bytes out;
    out.u32(magic).u32(version).u64(tensors).u64(pairs);
    pair(out);
    out.string(name).u32(rank);
    for (const uint64_t dim : dims) out.u64(dim);
    out.u32(format).u64(offset).pad(32).zeros(data);
    return out.get();
  }
};

struct BadFile {
  std::function<void(File&)> change;
  const char* message;
};

std::function<void(File&)> with_pair(std::function<void(Bytes&)> pair) {
  return [pair](File& file) { file.pair = pair; };
}

TEST(Gguf, TheSmallFileLoads) {
  const auto bytes = File().bytes();
  const auto checkpoint = read(bytes);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  ASSERT_EQ((*checkpoint)->tensors().size(), 1U);
  EXPECT_EQ((*checkpoint)->tensors()[0].shape, (Shape{2, 8}));
  EXPECT_EQ((*checkpoint)->tensors()[0].bytes.size(), 64U);
  EXPECT_EQ(std::get<uint64_t>((*checkpoint)->metadata().at("k").value), 7U);
  EXPECT_EQ((*checkpoint)->kind(), CheckpointKind::kGguf);
  EXPECT_EQ((*checkpoint)->config(), nullptr);
}

TEST(Gguf, BrokenFilesAreRefusedWithOneLine) {
  const BadFile bad_files[] = {
      {[](File& f) { f.magic = 0x464a4747; },
       "m.gguf: expected a GGUF file, found the first four bytes 47474a46"},
      {[](File& f) { f.version = 0x03000000; },
       "m.gguf: a big-endian GGUF file: only little-endian ones are read"},
      {[](File& f) { f.version = 1; }, "m.gguf: GGUF version: expected 2 or 3, found 1"},
      {[](File& f) { f.version = 4; }, "m.gguf: GGUF version: expected 2 or 3, found 4"},
      {[](File& f) { f.pairs = uint64_t{1} << 32; },
       "m.gguf: 4294967296 metadata pairs do not fit into 136 bytes"},
      {[](File& f) { f.tensors = UINT64_MAX; },
       "m.gguf: 18446744073709551615 tensors do not fit into 136 bytes"},
      {with_pair([](Bytes& out) { out.string("").u32(4).u32(7); }),
       "m.gguf: metadata key at byte 24: expected 1 to 65535 bytes, found 0"},
      {with_pair([](Bytes& out) { out.u64(0xffffffffffff).text("k").u32(4).u32(7); }),
       "m.gguf: metadata key at byte 32: expected 281474976710655 bytes, found 128"},
      {with_pair([](Bytes& out) { out.string("k").u32(13).u32(7); }),
       "m.gguf: metadata k at byte 33: expected a type below 13, found 13"},
      {with_pair([](Bytes& out) { out.string("k").u32(7).number(uint8_t{2}); }),
       "m.gguf: metadata k at byte 37: expected 0 or 1, found 2"},
      {with_pair([](Bytes& out) { out.string("k").u32(8).u64(1000); }),
       "m.gguf: metadata value at byte 45: expected 1000 bytes, found 115"},
      {with_pair([](Bytes& out) { out.string("k").u32(9).u32(0).u64(1000); }),
       "m.gguf: metadata k at byte 49: 1000 elements do not fit into 111 bytes"},
      {with_pair([](Bytes& out) { out.string("k").u32(9).u32(8).u64(UINT64_MAX); }),
       "m.gguf: metadata k at byte 49: 18446744073709551615 elements do not fit into 111 bytes"},
      {with_pair([](Bytes& out) {
         out.string("k").u32(9);
         for (int i = 0; i < 8; ++i) out.u32(9).u64(1);
       }),
       "m.gguf: metadata k: arrays nested deeper than 4"},
      {with_pair([](Bytes& out) { out.string("general.alignment").u32(4).u32(0); }),
       "m.gguf: general.alignment: expected a power of two up to 16777216, found 0"},
      {with_pair([](Bytes& out) { out.string("general.alignment").u32(4).u32(48); }),
       "m.gguf: general.alignment: expected a power of two up to 16777216, found 48"},
      {with_pair([](Bytes& out) { out.string("general.alignment").u32(4).u32(1U << 30); }),
       "m.gguf: general.alignment: expected a power of two up to 16777216, found 1073741824"},
      {with_pair([](Bytes& out) { out.string("general.alignment").u32(6).number(32.0F); }),
       "m.gguf: general.alignment: expected an unsigned integer"},
      {with_pair([](Bytes& out) { out.string("general.alignment").u32(4).u32(1U << 20); }),
       "m.gguf: expected data from byte 1048576, found a file of 192 bytes"},
      {[](File& f) {
         f.pairs = 2;
         f.pair = [](Bytes& out) { out.string("k").u32(4).u32(7).string("k").u32(4).u32(7); };
       },
       "m.gguf: metadata k: expected once, found twice"},
      {[](File& f) { f.name = ""; }, "m.gguf: tensor name at byte 41: expected 1 to 65535 bytes, found 0"},
      {[](File& f) { f.rank = 9; }, "m.gguf: tensor t at byte 50: expected at most 4 dimensions, found 9"},
      {[](File& f) {
         f.dims = {0, 2};
       },
       "m.gguf: tensor t at byte 54: expected a dimension of at least 1, found 0"},
      {[](File& f) {
         f.dims = {8, (uint64_t{1} << 42) + 1};
       },
       "m.gguf: tensor t: expected 140737488355360 bytes for F32 [4398046511105, 8] at offset 0 of the data, "
       "found 64 bytes of "
       "data"},
      {[](File& f) {
         f.dims = {uint64_t{1} << 40, uint64_t{1} << 40};
       },
       "m.gguf: tensor t at byte 62: dimension 1099511627776: the size overflows"},
      {[](File& f) {
         f.dims = {UINT64_MAX, 1};
       },
       "m.gguf: tensor t at byte 54: dimension 18446744073709551615: the size overflows"},
      {[](File& f) { f.format = 41; },
       "m.gguf: tensor t at byte 70: format 41 (Q1_0, 1-bit) is not computed"},
      {[](File& f) { f.format = 42; },
       "m.gguf: tensor t at byte 70: format 42 (Q2_0, 2-bit) is not computed"},
      {[](File& f) { f.format = 4; },
       "m.gguf: tensor t at byte 70: format 4 (Q4_2, withdrawn) is not computed"},
      {[](File& f) { f.format = 99; }, "m.gguf: tensor t at byte 70: format 99 (unknown) is not computed"},
      {[](File& f) { f.format = 2; },
       "m.gguf: tensor t: expected rows of a multiple of 32 values for Q4_0, found shape [2, 8]"},
      {[](File& f) { f.offset = 8; },
       "m.gguf: tensor t: expected 64 bytes for F32 [2, 8] at offset 8 of the data, found 64 bytes of data"},
      {[](File& f) {
         f.offset = 32;
         f.data = 96;
       },
       "m.gguf: tensor t: a gap before it: expected its data at offset 0, found 32"},
      {[](File& f) { f.offset = UINT64_MAX; },
       "m.gguf: tensor t: expected 64 bytes for F32 [2, 8] at offset 18446744073709551615 of the data, found "
       "64 bytes of data"},
      {[](File& f) { f.data = 60; },
       "m.gguf: tensor t: expected 64 bytes for F32 [2, 8] at offset 0 of the data, found 60 bytes of data"},
      {with_pair([](Bytes& out) { out.string("split.count").u32(2).number(uint16_t{3}); }),
       "m.gguf: part 1 of 3 of a split set cannot be read from memory"},
  };
  for (const BadFile& bad : bad_files) {
    File file;
    bad.change(file);
    const auto bytes = file.bytes();
    const auto checkpoint = read(bytes);
    ASSERT_FALSE(checkpoint) << bad.message;
    EXPECT_EQ(checkpoint.error().message, bad.message);
    expect_one_line(checkpoint.error().message);
  }
}

// Two tensors with free names and offsets.
std::string error_of_two(std::string_view second_name, uint64_t second_offset, size_t data) {
  Bytes out;
  out.u32(kGgufMagic).u32(3).u64(2).u64(0);
  out.string("a").u32(1).u64(10).u32(0).u64(0);
  out.string(second_name).u32(1).u64(8).u32(0).u64(second_offset);
  out.pad(32).zeros(data);
  const auto checkpoint = read(out.get());
  return checkpoint ? "loads" : checkpoint.error().message;
}

TEST(Gguf, PlacesOfTensorsAreChecked) {
  EXPECT_EQ(error_of_two("b", 64, 96), "loads");
  EXPECT_EQ(error_of_two("a", 64, 96), "m.gguf: tensor a: expected once, found twice");
  EXPECT_EQ(error_of_two("b", 32, 96),
            "m.gguf: tensor b: overlaps another: expected its data at offset 64, found 32");
  EXPECT_EQ(error_of_two("b", 40, 96),
            "m.gguf: tensor b: not aligned: expected its data at offset 64, found 40");
  EXPECT_EQ(error_of_two("b", 96, 128),
            "m.gguf: tensor b: a gap before it: expected its data at offset 64, found 96");
}

TEST(Gguf, EveryMetadataTypeIsReadAndWrittenBack) {
  const TemporaryFolder folder;
  GgufMetadata metadata;
  metadata["u8"] = {uint64_t{255}, GgufType::kU8};
  metadata["i8"] = {int64_t{-128}, GgufType::kI8};
  metadata["u16"] = {uint64_t{65535}, GgufType::kU16};
  metadata["i16"] = {int64_t{-32768}, GgufType::kI16};
  metadata["u32"] = {uint64_t{4294967295}, GgufType::kU32};
  metadata["i32"] = {int64_t{INT32_MIN}, GgufType::kI32};
  metadata["u64"] = {uint64_t{UINT64_MAX}, GgufType::kU64};
  metadata["i64"] = {int64_t{INT64_MIN}, GgufType::kI64};
  metadata["f32"] = {1.5, GgufType::kF32};
  metadata["f64"] = {0.1, GgufType::kF64};
  metadata["true"] = {true, GgufType::kBool};
  metadata["false"] = {false, GgufType::kBool};
  metadata["string"] = {std::string("a\0b\n", 4), GgufType::kString};
  const auto inner = [](int64_t value) {
    return GgufValue{GgufArray{GgufValue{value, GgufType::kI32}}, GgufType::kArray, GgufType::kI32};
  };
  metadata["nested"] = {GgufArray{inner(1), inner(-2)}, GgufType::kArray, GgufType::kArray};
  metadata["strings"] = {
      GgufArray{GgufValue{std::string("x"), GgufType::kString}, GgufValue{std::string(), GgufType::kString}},
      GgufType::kArray, GgufType::kString};
  metadata["empty"] = {GgufArray{}, GgufType::kArray, GgufType::kF32};
  write_gguf(folder.file("m.gguf"), {}, metadata);
  const auto checkpoint = Checkpoint::open(folder.file("m.gguf"));
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  const GgufMetadata& read_back = (*checkpoint)->metadata();
  ASSERT_EQ(read_back.size(), metadata.size());
  for (const char* key : {"u8", "u16", "u32", "u64"})
    EXPECT_EQ(std::get<uint64_t>(read_back.at(key).value), std::get<uint64_t>(metadata.at(key).value)) << key;
  for (const char* key : {"i8", "i16", "i32", "i64"})
    EXPECT_EQ(std::get<int64_t>(read_back.at(key).value), std::get<int64_t>(metadata.at(key).value)) << key;
  EXPECT_EQ(std::get<double>(read_back.at("f32").value), 1.5);
  EXPECT_EQ(std::get<double>(read_back.at("f64").value), 0.1);
  EXPECT_TRUE(std::get<bool>(read_back.at("true").value));
  EXPECT_FALSE(std::get<bool>(read_back.at("false").value));
  EXPECT_EQ(std::get<std::string>(read_back.at("string").value), std::string("a\0b\n", 4));
  const auto& nested = std::get<GgufArray>(read_back.at("nested").value);
  ASSERT_EQ(nested.size(), 2U);
  EXPECT_EQ(std::get<int64_t>(std::get<GgufArray>(nested[1].value)[0].value), -2);
  EXPECT_EQ(std::get<std::string>(std::get<GgufArray>(read_back.at("strings").value)[0].value), "x");
  for (const auto& [key, value] : metadata) {
    EXPECT_EQ(read_back.at(key).type, value.type) << key;
    EXPECT_EQ(read_back.at(key).element, value.element) << key;
  }
  write_gguf(folder.file("again.gguf"), {}, read_back);
  EXPECT_EQ(folder.read("again.gguf"), folder.read("m.gguf"));
}

TEST(Gguf, EveryTruncationIsAnErrorUntilOnlyPaddingIsCut) {
  const TemporaryFolder folder;
  std::vector<SmallTensor> tensors;
  for (int i = 0; i < 8; ++i)
    tensors.push_back(make_tensor(fmt::format("blk.{}.weight", i), {3, 32},
                                  i % 2 ? Format::block(FormatKind::kQ8_0) : Format::plain(DType::kF32)));
  GgufMetadata metadata;
  metadata["general.architecture"] = {std::string("none")};
  metadata["tokens"] = {GgufArray{GgufValue{std::string("a")}, GgufValue{std::string("b")}}};
  metadata["general.alignment"] = {uint64_t{64}};
  write_gguf(folder.file("m.gguf"), tensors, metadata);
  const std::vector<std::byte> whole = folder.read("m.gguf");
  ASSERT_TRUE(read(whole));
  ASSERT_EQ(whole.size() % 64, 0U);
  size_t errors = 0;
  for (size_t size = 0; size < whole.size(); size += size < 1024 ? 1 : 64) {
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const auto checkpoint = read(cut);
    ASSERT_FALSE(checkpoint) << size;
    expect_one_line(checkpoint.error().message);
    ++errors;
  }
  EXPECT_GT(errors, 1000U);
  const size_t padding = 64 - 3 * 34 % 64;  // behind the last tensor
  EXPECT_TRUE(read(std::span(whole).first(whole.size() - padding)));
  EXPECT_FALSE(read(std::span(whole).first(whole.size() - padding - 1)));
}

class SplitSet : public ::testing::Test {
 protected:
  std::string part(int number) const {
    return folder_.file(fmt::format("m-{:05}-of-00003.gguf", number + 1));
  }
  void write_part(int number, const std::vector<SmallTensor>& tensors, uint64_t says_number,
                  uint64_t says_count) {
    GgufMetadata metadata;
    metadata["split.no"] = {says_number, GgufType::kU16};
    metadata["split.count"] = {says_count, GgufType::kU16};
    metadata["split.tensors.count"] = {int64_t{3}, GgufType::kI32};
    if (number == 0) metadata["general.architecture"] = {std::string("none")};
    write_gguf(part(number), tensors, metadata);
  }
  void SetUp() override {
    write_part(0, {}, 0, 3);
    write_part(1, {make_tensor("a", {4}, kF32), make_tensor("c", {4}, kF32)}, 1, 3);
    write_part(2, {make_tensor("b", {4}, kF32)}, 2, 3);
  }
  static constexpr Format kF32{};
  TemporaryFolder folder_;
};

TEST_F(SplitSet, TheFirstPartBringsTheOthers) {
  const auto checkpoint = Checkpoint::open(part(0));
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  ASSERT_EQ((*checkpoint)->tensors().size(), 3U);
  EXPECT_EQ((*checkpoint)->file_name(*(*checkpoint)->find("b")), part(2));
  EXPECT_TRUE((*checkpoint)->metadata().contains("general.architecture"));
}

TEST_F(SplitSet, WrongPartsAreRefused) {
  EXPECT_EQ(Checkpoint::open(part(1)).error().message,
            part(1) + ": part 2 of 3: open the first part, " + part(0));
  write_part(2, {make_tensor("b", {4}, kF32)}, 1, 3);
  EXPECT_EQ(Checkpoint::open(part(0)).error().message, part(2) + ": expected part 3 of 3, found part 2 of 3");
  write_part(2, {make_tensor("b", {4}, kF32), make_tensor("d", {4}, kF32)}, 2, 3);
  EXPECT_EQ(Checkpoint::open(part(0)).error().message,
            part(0) + ": split.tensors.count: expected 3 tensors in 3 files, found 4");
  write_part(2, {make_tensor("a", {4}, kF32)}, 2, 3);
  EXPECT_EQ(Checkpoint::open(part(0)).error().message,
            part(1) + ": tensor a: expected once, found twice and in " + part(2));
  std::filesystem::remove(part(2));
  EXPECT_EQ(Checkpoint::open(part(0)).error().message, part(2) + ": cannot open: No such file or directory");
  std::filesystem::rename(part(0), folder_.file("m.gguf"));
  EXPECT_EQ(Checkpoint::open(folder_.file("m.gguf")).error().message,
            folder_.file("m.gguf") + ": part 1 of 3: expected a name ending in -00001-of-00003.gguf");
}

}  // namespace
}  // namespace tessera
