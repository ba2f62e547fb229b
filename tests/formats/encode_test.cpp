// Encoding: exact where the format can be, within half a step elsewhere, and refusals.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "formats/format_info.h"

namespace tessera {
namespace {

constexpr int64_t kColumns = 512;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Encoded {
  Status status;
  std::vector<std::byte> bytes;
};

Encoded encode(const Format& format, const std::vector<float>& values) {
  const auto columns = static_cast<int64_t>(values.size());
  Encoded result{{}, std::vector<std::byte>(static_cast<size_t>(format_row_bytes(format, columns)))};
  result.status = encode_rows(format, values.data(), 1, columns, result.bytes.data());
  return result;
}

std::vector<float> decode(const Format& format, const std::vector<std::byte>& bytes, size_t count) {
  const auto columns = static_cast<int64_t>(count);
  const Weight weight{format, 1, columns, {Plane{bytes.data(), static_cast<int64_t>(bytes.size())}}};
  std::vector<float> values(count);
  decode_row(weight, 0, 0, columns, values.data());
  return values;
}

std::vector<float> round_trip(const Format& format, const std::vector<float>& values) {
  const Encoded encoded = encode(format, values);
  EXPECT_TRUE(encoded.status) << encoded.status.error().message;
  return decode(format, encoded.bytes, values.size());
}

std::vector<float> normal_values(size_t count, float deviation, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<Format> encodable_block_formats() {
  std::vector<Format> formats;
  for (const FormatInfo& info : format_table())
    if (info.encode != nullptr) formats.push_back(Format::block(info.kind));
  return formats;
}

TEST(Encode, Q8_0RoundTripsWithinHalfAStep) {
  const Format format = Format::block(FormatKind::kQ8_0);
  for (const float deviation : {1e-3F, 1.0F, 300.0F}) {
    const std::vector<float> values = normal_values(kColumns, deviation, 1);
    const std::vector<float> decoded = round_trip(format, values);
    for (size_t first = 0; first < values.size(); first += 32) {
      float largest = 0;
      for (size_t i = first; i < first + 32; ++i) largest = std::max(largest, std::fabs(values[i]));
      const float step = largest / 127 * (1 + 0x1p-10F);  // the scale is stored as float16
      for (size_t i = first; i < first + 32; ++i)
        ASSERT_LE(std::fabs(values[i] - decoded[i]), step / 2 * (1 + 1e-5F)) << i;
    }
  }
}

TEST(Encode, Q4_0RoundTripsWithinHalfAStep) {
  const Format format = Format::block(FormatKind::kQ4_0);
  for (const float deviation : {1e-3F, 1.0F, 300.0F}) {
    const std::vector<float> values = normal_values(kColumns, deviation, 2);
    const std::vector<float> decoded = round_trip(format, values);
    for (size_t first = 0; first < values.size(); first += 32) {
      float extreme = 0;
      for (size_t i = first; i < first + 32; ++i)
        if (std::fabs(values[i]) > std::fabs(extreme)) extreme = values[i];
      const float step = std::fabs(extreme) / 8;
      for (size_t i = first; i < first + 32; ++i) {
        // Codes run from -8 to 7: on the side away from the extreme, values between 7 and 8 steps are cut to 7.
        const float against = -values[i] * std::copysign(1.0F, extreme) / step;
        const float allowed = std::max(0.5F, against - 7);
        ASSERT_LE(std::fabs(values[i] - decoded[i]), step * (allowed + 0x1p-8F))
            << i;  // d is rounded to float16: 8 / 2048
      }
    }
  }
}

// Bytes that stay what they are: decoded values encode to values equal to themselves.
TEST(Encode, RepresentableValuesAreExact) {
  const Format q8 = Format::block(FormatKind::kQ8_0);
  const Format q4 = Format::block(FormatKind::kQ4_0);
  std::vector<float> q8_values(64);
  std::vector<float> q4_values(64);
  for (int i = 0; i < 32; ++i) {
    q8_values[static_cast<size_t>(i)] = static_cast<float>(i == 0 ? -127 : i * 4 - 62) * 0.125F;
    q8_values[static_cast<size_t>(i + 32)] = static_cast<float>(i == 7 ? 127 : 31 - i) * 0x1p-12F;
    q4_values[static_cast<size_t>(i)] = static_cast<float>(i % 16 - 8) * 0.5F;
    q4_values[static_cast<size_t>(i + 32)] = static_cast<float>(8 - i % 16) * 0x1p-10F;
  }
  EXPECT_EQ(round_trip(q8, q8_values), q8_values);
  EXPECT_EQ(round_trip(q4, q4_values), q4_values);
}

TEST(Encode, TheLayoutIsThePublishedOne) {
  std::vector<float> values(32, 0.0F);
  values[0] = -4;       // the signed extreme: d = 0.5, code 0
  values[16] = 1;       // code 10, the high half of byte 0
  values[31] = -0.25F;  // half a step below 8: away from zero, code 7
  const Encoded q4 = encode(Format::block(FormatKind::kQ4_0), values);
  ASSERT_TRUE(q4.status);
  EXPECT_EQ(q4.bytes[0], std::byte{0x00});
  EXPECT_EQ(q4.bytes[1], std::byte{0x38});
  EXPECT_EQ(q4.bytes[2], std::byte{0xa0});
  EXPECT_EQ(q4.bytes[3], std::byte{0x88});
  EXPECT_EQ(q4.bytes[17], std::byte{0x78});
  values[0] = -127;
  values[16] = 2.5F;
  const Encoded q8 = encode(Format::block(FormatKind::kQ8_0), values);
  ASSERT_TRUE(q8.status);
  EXPECT_EQ(q8.bytes[1], std::byte{0x3c});
  EXPECT_EQ(q8.bytes[2], std::byte{0x81});
  EXPECT_EQ(q8.bytes[18], std::byte{3});
}

TEST(Encode, ConstantsZerosAndTinyValuesStayFinite) {
  const std::vector<Format> formats = encodable_block_formats();
  ASSERT_GE(formats.size(), 2U);
  for (const Format& format : formats) {
    SCOPED_TRACE(format_name(format));
    const std::vector<float> zeros(kColumns, 0.0F);
    EXPECT_EQ(round_trip(format, zeros), zeros);
    EXPECT_EQ(round_trip(format, std::vector<float>(kColumns, -0.0F)), zeros);
    for (const float constant : {1.0F, -3.5F, 1e-6F, 1e-30F, -1e-40F, 6e4F}) {
      const std::vector<float> decoded = round_trip(format, std::vector<float>(kColumns, constant));
      for (const float value : decoded) ASSERT_TRUE(std::isfinite(value)) << constant;
      if (std::fabs(constant) > 1e-3F) {
        for (const float value : decoded) ASSERT_NEAR(value, constant, std::fabs(constant) * 0.15F);
      }
    }
    std::vector<float> mixed(kColumns, 0.25F);  // constant groups beside an outlier
    mixed[9] = 100;
    for (const float value : round_trip(format, mixed)) ASSERT_TRUE(std::isfinite(value));
  }
}

// RMSE of the plain published method of each format on the two samples below (importance all alike where the method insists on
// one), measured once with the published encoders.
struct PublishedError {
  FormatKind kind;
  double normal;
  double heavy;
};
constexpr PublishedError kPublished[] = {
    {FormatKind::kQ4_0, 0.0838023, 0.18186},    {FormatKind::kQ4_1, 0.0773306, 0.169823},
    {FormatKind::kQ5_0, 0.0416312, 0.0957762},  {FormatKind::kQ5_1, 0.037421, 0.0825304},
    {FormatKind::kQ8_0, 0.00521105, 0.0124588}, {FormatKind::kQ2K, 0.294999, 0.642476},
    {FormatKind::kQ3K, 0.150041, 0.286358},     {FormatKind::kQ4K, 0.0697854, 0.153037},
    {FormatKind::kQ5K, 0.0352351, 0.079482},    {FormatKind::kQ6K, 0.01734, 0.0386174},
    {FormatKind::kIQ4NL, 0.0744638, 0.152539},  {FormatKind::kIQ4XS, 0.0750954, 0.153777},
    {FormatKind::kMXFP4, 0.113173, 0.222116},   {FormatKind::kTQ1_0, 0.780822, 1.31981},
    {FormatKind::kTQ2_0, 0.780822, 1.31981},    {FormatKind::kIQ2XXS, 0.343181, 0.774541},
    {FormatKind::kIQ2XS, 0.301869, 0.664297},   {FormatKind::kIQ2S, 0.246792, 0.629238},
    {FormatKind::kIQ3XXS, 0.182245, 0.369322},  {FormatKind::kIQ3S, 0.134697, 0.310898},
};

enum class Tails { kNormal, kHeavy };

// Sums of twelve uniform numbers, so that every standard library gives the same; heavy tails: g * |g|.
std::vector<float> sample(size_t count, Tails tails) {
  std::mt19937 random(7);
  std::vector<float> values(count);
  for (float& value : values) {
    double sum = -6;
    for (int k = 0; k < 12; ++k) sum += static_cast<double>(random() >> 8) * 0x1p-24;
    value = static_cast<float>(tails == Tails::kHeavy ? sum * std::fabs(sum) : sum);
  }
  return values;
}

double weighted_rms(const std::vector<float>& a, const std::vector<float>& b,
                    const std::vector<float>& weights) {
  double error = 0;
  double total = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - b[i];
    const double weight = weights.empty() ? 1 : weights[i];
    error += weight * difference * difference;
    total += weight;
  }
  return std::sqrt(error / total);
}

TEST(Encode, IsAtLeastAsCloseAsThePublishedMethods) {
  size_t compared = 0;
  for (const PublishedError& published : kPublished) {
    const Format format = Format::block(published.kind);
    for (const Tails tails : {Tails::kNormal, Tails::kHeavy}) {
      const std::vector<float> values = sample(8192, tails);
      const double found = weighted_rms(values, round_trip(format, values), {});
      const double expected = tails == Tails::kNormal ? published.normal : published.heavy;
      EXPECT_LE(found, expected * (1 + 1e-5)) << format_name(format);
      EXPECT_GT(found, expected * 0.5) << format_name(format);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 2 * encodable_block_formats().size());
}

TEST(Encode, ImportanceMovesTheErrorToWhereItCountsLess) {
  const std::vector<float> values = sample(kColumns, Tails::kNormal);
  std::vector<float> importance(values.size());
  for (size_t i = 0; i < importance.size(); ++i) importance[i] = i % 7 == 0 ? 30.0F : 0.5F;
  const std::vector<float> zeros(values.size(), 0.0F);
  int compared = 0;
  for (const Format& format : encodable_block_formats()) {
    SCOPED_TRACE(format_name(format));
    const Encoded plain = encode(format, values);
    std::vector<std::byte> weighted(plain.bytes.size());
    ASSERT_TRUE(encode_rows(format, values.data(), 1, kColumns, weighted.data(), importance.data()));
    const double before = weighted_rms(values, decode(format, plain.bytes, values.size()), importance);
    const double after = weighted_rms(values, decode(format, weighted, values.size()), importance);
    EXPECT_LE(after, before);
    if (format.kind != FormatKind::kQ8_0 && format.kind != FormatKind::kMXFP4) {
      EXPECT_LT(after, before);
    }
    // Importance that says nothing is importance all alike.
    std::vector<std::byte> unweighted(plain.bytes.size());
    ASSERT_TRUE(encode_rows(format, values.data(), 1, kColumns, unweighted.data(), zeros.data()));
    if (format.kind != FormatKind::kQ4_0) {
      EXPECT_EQ(unweighted, plain.bytes);
    }
    for (const float value : decode(format, unweighted, values.size())) ASSERT_TRUE(std::isfinite(value));
    ++compared;
  }
  EXPECT_EQ(compared, 20);
}

// Values that a format holds exactly come back: packing and unpacking agree in every bit.
TEST(Encode, BlocksMadeOfDecodedValuesComeBack) {
  for (const FormatKind kind : {FormatKind::kTQ1_0, FormatKind::kTQ2_0}) {
    std::vector<float> values(kColumns);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = 0.75F * static_cast<float>(static_cast<int>(i * i % 3) - 1 + static_cast<int>(i % 5 == 0));
    for (float& value : values) value = std::min(value, 0.75F);
    EXPECT_EQ(round_trip(Format::block(kind), values), values);
  }
  std::vector<float> mxfp4(64);
  for (size_t i = 0; i < mxfp4.size(); ++i) {
    constexpr float kLevels[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
    mxfp4[i] = kLevels[i % 8] * (i % 16 < 8 ? 1.0F : -1.0F) * (i < 32 ? 0x1p-9F : 0x1p100F);
  }
  EXPECT_EQ(round_trip(Format::block(FormatKind::kMXFP4), mxfp4), mxfp4);
}

std::string refusal(const Format& format, const std::vector<float>& values) {
  const Encoded encoded = encode(format, values);
  return encoded.status ? "encoded" : encoded.status.error().message;
}

TEST(Encode, WhatAFormatCannotHoldIsRefused) {
  int refused = 0;
  for (const Format& format : encodable_block_formats()) {
    for (const float bad : {kNan, kInfinity, -kInfinity, 3e38F}) {
      if (format.kind == FormatKind::kMXFP4 && bad == 3e38F) continue;  // its scale reaches that far
      std::vector<float> values(kColumns, 1.0F);
      values[300] = bad;
      EXPECT_FALSE(encode(format, values).status) << format_name(format) << " " << bad;
      ++refused;
    }
  }
  EXPECT_GE(refused, 8);
  std::vector<float> values(32, 1.0F);
  values[5] = kNan;
  EXPECT_EQ(refusal(Format::block(FormatKind::kQ8_0), values), "Q8_0 cannot hold the value nan at 5");
  values[5] = 1e9F;
  EXPECT_EQ(refusal(Format::block(FormatKind::kQ8_0), values), "value 1 at 0 is beyond the scales of Q8_0");
  values[5] = 70000;  // a scale of 551: fits
  EXPECT_TRUE(encode(Format::block(FormatKind::kQ8_0), values).status);
  EXPECT_EQ(refusal(Format::plain(DType::kF16), {1, 70000}),
            "value 70000 at 1 is beyond float16 (largest 65504)");
  EXPECT_EQ(refusal(Format::plain(DType::kF16), {-65520}),
            "value -65520 at 0 is beyond float16 (largest 65504)");
  EXPECT_EQ(refusal(Format::plain(DType::kBF16), {std::numeric_limits<float>::max()}),
            "value 3.4028235e+38 at 0 is beyond bfloat16");
  EXPECT_TRUE(encode_rows(Format::plain(DType::kF32), nullptr, 0, 4, nullptr));  // nothing to do
  EXPECT_EQ(refusal(Format::plain(DType::kI8), {1}), "weights are not encoded as I8");
  EXPECT_EQ(refusal(Format::block(FormatKind::kIQ1S), std::vector<float>(256)),
            "weights are not encoded as IQ1_S");
  const std::vector<float> row(40);
  std::vector<std::byte> out(80);
  const Status status = encode_rows(Format::block(FormatKind::kQ4_0), row.data(), 1, 40, out.data());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "Q4_0: expected rows of a multiple of 32 values, found 40");
}

TEST(Encode, PlainTypesRoundToNearestEvenAndKeepBits) {
  const std::vector<float> values = {0.0F,     -0.0F,      1.0F,   65504.0F,  65519.0F,
                                     0x1p-24F, 0x1.8p-25F, 1e-40F, kInfinity, -kInfinity};
  EXPECT_EQ(round_trip(Format::plain(DType::kF32), values), values);
  const std::vector<float> halves = round_trip(Format::plain(DType::kF16), values);
  EXPECT_EQ(halves[4], 65504.0F);
  EXPECT_EQ(halves[5], 0x1p-24F);
  EXPECT_EQ(halves[6], 0x1p-24F);
  EXPECT_EQ(halves[8], kInfinity);
  EXPECT_TRUE(std::signbit(halves[1]));
  EXPECT_TRUE(std::isnan(round_trip(Format::plain(DType::kF16), {kNan})[0]));
  // Every bfloat16 survives float32 and back, subnormals and NaN payloads included (a quiet bit is set in signalling ones).
  std::vector<std::byte> patterns(65536 * 2);
  for (uint32_t i = 0; i < 65536; ++i) {
    uint16_t bits = static_cast<uint16_t>(i);
    if ((bits & 0x7f80) == 0x7f80 && (bits & 0x7f) != 0) bits |= 0x40;
    std::memcpy(&patterns[i * 2], &bits, 2);
  }
  const Format bfloat16 = Format::plain(DType::kBF16);
  EXPECT_EQ(encode(bfloat16, decode(bfloat16, patterns, 65536)).bytes, patterns);
}

}  // namespace
}  // namespace tessera
