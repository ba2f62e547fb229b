// Companions of every family: what codes and scales mean against the formula written out here, and the errors of damaged ones.
#include <gtest/gtest.h>

#include <cmath>

#include "base/half.h"
#include "formats/raw_checkpoint.h"

namespace tessera {
namespace {

// Scales that float16 and bfloat16 hold exactly.
std::vector<float> scales(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(1 + i % 13) / 64;
  return values;
}
std::vector<uint16_t> halves(const std::vector<float>& values) {
  std::vector<uint16_t> bits;
  for (const float value : values) bits.push_back(to_half(value).bits);
  return bits;
}
std::vector<uint16_t> bfloats(const std::vector<float>& values) {
  std::vector<uint16_t> bits;
  for (const float value : values) bits.push_back(to_bfloat16(value).bits);
  return bits;
}

void expect_values(const RawCheckpoint& raw, const std::string& name, const std::vector<float>& expected) {
  const auto checkpoint = raw.open();
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_EQ(values_of(**checkpoint, name), expected) << name;
}

std::string mlx_config(int bits, int group, const std::string& more = "") {
  return fmt::format(R"({{"quantization": {{"group_size": {}, "bits": {}{}}}}})", group, bits, more);
}

// --- MLX

TEST(Mlx, AffineAtEveryWidthAndGroup) {
  int compared = 0;
  for (const int bits : {2, 3, 4, 5, 6, 8})
    for (const int group : {32, 64, 128}) {
      const size_t rows = 3;
      const size_t columns = 256;
      const size_t groups = columns / static_cast<size_t>(group);
      const auto codes = random_codes(rows * columns, 1u << bits, static_cast<uint32_t>(bits * group));
      const auto s = scales(rows * groups);
      std::vector<float> b;
      for (const float scale : s) b.push_back(-scale * 3);
      std::vector<float> expected;
      for (size_t i = 0; i < codes.size(); ++i) {
        const size_t g = i / static_cast<size_t>(group);
        expected.push_back(s[g] * static_cast<float>(codes[i]) + b[g]);
      }
      const auto words = pack_words(codes, bits, columns);
      const Shape shape{3, static_cast<int64_t>(words.size() / rows)};
      const Shape scale_shape{3, static_cast<int64_t>(groups)};
      RawCheckpoint bf16(mlx_config(bits, group));
      bf16.add("a.weight", shape, DType::kU32, words).add("a.scales", scale_shape, DType::kBF16, bfloats(s));
      expect_values(bf16.add("a.biases", scale_shape, DType::kBF16, bfloats(b)), "a.weight", expected);
      RawCheckpoint f32(mlx_config(bits, group));
      f32.add("a.weight", shape, DType::kU32, words).add("a.scales", scale_shape, DType::kF32, s);
      expect_values(f32.add("a.biases", scale_shape, DType::kF32, b), "a.weight", expected);
      compared += 2;
    }
  EXPECT_EQ(compared, 36);
}

TEST(Mlx, OverridesByPath) {
  const auto four = random_codes(64, 16, 1);
  const auto eight = random_codes(64, 256, 2);
  RawCheckpoint raw(mlx_config(4, 64, R"(, "model.b": {"group_size": 32, "bits": 8}, "c": false)"));
  const std::vector<uint16_t> one = halves({1});
  const std::vector<uint16_t> zero = halves({0});
  raw.add("a.weight", Shape{1, 8}, DType::kU32, pack_words(four, 4, 64));
  raw.add("a.scales", Shape{1, 1}, DType::kF16, one).add("a.biases", Shape{1, 1}, DType::kF16, zero);
  // Named without the prefix that the config gives.
  raw.add("language_model.model.b.weight", Shape{1, 16}, DType::kU32, pack_words(eight, 8, 64));
  raw.add("language_model.model.b.scales", Shape{1, 2}, DType::kF16, halves({1, 1}));
  raw.add("language_model.model.b.biases", Shape{1, 2}, DType::kF16, halves({0, 0}));
  raw.add("c.weight", Shape{1, 2}, DType::kF16, halves({3, 4}));
  expect_values(raw, "a.weight", std::vector<float>(four.begin(), four.end()));
  expect_values(raw, "language_model.model.b.weight", std::vector<float>(eight.begin(), eight.end()));
  expect_values(raw, "c.weight", {3, 4});
}

constexpr std::array<float, 16> kE2M1 = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6, 0, -0.5F, -1, -1.5F, -2, -3, -4, -6};

TEST(Mlx, BlockScaledFloats) {
  const auto codes = random_codes(128, 16, 3);
  const std::vector<uint8_t> exponents = {127, 126, 129, 120};
  std::vector<float> expected;
  for (size_t i = 0; i < codes.size(); ++i)
    expected.push_back(kE2M1[codes[i]] * std::ldexp(1.0F, exponents[i / 32] - 127));
  RawCheckpoint mxfp4(mlx_config(4, 32, R"(, "mode": "mxfp4")"));
  mxfp4.add("a.weight", Shape{2, 8}, DType::kU32, pack_words(codes, 4, 64));
  expect_values(mxfp4.add("a.scales", Shape{2, 2}, DType::kU8, exponents), "a.weight", expected);

  const std::vector<uint8_t> e4m3 = {0x38, 0x40, 0x30, 0x39,
                                     0x38, 0x48, 0x28, 0x01};  // 1 2 .5 1.125 1 4 .25 2^-9
  const std::vector<float> e4m3_values = {1, 2, 0.5F, 1.125F, 1, 4, 0.25F, 0x1p-9F};
  expected.clear();
  for (size_t i = 0; i < codes.size(); ++i) expected.push_back(kE2M1[codes[i]] * e4m3_values[i / 16]);
  RawCheckpoint nvfp4(mlx_config(4, 16, R"(, "mode": "nvfp4")"));
  nvfp4.add("a.weight", Shape{2, 8}, DType::kU32, pack_words(codes, 4, 64));
  const auto opened = nvfp4.add("a.scales", Shape{2, 4}, DType::kU8, e4m3).open();
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(values_of(**opened, "a.weight"), expected);

  std::vector<uint8_t> bytes;
  expected.clear();
  for (size_t i = 0; i < 64; ++i) {
    bytes.push_back(e4m3[i % 8]);
    expected.push_back(e4m3_values[i % 8] * std::ldexp(1.0F, exponents[i / 32] - 127));
  }
  std::vector<uint32_t> words(16);
  std::memcpy(words.data(), bytes.data(), 64);
  RawCheckpoint mxfp8(mlx_config(8, 32, R"(, "mode": "mxfp8")"));
  mxfp8.add("a.weight", Shape{1, 16}, DType::kU32, words);
  expect_values(mxfp8.add("a.scales", Shape{1, 2}, DType::kU8, std::vector<uint8_t>{127, 126}), "a.weight",
                expected);
}

RawCheckpoint mlx_with(const std::string& config, const Shape& weight, const Shape& scale, DType element,
                       bool biases = true) {
  RawCheckpoint raw(config);
  raw.add("a.weight", weight, DType::kU32, std::vector<uint32_t>(static_cast<size_t>(weight.elements())));
  const auto bytes = static_cast<size_t>(scale.elements() * dtype_size(element));
  raw.add("a.scales", scale, element, std::vector<uint8_t>(bytes));
  if (biases) raw.add("a.biases", scale, element, std::vector<uint8_t>(bytes));
  return raw;
}

TEST(Mlx, RefusesWhatDoesNotFit) {
  const std::string four = mlx_config(4, 64);
  EXPECT_EQ(mlx_with(four, {2, 16}, {2, 4}, DType::kF16).error(),
            "raw.safetensors: tensor a.scales: expected shape [2, 2], found [2, 4]");
  EXPECT_EQ(mlx_with(four, {2, 16}, {2, 2}, DType::kU8).error(),
            "raw.safetensors: tensor a.scales: expected elements of BF16 or F16 or F32, found U8");
  EXPECT_EQ(mlx_with(four, {2, 16}, {2, 2}, DType::kF16, false).error(),
            "raw.safetensors: tensor a.weight: expected a tensor a.biases beside it, found none");
  EXPECT_EQ(mlx_with(four, {2, 12}, {2, 1}, DType::kF16).error(),
            "raw.safetensors: tensor a.weight: expected rows of a multiple of 64 codes, found 12 words of 32 "
            "bits: 96 codes of 4 bits");
  EXPECT_EQ(mlx_with(mlx_config(4, 48), {2, 12}, {2, 2}, DType::kF16).error(),
            "raw: quantization: group_size: expected 32, 64 or 128, found 48");
  EXPECT_EQ(mlx_with(mlx_config(7, 64), {2, 14}, {2, 1}, DType::kF16).error(),
            "raw: quantization: bits: expected 2, 3, 4, 5, 6 or 8, found 7");
  EXPECT_EQ(
      mlx_with(mlx_config(3, 64), {2, 4}, {2, 1}, DType::kF16).error(),
      "raw.safetensors: tensor a.weight: expected rows of whole 3-bit codes in 32-bit words, found shape "
      "[2, 4]");
  EXPECT_EQ(mlx_with(mlx_config(4, 64, R"(, "mode": "ternary")"), {2, 16}, {2, 2}, DType::kF16).error(),
            "raw: quantization: mode: expected affine, mxfp4, mxfp8 or nvfp4, found ternary");
  EXPECT_EQ(mlx_with(mlx_config(4, 64, R"(, "mode": "mxfp4")"), {2, 16}, {2, 2}, DType::kU8).error(),
            "raw: quantization: mode mxfp4: expected bits 4 and group_size 32, found 4 and 64");
  EXPECT_EQ(mlx_with(mlx_config(4, 64, R"(, "a": false)"), {2, 16}, {2, 2}, DType::kF16).error(),
            "raw.safetensors: tensor a.scales: expected none, as quantization.a is false, found it");
  RawCheckpoint alone(four);
  EXPECT_EQ(alone.add("a.weight", Shape{1, 8}, DType::kU32, std::vector<uint32_t>(8)).error(),
            "raw.safetensors: tensor a.weight: expected a tensor a.scales beside it, found none");
}

// --- FP8

const std::vector<uint8_t> kE4M3 = {0x38, 0x40, 0x30, 0xb9, 0x38, 0x48, 0xa8, 0x01};
const std::vector<float> kE4M3Values = {1, 2, 0.5F, -1.125F, 1, 4, -0.25F, 0x1p-9F};

struct Eights {
  std::vector<uint8_t> codes;
  std::vector<float> values;
};
Eights eights(size_t count) {
  Eights all;
  for (size_t i = 0; i < count; ++i) {
    all.codes.push_back(kE4M3[i * 5 % 8]);
    all.values.push_back(kE4M3Values[i * 5 % 8]);
  }
  return all;
}

TEST(Float8, ScalesOfAMatrixARowABlockAndAnExpert) {
  const std::string plain = R"({"quantization_config": {"quant_method": "fp8"}})";
  const Eights all = eights(2 * 5 * 7);
  const auto scaled = [&](const std::function<float(size_t matrix, size_t row, size_t column)>& scale) {
    std::vector<float> values;
    for (size_t i = 0; i < all.values.size(); ++i)
      values.push_back(all.values[i] * scale(i / 35, i / 7, i % 7));
    return values;
  };
  const auto raw = [&](const std::string& config, const Shape& shape, const char* ending, const Shape& scale,
                       const std::vector<float>& values) {
    RawCheckpoint made(config);
    made.add("a.weight", shape, DType::kF8E4M3, all.codes);
    return made.add(std::string("a.weight") + ending, scale, DType::kF32, values);
  };
  expect_values(raw(plain, {10, 7}, "_scale", {}, {0.25F}), "a.weight",
                scaled([](size_t, size_t, size_t) { return 0.25F; }));
  const auto ten = scales(10);
  for (const Shape& shape : {Shape{10}, Shape{10, 1}})
    expect_values(raw(plain, {10, 7}, "_scale", shape, ten), "a.weight",
                  scaled([&](size_t, size_t row, size_t) { return ten[row]; }));
  expect_values(raw(plain, {2, 5, 7}, "_scale", {2}, {2, 3}), "a.weight",
                scaled([](size_t matrix, size_t, size_t) { return static_cast<float>(2 + matrix); }));
  // Blocks of 2 x 3: the last ones are cut short both ways.
  const std::string blocks =
      R"({"quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [2, 3]}})";
  const auto eighteen = scales(18);
  expect_values(raw(blocks, {2, 5, 7}, "_scale_inv", {2, 3, 3}, eighteen), "a.weight",
                scaled([&](size_t matrix, size_t row, size_t column) {
                  return eighteen[matrix * 9 + row % 5 / 2 * 3 + column / 3];
                }));
  EXPECT_EQ(raw(blocks, {10, 7}, "_scale_inv", {4, 3}, scales(12)).error(),
            "raw.safetensors: tensor a.weight_scale_inv: expected shape [5, 3], found [4, 3]");
  EXPECT_EQ(
      raw(plain, {10, 7}, "_scale_inv", {5, 3}, scales(15)).error(),
      "raw.safetensors: tensor a.weight_scale_inv: expected one scale, [10] or [10, 1], found shape [5, 3]");
  RawCheckpoint alone(plain);
  EXPECT_EQ(
      alone.add("a.weight", Shape{10, 7}, DType::kF8E4M3, all.codes).error(),
      "raw.safetensors: tensor a.weight: expected a tensor a.weight_scale_inv or a.weight_scale beside it, "
      "found none");
  EXPECT_EQ(RawCheckpoint(R"({"quantization_config": {"quant_method": "fp8", "fmt": "e5m2"}})").error(),
            "raw: quantization_config: fmt: expected e4m3, found \"e5m2\"");
  RawCheckpoint integer(plain);
  integer.add("a.weight", Shape{10, 7}, DType::kF8E4M3, all.codes);
  EXPECT_EQ(integer.add("a.weight_scale", Shape{1}, DType::kI32, std::vector<int32_t>{1}).error(),
            "raw.safetensors: tensor a.weight_scale: expected elements of F32 or BF16 or F16 or F8_E8M0, "
            "found I32");
}

