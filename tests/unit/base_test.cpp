// base/ and tensor/: conversions checked over every bit pattern, the pool over many loops, JSON's odd
// spellings.
#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/checked_math.h"
#include "base/half.h"
#include "base/json.h"
#include "base/thread_pool.h"
#include "tensor/shape.h"
#include "tensor/weight.h"

namespace tessera {
namespace {

TEST(Half, EveryPatternSurvivesARoundTrip) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const Half half{static_cast<uint16_t>(bits)};
    const float value = to_float(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(to_float(to_half(value))));
    } else {
      ASSERT_EQ(to_half(value).bits, half.bits) << bits;
    }
    const BFloat16 bfloat{static_cast<uint16_t>(bits)};
    if (!std::isnan(to_float(bfloat))) {
      ASSERT_EQ(to_bfloat16(to_float(bfloat)).bits, bfloat.bits);
    }
  }
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(to_half(1.0f + 0x1p-11f).bits, 0x3c00);      // tie to even
  EXPECT_EQ(to_half(1.0f + 3 * 0x1p-11f).bits, 0x3c02);  // tie to even, upwards
  EXPECT_EQ(to_half(65504.0f).bits, 0x7bff);
  EXPECT_EQ(to_half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(to_half(0x1p-25f).bits, 0x0000);
  EXPECT_EQ(to_half(0x1.8p-25f).bits, 0x0001);
  EXPECT_EQ(to_half(-0x1p-24f).bits, 0x8001);
  EXPECT_EQ(to_bfloat16(1.0f + 0x1p-8f).bits, 0x3f80);
  EXPECT_EQ(to_bfloat16(1.0f + 3 * 0x1p-8f).bits, 0x3f82);
}

TEST(ThreadPool, RunsEveryIndexOnce) {
  ThreadPool pool(4);
  for (int round = 0; round < 2000; ++round) {
    const int64_t count = round % 37;
    std::vector<std::atomic<int>> hits(static_cast<size_t>(count));
    pool.run(count, [&](int64_t i, int) { hits[static_cast<size_t>(i)].fetch_add(1); });
    for (const auto& hit : hits) ASSERT_EQ(hit.load(), 1);
  }
}

TEST(CheckedMath, RefusesWhatDoesNotFit) {
  EXPECT_FALSE(checked_multiply(uint64_t{1} << 40, uint64_t{1} << 40));
  EXPECT_FALSE(checked_add(UINT64_MAX, 1));
  EXPECT_TRUE(range_fits(10, 0, 10));
  EXPECT_FALSE(range_fits(10, 1, 10));
  EXPECT_FALSE(range_fits(UINT64_MAX, 2, 10));
}

TEST(Json, ReadsPythonsNumbers) {
  const auto value = parse_python_json(
      R"({"a": Infinity, "b": [-Infinity, NaN], "c": {"__float__": "Infinity"}, "d": "NaN"})", "x");
  ASSERT_TRUE(value) << value.error().message;
  EXPECT_TRUE(std::isinf((*value)["a"].get<double>()));
  EXPECT_LT((*value)["b"][0].get<double>(), 0);
  EXPECT_TRUE(std::isnan((*value)["b"][1].get<double>()));
  EXPECT_TRUE(std::isinf((*value)["c"].get<double>()));
  EXPECT_EQ((*value)["d"].get<std::string>(), "NaN");
}

TEST(Json, ErrorsNameTheFileAndThePlace) {
  const auto value = parse_json("{\n  \"a\": 1,\n  oops\n}", "config.json");
  ASSERT_FALSE(value);
  EXPECT_NE(value.error().message.find("config.json: not valid JSON near line 3"), std::string::npos)
      << value.error().message;
  EXPECT_FALSE(parse_json(std::string(100000, '['), "deep.json"));
  const auto wrong = json_integer(*parse_json(R"({"n": "4"})", "x"), "n", "config.json");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "config.json: n: expected an integer, found a string");
}

TEST(Weight, RowSlicesAreViews) {
  std::vector<float> data(24);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i);
  Weight weight{Format::plain(DType::kF32), 6, 4, {}};
  weight.planes[0] = {reinterpret_cast<const std::byte*>(data.data()), 16};
  const Weight odd = weight.slice_rows(1, 3, 2);
  EXPECT_EQ(*reinterpret_cast<const float*>(odd.planes[0].row(2)), 20.0f);
  EXPECT_EQ(Shape({2, 3, 4}).rows(), 6);
  EXPECT_EQ(Shape({4096, 1024}).to_string(), "[4096, 1024]");
}

}  // namespace
}  // namespace tessera
