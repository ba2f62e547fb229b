// Decoding of every block format against vectors from the reference, bit for bit, and of plain element types.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>

#include "formats/format_info.h"
#include "golden_file.h"

namespace tessera {
namespace {

constexpr const char* kVectors = "tests/goldens/gguf/quant_vectors.safetensors";

// Grouped formats and NVFP4 have no vectors there: grouped_test.cpp holds them to their formulas.
bool has_vectors(const FormatInfo& info) {
  return info.gguf_type.has_value() && info.kind != FormatKind::kNVFP4;
}

TEST(Decode, EveryBlockFormatEqualsTheReferenceBitForBit) {
  const GoldenFile golden = GoldenFile::open(kVectors);
  int compared = 0;
  for (const FormatInfo& info : format_table()) {
    if (!has_vectors(info)) continue;
    SCOPED_TRACE(std::string(info.name));
    const std::string name(info.name);
    ASSERT_TRUE(golden.has(name + ".blocks"));
    const std::vector<float> expected = golden.floats(name + ".values");
    const Shape shape = golden.shape(name + ".values");
    const auto bytes = golden.bytes(name + ".blocks");
    ASSERT_EQ(static_cast<int64_t>(bytes.size()),
              shape[0] * format_row_bytes(Format::block(info.kind), shape[1]));
    const Weight weight{Format::block(info.kind),
                        shape[0],
                        shape[1],
                        {Plane{bytes.data(), format_row_bytes(Format::block(info.kind), shape[1])}}};
    std::vector<float> values(static_cast<size_t>(shape[1]));
    int64_t wrong = 0;
    for (int64_t row = 0; row < shape[0]; ++row) {
      decode_row(weight, row, 0, shape[1], values.data());
      for (int64_t i = 0; i < shape[1]; ++i) {
        const float reference = expected[static_cast<size_t>(row * shape[1] + i)];
        const float value = values[static_cast<size_t>(i)];
        if (std::bit_cast<uint32_t>(value) != std::bit_cast<uint32_t>(reference) && wrong++ < 3)
          ADD_FAILURE() << "row " << row << " value " << i << ": expected " << reference << ", found "
                        << value;
        ++compared;
      }
    }
    EXPECT_EQ(wrong, 0);
  }
  EXPECT_EQ(compared, 22 * 2 * 512);
}

// A part of a row decodes to the same values as the whole row.
TEST(Decode, PartsOfRowsEqualTheWhole) {
  const GoldenFile golden = GoldenFile::open(kVectors);
  int compared = 0;
  for (const FormatInfo& info : format_table()) {
    if (!has_vectors(info)) continue;
    const std::string name(info.name);
    const std::vector<float> expected = golden.floats(name + ".values");
    const int64_t row_bytes = format_row_bytes(Format::block(info.kind), 512);
    const Weight weight{
        Format::block(info.kind), 2, 512, {Plane{golden.bytes(name + ".blocks").data(), row_bytes}}};
    std::vector<float> part(static_cast<size_t>(info.block_values));
    for (int64_t first = 0; first < 512; first += info.block_values, ++compared) {
      decode_row(weight, 1, first, info.block_values, part.data());
      EXPECT_TRUE(std::equal(part.begin(), part.end(), expected.begin() + 512 + first))
          << name << " from " << first;
    }
  }
  EXPECT_GT(compared, 22);
}

// No vectors of the reference: the definition in codebook_blocks.cpp, written out.
TEST(Decode, Nvfp4FollowsItsDefinition) {
  std::array<std::byte, 36> block{};
  const std::array<float, 4> scales = {1, 0.5F, 0x1p-9F, 0};  // 0x38, 0x30, 0x01, 0x7f
  block[0] = std::byte{0x38};
  block[1] = std::byte{0xb0};  // the sign counts for nothing
  block[2] = std::byte{0x01};
  block[3] = std::byte{0x7f};
  for (size_t i = 0; i < 32; ++i) block[4 + i] = static_cast<std::byte>(i * 41 & 255);
  const std::array<float, 16> levels = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6, 0, -0.5F, -1, -1.5F, -2, -3, -4, -6};
  const Weight weight{Format::block(FormatKind::kNVFP4), 1, 64, {Plane{block.data(), 36}}};
  std::array<float, 64> values{};
  decode_row(weight, 0, 0, 64, values.data());
  for (size_t i = 0; i < 64; ++i) {
    const size_t byte = i / 16 * 8 + i % 8;
    const auto packed = std::to_integer<unsigned>(block[4 + byte]);
    EXPECT_EQ(values[i], scales[i / 16] * levels[i % 16 < 8 ? packed & 15 : packed >> 4]) << i;
  }
}

template <class T>
std::vector<float> decode_elements(DType element, const std::vector<T>& elements) {
  const auto count = static_cast<int64_t>(elements.size());
  EXPECT_EQ(dtype_size(element), static_cast<int>(sizeof(T)));
  const Weight weight{
      Format::plain(element), 1, count, {Plane{reinterpret_cast<const std::byte*>(elements.data()), 0}}};
  std::vector<float> values(elements.size());
  decode_row(weight, 0, 0, count, values.data());
  return values;
}

using Floats = std::vector<float>;

TEST(Decode, PlainElementTypes) {
  EXPECT_EQ(decode_elements<float>(DType::kF32, {1.5F, -0.25F}), (Floats{1.5F, -0.25F}));
  EXPECT_EQ(decode_elements<double>(DType::kF64, {1.5, -1e300}), (Floats{1.5F, -INFINITY}));
  EXPECT_EQ(decode_elements<uint16_t>(DType::kF16, {0x3c00, 0xc000, 0x0001, 0x7c00}),
            (Floats{1, -2, 0x1p-24F, INFINITY}));
  EXPECT_EQ(decode_elements<uint16_t>(DType::kBF16, {0x3f80, 0xc000, 0x0001}), (Floats{1, -2, 0x1p-133F}));
  EXPECT_EQ(decode_elements<int64_t>(DType::kI64, {-3, int64_t{1} << 40}), (Floats{-3, 0x1p40F}));
  EXPECT_EQ(decode_elements<int32_t>(DType::kI32, {-3, 7}), (Floats{-3, 7}));
  EXPECT_EQ(decode_elements<int16_t>(DType::kI16, {-3, 7}), (Floats{-3, 7}));
  EXPECT_EQ(decode_elements<int8_t>(DType::kI8, {-128, 127}), (Floats{-128, 127}));
  EXPECT_EQ(decode_elements<uint64_t>(DType::kU64, {UINT64_MAX, 1}), (Floats{0x1p64F, 1}));
  EXPECT_EQ(decode_elements<uint32_t>(DType::kU32, {UINT32_MAX, 1}), (Floats{0x1p32F, 1}));
  EXPECT_EQ(decode_elements<uint16_t>(DType::kU16, {65535}), (Floats{65535}));
  EXPECT_EQ(decode_elements<uint8_t>(DType::kU8, {255}), (Floats{255}));
  EXPECT_EQ(decode_elements<uint8_t>(DType::kBool, {0, 1}), (Floats{0, 1}));
}

// OCP OFP8 1.0, tables 1 and 2.
TEST(Decode, EightBitFloats) {
  EXPECT_EQ(decode_elements<uint8_t>(DType::kF8E4M3, {0x00, 0x38, 0xb8, 0x7e, 0xfe, 0x01, 0x07, 0x08}),
            (Floats{0, 1, -1, 448, -448, 0x1p-9F, 7 * 0x1p-9F, 0x1p-6F}));
  EXPECT_EQ(decode_elements<uint8_t>(DType::kF8E5M2, {0x00, 0x3c, 0xbc, 0x7b, 0x01, 0x04, 0x7c, 0xfc}),
            (Floats{0, 1, -1, 57344, 0x1p-16F, 0x1p-14F, INFINITY, -INFINITY}));
  for (const uint8_t nan : {0x7f, 0xff})
    EXPECT_TRUE(std::isnan(decode_elements<uint8_t>(DType::kF8E4M3, {nan})[0]));
  for (const uint8_t nan : {0x7d, 0x7e, 0xff})
    EXPECT_TRUE(std::isnan(decode_elements<uint8_t>(DType::kF8E5M2, {nan})[0]));
  EXPECT_TRUE(std::signbit(decode_elements<uint8_t>(DType::kF8E4M3, {0x80})[0]));
  // Rising codes are rising values.
  for (uint8_t code = 0; code < 0x7e; ++code) {
    const Floats pair = decode_elements<uint8_t>(DType::kF8E4M3, {code, static_cast<uint8_t>(code + 1)});
    EXPECT_LT(pair[0], pair[1]) << static_cast<int>(code);
  }
}

TEST(FormatTable, NamesNumbersAndSizes) {
  for (const FormatInfo& info : format_table()) {
    EXPECT_NE(info.decode == nullptr, info.decode_group == nullptr) << info.name;
    EXPECT_FALSE(info.source.empty()) << info.name;
    if (info.decode == nullptr) continue;
    ASSERT_TRUE(info.gguf_type.has_value());
    EXPECT_EQ(format_from_gguf(*info.gguf_type), Format::block(info.kind)) << info.name;
    EXPECT_EQ(gguf_from_format(Format::block(info.kind)), info.gguf_type);
  }
  for (const DType element : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kI8, DType::kI16,
                              DType::kI32, DType::kI64})
    EXPECT_EQ(format_from_gguf(gguf_from_format(Format::plain(element)).value_or(99)),
              Format::plain(element));
  EXPECT_EQ(gguf_from_format(Format::plain(DType::kU8)), std::nullopt);
  EXPECT_EQ(format_from_gguf(41), std::nullopt);
  EXPECT_EQ(format_name(Format::block(FormatKind::kQ4K)), "Q4_K");
  EXPECT_EQ(format_name(Format::plain(DType::kBF16)), "BF16");
  EXPECT_EQ(format_bits_per_value(Format::block(FormatKind::kQ4_0)), 4.5);
  EXPECT_EQ(format_bits_per_value(Format::block(FormatKind::kIQ1S)), 1.5625);
  EXPECT_EQ(format_bits_per_value(Format::plain(DType::kF16)), 16);
}

}  // namespace
}  // namespace tessera