// --- MXFP4 in HuggingFace's layout

TEST(Mxfp4, BlocksAndScales) {
  const std::string config = R"({"quantization_config": {"quant_method": "mxfp4"}})";
  const auto codes = random_codes(2 * 3 * 64, 16, 5);
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < codes.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(codes[i] | codes[i + 1] << 4));
  std::vector<uint8_t> exponents;
  std::vector<float> expected;
  for (size_t i = 0; i < 12; ++i) exponents.push_back(static_cast<uint8_t>(120 + i));
  for (size_t i = 0; i < codes.size(); ++i)
    expected.push_back(kE2M1[codes[i]] * std::ldexp(1.0F, exponents[i / 32] - 127));
  RawCheckpoint raw(config);
  raw.add("up_blocks", Shape{2, 3, 2, 16}, DType::kU8, bytes);
  expect_values(raw.add("up_scales", Shape{2, 3, 2}, DType::kU8, exponents), "up_blocks", expected);
  RawCheckpoint wrong(config);
  wrong.add("up_blocks", Shape{2, 3, 2, 16}, DType::kU8, bytes);
  EXPECT_EQ(wrong.add("up_scales", Shape{2, 2, 3}, DType::kU8, exponents).error(),
            "raw.safetensors: tensor up_scales: expected shape [2, 3, 2], found [2, 2, 3]");
  RawCheckpoint alone(config);
  EXPECT_EQ(alone.add("up_blocks", Shape{2, 3, 2, 16}, DType::kU8, bytes).error(),
            "raw.safetensors: tensor up_blocks: expected a tensor up_scales beside it, found none");
}

