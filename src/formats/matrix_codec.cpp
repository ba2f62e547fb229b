// Decoding parts of rows and encoding whole matrices: what the table's block functions and the plain element
// types share.
#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "base/check.h"
#include "formats/block_codecs.h"
#include "formats/float8.h"
#include "formats/format_info.h"
#include "formats/grouped.h"

namespace tessera {
namespace {

constexpr float kLargestHalf = 65504;

template <class T>
void convert(const std::byte* elements, int64_t count, float* values) {
  for (int64_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(load<T>(elements + i * static_cast<int64_t>(sizeof(T))));
}

void decode_plain(DType element, const std::byte* elements, int64_t count, float* values) {
  switch (element) {
    case DType::kF32:
      std::memcpy(values, elements, static_cast<size_t>(count) * sizeof(float));
      return;
    case DType::kF16:
      for (int64_t i = 0; i < count; ++i) values[i] = load_half(elements + i * 2);
      return;
    case DType::kBF16:
      for (int64_t i = 0; i < count; ++i) values[i] = to_float(BFloat16{load<uint16_t>(elements + i * 2)});
      return;
    case DType::kF8E4M3:
      for (int64_t i = 0; i < count; ++i) values[i] = float8_e4m3_to_float(load<uint8_t>(elements + i));
      return;
    case DType::kF8E5M2:
      for (int64_t i = 0; i < count; ++i) values[i] = float8_e5m2_to_float(load<uint8_t>(elements + i));
      return;
    case DType::kF64:
      return convert<double>(elements, count, values);
    case DType::kI64:
      return convert<int64_t>(elements, count, values);
    case DType::kI32:
      return convert<int32_t>(elements, count, values);
    case DType::kI16:
      return convert<int16_t>(elements, count, values);
    case DType::kI8:
      return convert<int8_t>(elements, count, values);
    case DType::kU64:
      return convert<uint64_t>(elements, count, values);
    case DType::kU32:
      return convert<uint32_t>(elements, count, values);
    case DType::kU16:
      return convert<uint16_t>(elements, count, values);
    case DType::kU8:
      return convert<uint8_t>(elements, count, values);
    case DType::kBool:
      for (int64_t i = 0; i < count; ++i) values[i] = load_u8(elements + i) != 0 ? 1.0F : 0.0F;
      return;
    case DType::kF8E8M0:
      for (int64_t i = 0; i < count; ++i) values[i] = e8m0_to_float(load<uint8_t>(elements + i));
      return;
    case DType::kF4:
      for (int64_t i = 0; i < count; ++i) {
        const int code = load_u8(elements + i / 2) >> (i % 2 * 4) & 15;
        values[i] = 0.5F * static_cast<float>(kTwiceE2M1[static_cast<size_t>(code)]);
      }
      return;
  }
}

// What float32, float16 and bfloat16 cannot take is found before anything is written.
Status encode_plain(DType element, std::span<const float> values, std::byte* out) {
  switch (element) {
    case DType::kF32:
      std::memcpy(out, values.data(), values.size_bytes());
      return {};
    case DType::kF16:
      for (size_t i = 0; i < values.size(); ++i) {
        const Half half = to_half(values[i]);
        if ((half.bits & 0x7fff) == 0x7c00 && !std::isinf(values[i]))
          return fail(ErrorCode::kInvalidArgument, "value {} at {} is beyond float16 (largest {})", values[i],
                      i, kLargestHalf);
        store(out + i * 2, half.bits);
      }
      return {};
    case DType::kBF16:
      for (size_t i = 0; i < values.size(); ++i) {
        const BFloat16 rounded = to_bfloat16(values[i]);
        if ((rounded.bits & 0x7fff) == 0x7f80 && !std::isinf(values[i]))
          return fail(ErrorCode::kInvalidArgument, "value {} at {} is beyond bfloat16", values[i], i);
        store(out + i * 2, rounded.bits);
      }
      return {};
    default:
      return fail(ErrorCode::kUnsupported, "weights are not encoded as {}", dtype_name(element));
  }
}

// Scales are float16 and never larger than the largest value, so only values beyond float16 can overflow one.
Status check_scales_held(const FormatInfo& info, std::span<const float> values, const std::byte* blocks) {
  std::vector<float> decoded(static_cast<size_t>(info.block_values));
  for (size_t first = 0; first < values.size(); first += decoded.size(), blocks += info.block_bytes) {
    info.decode(blocks, info.block_values, decoded.data());
    for (size_t i = 0; i < decoded.size(); ++i)
      if (!std::isfinite(decoded[i]))
        return fail(ErrorCode::kInvalidArgument, "value {} at {} is beyond the scales of {}",
                    values[first + i], first + i, info.name);
  }
  return {};
}

}  // namespace

void decode_row(const Weight& weight, int64_t row, int64_t first, int64_t count, float* values) {
  const int64_t block = format_block(weight.format);
  CHECK(row >= 0 && row < weight.rows, "row {} of {}", row, weight.rows);
  CHECK(
      first >= 0 && count >= 0 && first % block == 0 && count % block == 0 && first + count <= weight.columns,
      "columns {} + {} of {} in blocks of {}", first, count, weight.columns, block);
  if (count == 0) return;
  if (weight.format.is_grouped()) {
    GroupedRow group{weight.format, {}};
    for (size_t i = 0; i < group.planes.size(); ++i)
      if (weight.planes[i].data != nullptr) group.planes[i] = weight.planes[i].row(row);
    format_info(weight.format.kind).decode_group(group, first, count, values);
    return;
  }
  const std::byte* start = weight.planes[0].row(row) + format_row_bytes(weight.format, first);
  if (weight.format.is_plain())
    decode_plain(weight.format.element, start, count, values);
  else
    format_info(weight.format.kind).decode(start, count, values);
}

Status encode_rows(const Format& format, const float* values, int64_t rows, int64_t columns, std::byte* out,
                   const float* importance) {
  CHECK(rows >= 0 && columns >= 0, "{} x {}", rows, columns);
  const std::span all(values, static_cast<size_t>(rows * columns));
  if (format.is_plain()) return all.empty() ? Status{} : encode_plain(format.element, all, out);

  const FormatInfo& info = format_info(format.kind);
  if (info.encode == nullptr)
    return fail(ErrorCode::kUnsupported, "weights are not encoded as {}", info.name);
  if (columns % info.block_values != 0)
    return fail(ErrorCode::kInvalidArgument, "{}: expected rows of a multiple of {} values, found {}",
                info.name, info.block_values, columns);
  bool large = false;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!std::isfinite(all[i]))
      return fail(ErrorCode::kInvalidArgument, "{} cannot hold the value {} at {}", info.name, all[i], i);
    large = large || std::fabs(all[i]) > kLargestHalf;
  }
  for (int64_t row = 0; row < rows; ++row)
    info.encode(values + row * columns, importance, columns, out + row * format_row_bytes(format, columns));
  return large ? check_scales_held(info, all, out) : Status{};
}

}  // namespace tessera
