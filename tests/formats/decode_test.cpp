// Decoding of every block format against vectors from the reference, bit for bit, and of plain element types.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "formats/format_info.h"
#include "golden_file.h"

namespace tessera {
namespace {

constexpr const char* kVectors = "tests/goldens/gguf/quant_vectors.safetensors";

TEST(Decode, EveryBlockFormatEqualsTheReferenceBitForBit) {
  const GoldenFile golden = GoldenFile::open(kVectors);
  int compared = 0;
  for (const FormatInfo& info : format_table()) {
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

}  // namespace
}  // namespace tessera