// --- AWQ and GPTQ: inputs K = 64 (or 96), outputs N = 16, groups of 32

struct Grid {
  size_t inputs = 64;
  size_t outputs = 16;
  size_t groups = 2;
  std::vector<uint32_t> codes;  // [inputs][outputs]
  std::vector<uint32_t> zeros;  // [groups][outputs]
  std::vector<float> scale;     // [groups][outputs]

  explicit Grid(int bits) {
    codes = random_codes(inputs * outputs, 1u << bits, static_cast<uint32_t>(bits));
    zeros = random_codes(groups * outputs, 1u << bits, static_cast<uint32_t>(bits) + 9);
    scale = scales(groups * outputs);
  }
  // [outputs][inputs]
  [[nodiscard]] std::vector<float> values(const std::function<size_t(size_t)>& group_of, int offset) const {
    std::vector<float> all;
    for (size_t n = 0; n < outputs; ++n)
      for (size_t k = 0; k < inputs; ++k) {
        const size_t at = group_of(k) * outputs + n;
        const int difference =
            static_cast<int>(codes[k * outputs + n]) - static_cast<int>(zeros[at]) - offset;
        all.push_back(static_cast<float>(difference) * scale[at]);
      }
    return all;
  }
};

std::vector<uint32_t> awq_words(const std::vector<uint32_t>& values) {
  constexpr std::array<size_t, 8> kOrder = {0, 2, 4, 6, 1, 3, 5, 7};
  std::vector<uint32_t> words;
  for (size_t first = 0; first < values.size(); first += 8) {
    uint32_t word = 0;
    for (size_t i = 0; i < 8; ++i) word |= values[first + kOrder[i]] << (4 * i);
    words.push_back(word);
  }
  return words;
}

constexpr const char* kAwq =
    R"({"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm"}})";

TEST(Awq, FollowsTheFormula) {
  const Grid grid(4);
  RawCheckpoint raw(kAwq);
  raw.add("a.qweight", Shape{64, 2}, DType::kI32, awq_words(grid.codes));
  raw.add("a.qzeros", Shape{2, 2}, DType::kI32, awq_words(grid.zeros));
  raw.add("a.scales", Shape{2, 16}, DType::kF16, halves(grid.scale));
  expect_values(raw, "a.weight", grid.values([](size_t k) { return k / 32; }, 0));
}

TEST(Awq, RefusesWhatDoesNotFit) {
  const Grid grid(4);
  const auto raw = [&](const Shape& zeros, const Shape& scale, DType element) {
    RawCheckpoint made(kAwq);
    made.add("a.qweight", Shape{64, 2}, DType::kI32, awq_words(grid.codes));
    made.add("a.qzeros", zeros, DType::kI32, std::vector<int32_t>(static_cast<size_t>(zeros.elements())));
    return made.add("a.scales", scale, element,
                    std::vector<uint8_t>(static_cast<size_t>(scale.elements() * dtype_size(element))));
  };
  EXPECT_EQ(raw({1, 2}, {2, 16}, DType::kF16).error(),
            "raw.safetensors: tensor a.qzeros: expected shape [2, 2], found [1, 2]");
  EXPECT_EQ(raw({2, 2}, {4, 16}, DType::kF16).error(),
            "raw.safetensors: tensor a.scales: expected shape [2, 16], found [4, 16]");
  EXPECT_EQ(raw({2, 2}, {2, 16}, DType::kU8).error(),
            "raw.safetensors: tensor a.scales: expected elements of F16 or BF16 or F32, found U8");
  RawCheckpoint alone(kAwq);
  EXPECT_EQ(alone.add("a.qweight", Shape{64, 2}, DType::kI32, awq_words(grid.codes)).error(),
            "raw.safetensors: tensor a.qweight: expected a tensor a.qzeros beside it, found none");
  const auto config = [](const char* text) {
    return RawCheckpoint(fmt::format(R"({{"quantization_config": {{"quant_method": "awq", {}}}}})", text))
        .error();
  };
  EXPECT_EQ(config(R"("bits": 3, "group_size": 32)"), "raw: quantization_config: bits: expected 4, found 3");
  EXPECT_EQ(config(R"("bits": 4, "group_size": 33)"),
            "raw: quantization_config: group_size: expected -1 or a multiple of 8 up to 32768, found 33");
  EXPECT_EQ(config(R"("bits": 4, "group_size": 32, "version": "gemv")"),
            "raw: quantization_config: version: expected gemm, found gemv");
}

RawCheckpoint gptq(const Grid& grid, int bits, const char* layout, const std::vector<int32_t>& list) {
  RawCheckpoint raw(
      fmt::format(R"({{"quantization_config": {{"quant_method": "gptq", "bits": {}, "group_size": 32,
                                 "checkpoint_format": "{}"}}}})",
                  bits, layout));
  // Words down the columns: the words of each output's codes, transposed.
  std::vector<uint32_t> by_output;
  for (size_t n = 0; n < grid.outputs; ++n)
    for (size_t k = 0; k < grid.inputs; ++k) by_output.push_back(grid.codes[k * grid.outputs + n]);
  const auto packed = pack_words(by_output, bits, grid.inputs);
  const size_t rows = packed.size() / grid.outputs;
  std::vector<uint32_t> words;
  for (size_t w = 0; w < rows; ++w)
    for (size_t n = 0; n < grid.outputs; ++n) words.push_back(packed[n * rows + w]);
  const auto zeros = pack_words(grid.zeros, bits, grid.outputs);
  raw.add("a.qweight", Shape{static_cast<int64_t>(rows), 16}, DType::kI32, words);
  raw.add("a.qzeros", Shape{2, static_cast<int64_t>(zeros.size() / 2)}, DType::kI32, zeros);
  raw.add("a.scales", Shape{2, 16}, DType::kF16, halves(grid.scale));
  if (!list.empty()) raw.add("a.g_idx", Shape{static_cast<int64_t>(list.size())}, DType::kI32, list);
  return raw;
}

TEST(Gptq, FollowsTheFormulaAtEveryWidthInBothLayoutsAndAnyOrder) {
  int compared = 0;
  for (const int bits : {2, 3, 4, 8}) {
    const Grid grid(bits);
    std::vector<int32_t> runs;
    std::vector<int32_t> scattered;
    for (int32_t k = 0; k < 64; ++k) {
      runs.push_back(k / 32);
      scattered.push_back(k * 7 % 64 / 32);
    }
    for (const auto& [layout, offset] : {std::pair{"gptq", 1}, std::pair{"gptq_v2", 0}}) {
      const auto in_runs = grid.values([](size_t k) { return k / 32; }, offset);
      expect_values(gptq(grid, bits, layout, {}), "a.weight", in_runs);
      expect_values(gptq(grid, bits, layout, runs), "a.weight", in_runs);
      expect_values(gptq(grid, bits, layout, scattered), "a.weight",
                    grid.values([&](size_t k) { return static_cast<size_t>(scattered[k]); }, offset));
      compared += 3;
    }
  }
  EXPECT_EQ(compared, 24);
}

TEST(Gptq, DropsABiasOfZerosOnly) {
  RawCheckpoint raw = gptq(Grid(4), 4, "gptq", {});
  raw.add("a.bias", Shape{16}, DType::kF16, std::vector<uint16_t>(16));
  const auto zero = raw.open();
  ASSERT_TRUE(zero);
  EXPECT_EQ((*zero)->find("a.bias"), nullptr);
  RawCheckpoint other = gptq(Grid(4), 4, "gptq", {});
  other.add("a.bias", Shape{16}, DType::kF16, halves(scales(16)));
  const auto kept = other.open();
  ASSERT_TRUE(kept);
  EXPECT_NE((*kept)->find("a.bias"), nullptr);
}

TEST(Gptq, RefusesWhatDoesNotFit) {
  std::vector<int32_t> list(64, 0);
  list[5] = 2;
  EXPECT_EQ(gptq(Grid(4), 4, "gptq", list).error(),
            "raw.safetensors: tensor a.g_idx: expected groups from 0 to 1, found 2 at input 5");
  list.resize(63);
  EXPECT_EQ(gptq(Grid(4), 4, "gptq", list).error(),
            "raw.safetensors: tensor a.g_idx: expected shape [64], found [63]");
  EXPECT_EQ(gptq(Grid(4), 4, "marlin", {}).error(),
            "raw: quantization_config: checkpoint_format: expected gptq or gptq_v2, found marlin");
  const auto config = [](const char* text) {
    return RawCheckpoint(fmt::format(R"({{"quantization_config": {{"quant_method": "gptq", {}}}}})", text))
        .error();
  };
  EXPECT_EQ(config(R"("bits": 5, "group_size": 32)"),
            "raw: quantization_config: bits: expected 2, 3, 4 or 8, found 5");
  EXPECT_EQ(config(R"("group_size": 32)"),
            RawCheckpoint(R"({"quantization_config": {"quant_method": "gptq"}})").error());
}

// --- compressed-tensors

std::string compressed(const std::string& weights) {
  return fmt::format(R"({{"quantization_config": {{"quant_method": "compressed-tensors",
      "config_groups": {{"group_0": {{"targets": ["Linear"], "weights": {{{}}}}}}}}}}})",
                     weights);
}

TEST(Compressed, PackedIntegers) {
  int compared = 0;
  for (const int bits : {4, 8})
    for (const bool symmetric : {true, false})
      for (const int group : {32, 0})
        for (const bool ordered : {false, true}) {
          if (ordered && group == 0) continue;
          const size_t rows = 8;
          const size_t columns = 64;
          const size_t groups = group == 0 ? 1 : 2;
          const auto codes = random_codes(rows * columns, 1u << bits, static_cast<uint32_t>(bits));
          const auto zeros = random_codes(groups * rows, 1u << bits, 77);  // [groups][rows]
          const auto s = scales(rows * groups);
          std::vector<int32_t> list;
          for (int32_t k = 0; k < 64; ++k) list.push_back(ordered ? k * 7 % 64 / 32 : k / 32);
          std::vector<float> expected;
          for (size_t i = 0; i < codes.size(); ++i) {
            const size_t g = group == 0 ? 0 : static_cast<size_t>(list[i % columns]);
            const int zero = symmetric ? 1 << (bits - 1) : static_cast<int>(zeros[g * rows + i / columns]);
            expected.push_back(static_cast<float>(static_cast<int>(codes[i]) - zero) *
                               s[i / columns * groups + g]);
          }
          RawCheckpoint raw(compressed(fmt::format(
              R"("num_bits": {}, "type": "int", "symmetric": {}, "group_size": {}, "strategy": "{}")", bits,
              symmetric, group == 0 ? "null" : "32", group == 0 ? "channel" : "group")));
          raw.add("a.weight_packed", Shape{8, 2 * bits}, DType::kI32, pack_words(codes, bits, columns));
          raw.add("a.weight_scale", Shape{8, static_cast<int64_t>(groups)}, DType::kBF16, bfloats(s));
          raw.add("a.weight_shape", Shape{2}, DType::kI64, std::vector<int64_t>{8, 64});
          if (!symmetric) {  // packed along the rows, for each group
            const auto packed = pack_words(zeros, bits, rows);
            const size_t words = packed.size() / groups;
            std::vector<uint32_t> by_word;
            for (size_t w = 0; w < words; ++w)
              for (size_t g = 0; g < groups; ++g) by_word.push_back(packed[g * words + w]);
            raw.add("a.weight_zero_point", Shape{static_cast<int64_t>(words), static_cast<int64_t>(groups)},
                    DType::kI32, by_word);
          }
          if (ordered) raw.add("a.weight_g_idx", Shape{64}, DType::kI32, list);
          expect_values(raw, "a.weight", expected);
          ++compared;
        }
  EXPECT_EQ(compared, 12);
}

TEST(Compressed, FloatsAndBytes) {
  const Eights all = eights(4 * 8);
  RawCheckpoint float8(compressed(R"("num_bits": 8, "type": "float", "strategy": "channel")"));
  float8.add("a.weight", Shape{4, 8}, DType::kF8E4M3, all.codes);
  float8.add("a.weight_scale", Shape{4, 1}, DType::kBF16, bfloats({1, 2, 3, 4}));
  std::vector<float> expected;
  for (size_t i = 0; i < 32; ++i) expected.push_back(all.values[i] * static_cast<float>(1 + i / 8));
  expect_values(float8, "a.weight", expected);

  std::vector<int8_t> bytes;
  expected.clear();
  for (int i = 0; i < 32; ++i) {
    bytes.push_back(static_cast<int8_t>(i * 8 - 128));
    expected.push_back(static_cast<float>(i * 8 - 128) * static_cast<float>(1 + i / 8));
  }
  RawCheckpoint int8(compressed(R"("num_bits": 8, "type": "int", "strategy": "channel")"));
  int8.add("a.weight", Shape{4, 8}, DType::kI8, bytes);
  expect_values(int8.add("a.weight_scale", Shape{4, 1}, DType::kF32, std::vector<float>{1, 2, 3, 4}),
                "a.weight", expected);

  const auto codes = random_codes(64, 16, 6);
  std::vector<uint8_t> packed;
  expected.clear();
  for (size_t i = 0; i < 64; i += 2) packed.push_back(static_cast<uint8_t>(codes[i] | codes[i + 1] << 4));
  for (size_t i = 0; i < 64; ++i)
    expected.push_back(kE2M1[codes[i]] * (std::fabs(kE4M3Values[i / 16]) * 0.25F));
  RawCheckpoint nvfp4(
      compressed(R"("num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16)"));
  nvfp4.add("a.weight_packed", Shape{2, 16}, DType::kU8, packed);
  nvfp4.add("a.weight_scale", Shape{2, 2}, DType::kF8E4M3, std::vector<uint8_t>{0x38, 0x40, 0x30, 0x39});
  expect_values(nvfp4.add("a.weight_global_scale", Shape{1}, DType::kF32, std::vector<float>{4}), "a.weight",
                expected);
}

TEST(Compressed, RefusesWhatDoesNotFit) {
  const std::string int4 = compressed(R"("num_bits": 4, "type": "int", "symmetric": true, "group_size": 32)");
  const auto raw = [&](const Shape& scale, const std::vector<int64_t>& shape) {
    RawCheckpoint made(int4);
    made.add("a.weight_packed", Shape{8, 8}, DType::kI32, std::vector<int32_t>(64));
    made.add("a.weight_scale", scale, DType::kF16,
             std::vector<uint16_t>(static_cast<size_t>(scale.elements())));
    return made.add("a.weight_shape", Shape{2}, DType::kI64, shape).error();
  };
  EXPECT_EQ(raw({8, 4}, {8, 64}),
            "raw.safetensors: tensor a.weight_scale: expected shape [8, 2], found [8, 4]");
  EXPECT_EQ(raw({8, 2}, {9, 64}),
            "raw.safetensors: tensor a.weight_packed: expected words for [9, 64], found [8, 8]");
  EXPECT_EQ(raw({8, 2}, {8, 128}),
            "raw.safetensors: tensor a.weight_packed: expected what config_groups declares, found integers "
            "in words "
            "of shape [8, 8]");
  EXPECT_EQ(
      raw({8, 2}, {8, 60}),
      "raw.safetensors: tensor a.weight_packed: expected rows of a multiple of 8 codes, found 60 codes");
  EXPECT_EQ(RawCheckpoint(compressed(R"("num_bits": 3, "type": "int")")).error(),
            "raw: quantization_config: group_0: weights: num_bits: expected 2, 4 or 8 for int, found 3");
  EXPECT_EQ(
      RawCheckpoint(R"({"quantization_config": {"quant_method": "compressed-tensors",
                              "sparsity_config": {"format": "sparse-24-bitmask"}}})")
          .error(),
      "raw: quantization_config: sparsity_config: expected none, found {\"format\":\"sparse-24-bitmask\"}");
}

// --- what nobody here computes

TEST(Refused, ByNameOfMethodOrTensor) {
  for (const char* method : {"bitsandbytes", "hqq", "exl2", "exl3", "modelopt", "quark", "aqlm"})
    EXPECT_EQ(
        RawCheckpoint(fmt::format(R"({{"quantization_config": {{"quant_method": "{}"}}}})", method)).error(),
        fmt::format("raw: quantization_config: quant_method {} is not computed; computed are awq, "
                    "compressed-tensors, fbgemm_fp8, fp8, gptq, mxfp4",
                    method));
  const std::pair<const char*, const char*> tensors[] = {{"a.weight.absmax", "bitsandbytes"},
                                                         {"a.SCB", "bitsandbytes"},
                                                         {"a.W_q", "HQQ"},
                                                         {"a.q_invperm", "EXL2"},
                                                         {"a.trellis", "EXL3"}};
  for (const auto& [name, program] : tensors) {
    RawCheckpoint raw("{}");
    EXPECT_EQ(raw.add(name, Shape{4}, DType::kU8, std::vector<uint8_t>(4)).error(),
              fmt::format("raw: tensor {}: weights quantised by {} are not computed", name, program));
  }
}

// --- MLC

TEST(Mlc, FollowsTheFormula) {
  const auto codes = random_codes(2 * 64, 16, 4);
  for (const char* name : {"q4f16_1", "q4f32_1"}) {
    const auto s = scales(4);
    std::vector<float> expected;
    for (size_t i = 0; i < codes.size(); ++i)
      expected.push_back(static_cast<float>(static_cast<int>(codes[i]) - 7) * s[i / 32]);
    RawCheckpoint raw(fmt::format(R"({{"quantization": "{}"}})", name), CheckpointKind::kMlc);
    raw.add("a.q_weight", Shape{2, 8}, DType::kU32, pack_words(codes, 4, 64));
    if (std::string(name) == "q4f16_1")
      raw.add("a.q_scale", Shape{2, 2}, DType::kF16, halves(s));
    else
      raw.add("a.q_scale", Shape{2, 2}, DType::kF32, s);
    expect_values(raw, "a.weight", expected);
  }
  for (const char* name : {"q0f16", "q0f32"}) {
    RawCheckpoint raw(fmt::format(R"({{"quantization": "{}"}})", name), CheckpointKind::kMlc);
    expect_values(raw.add("a.weight", Shape{1, 2}, DType::kF32, std::vector<float>{1, 2}), "a.weight",
                  {1, 2});
  }
}

TEST(Mlc, RefusesWhatDoesNotFit) {
  const auto raw = [](const char* name, const Shape& scale) {
    RawCheckpoint made(fmt::format(R"({{"quantization": "{}"}})", name), CheckpointKind::kMlc);
    made.add("a.q_weight", Shape{2, 8}, DType::kU32, std::vector<uint32_t>(16));
    return made
        .add("a.q_scale", scale, DType::kF16, std::vector<uint16_t>(static_cast<size_t>(scale.elements())))
        .error();
  };
  EXPECT_EQ(raw("q4f16_1", {2, 3}), "raw.safetensors: tensor a.q_scale: expected shape [2, 2], found [2, 3]");
  EXPECT_EQ(raw("q4f16_0", {2, 2}),
            "raw: quantization: expected q4f16_1, q4f32_1, q4bf16_1, q0f16, q0f32 or q0bf16, found q4f16_0");
  EXPECT_EQ(raw("q0f16", {2, 2}),
            "raw.safetensors: tensor a.q_weight: expected no codes, as quantization is q0f16, found it");
}

}  // namespace
}  // namespace tessera
