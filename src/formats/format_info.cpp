// The table itself, and what is asked about a Format without touching its bytes.
#include "formats/format_info.h"

#include <fmt/format.h>

#include <array>
#include <bit>

#include "base/check.h"
#include "formats/block_codecs.h"
#include "formats/grouped.h"

namespace tessera {

static_assert(std::endian::native == std::endian::little,
              "weights are read in place: the machine must be little-endian");

namespace {

constexpr int kSmall = kSmallBlock;
constexpr int kSuper = kSuperBlock;

using DecodeBlocks = decltype(FormatInfo::decode);
using DecodeGroup = decltype(FormatInfo::decode_group);
using EncodeBlocks = decltype(FormatInfo::encode);

constexpr FormatInfo block(FormatKind kind, std::string_view name, int values, int bytes, uint32_t gguf_type,
                           DecodeBlocks decode, EncodeBlocks encode) {
  return {kind, name, values, bytes, gguf_type, decode, nullptr, encode, "GGUF"};
}
constexpr FormatInfo grouped(FormatKind kind, std::string_view name, int values, DecodeGroup decode,
                             std::string_view source) {
  return {kind, name, values, 0, std::nullopt, nullptr, decode, nullptr, source};
}

constexpr std::array kTable = {
    block(FormatKind::kQ4_0, "Q4_0", kSmall, kQ4_0Bytes, 2, decode_q4_0, encode_q4_0),
    block(FormatKind::kQ4_1, "Q4_1", kSmall, kQ4_1Bytes, 3, decode_q4_1, encode_q4_1),
    block(FormatKind::kQ5_0, "Q5_0", kSmall, kQ5_0Bytes, 6, decode_q5_0, encode_q5_0),
    block(FormatKind::kQ5_1, "Q5_1", kSmall, kQ5_1Bytes, 7, decode_q5_1, encode_q5_1),
    block(FormatKind::kQ8_0, "Q8_0", kSmall, kQ8_0Bytes, 8, decode_q8_0, encode_q8_0),
    block(FormatKind::kQ2K, "Q2_K", kSuper, kQ2KBytes, 10, decode_q2_k, encode_q2_k),
    block(FormatKind::kQ3K, "Q3_K", kSuper, kQ3KBytes, 11, decode_q3_k, encode_q3_k),
    block(FormatKind::kQ4K, "Q4_K", kSuper, kQ4KBytes, 12, decode_q4_k, encode_q4_k),
    block(FormatKind::kQ5K, "Q5_K", kSuper, kQ5KBytes, 13, decode_q5_k, encode_q5_k),
    block(FormatKind::kQ6K, "Q6_K", kSuper, kQ6KBytes, 14, decode_q6_k, encode_q6_k),
    block(FormatKind::kIQ1S, "IQ1_S", kSuper, kIQ1SBytes, 19, decode_iq1_s, nullptr),
    block(FormatKind::kIQ1M, "IQ1_M", kSuper, kIQ1MBytes, 29, decode_iq1_m, nullptr),
    block(FormatKind::kIQ2XXS, "IQ2_XXS", kSuper, kIQ2XXSBytes, 16, decode_iq2_xxs, encode_iq2_xxs),
    block(FormatKind::kIQ2XS, "IQ2_XS", kSuper, kIQ2XSBytes, 17, decode_iq2_xs, encode_iq2_xs),
    block(FormatKind::kIQ2S, "IQ2_S", kSuper, kIQ2SBytes, 22, decode_iq2_s, encode_iq2_s),
    block(FormatKind::kIQ3XXS, "IQ3_XXS", kSuper, kIQ3XXSBytes, 18, decode_iq3_xxs, encode_iq3_xxs),
    block(FormatKind::kIQ3S, "IQ3_S", kSuper, kIQ3SBytes, 21, decode_iq3_s, encode_iq3_s),
    block(FormatKind::kIQ4NL, "IQ4_NL", kSmall, kIQ4NLBytes, 20, decode_iq4_nl, encode_iq4_nl),
    block(FormatKind::kIQ4XS, "IQ4_XS", kSuper, kIQ4XSBytes, 23, decode_iq4_xs, encode_iq4_xs),
    block(FormatKind::kTQ1_0, "TQ1_0", kSuper, kTQ1_0Bytes, 34, decode_tq1_0, encode_tq1_0),
    block(FormatKind::kTQ2_0, "TQ2_0", kSuper, kTQ2_0Bytes, 35, decode_tq2_0, encode_tq2_0),
    block(FormatKind::kMXFP4, "MXFP4", kSmall, kMXFP4Bytes, 39, decode_mxfp4, encode_mxfp4),
    block(FormatKind::kNVFP4, "NVFP4", 64, kNVFP4Bytes, 40, decode_nvfp4, nullptr),
    grouped(FormatKind::kMlxAffine, "MLX", 8, decode_mlx_affine, "MLX (mode affine)"),
    grouped(FormatKind::kMlcGroup, "MLC", 8, decode_mlc_group, "MLC (q4f16_1, q4f32_1)"),
    grouped(FormatKind::kOffsetGroup, "offset", 8, decode_offset_group,
            "compressed-tensors (pack-quantized, symmetric)"),
    grouped(FormatKind::kZeroGroup, "zero", 8, decode_zero_group,
            "AWQ (gemm), GPTQ, compressed-tensors (pack-quantized, asymmetric)"),
    grouped(FormatKind::kIndexGroup, "index", 8, decode_index_group,
            "GPTQ (desc_act), compressed-tensors (actorder group)"),
    grouped(FormatKind::kInt8Group, "int8", 1, decode_int8_group, "compressed-tensors (int-quantized)"),
    grouped(FormatKind::kFloat8Group, "FP8", 1, decode_float8_group,
            "FP8 (block, row or matrix scales), compressed-tensors (float-quantized), MLX (mode mxfp8)"),
    grouped(
        FormatKind::kFloat4Group, "FP4", 8, decode_float4_group,
        "MXFP4 (blocks and scales), compressed-tensors (nvfp4- and mxfp4-pack-quantized), MLX (modes mxfp4, "
        "nvfp4)"),
};

constexpr bool in_order_of_kinds() {
  for (size_t i = 0; i < kTable.size(); ++i)
    if (static_cast<size_t>(kTable[i].kind) != i + 1) return false;
  return static_cast<size_t>(FormatKind::kFloat4Group) == kTable.size();
}
static_assert(in_order_of_kinds());

struct GgufElement {
  uint32_t type;
  DType element;
};
constexpr std::array kGgufElements = {
    GgufElement{0, DType::kF32},  GgufElement{1, DType::kF16},  GgufElement{30, DType::kBF16},
    GgufElement{28, DType::kF64}, GgufElement{24, DType::kI8},  GgufElement{25, DType::kI16},
    GgufElement{26, DType::kI32}, GgufElement{27, DType::kI64},
};

// count * bits / 8 without the product: readers bound counts so that their bytes fit, not their bits.
int64_t packed_bytes(int64_t count, int64_t bits) {
  return count / 8 * bits + count % 8 * bits / 8;
}

}  // namespace

std::span<const FormatInfo> format_table() {
  return kTable;
}

const FormatInfo& format_info(FormatKind kind) {
  CHECK(kind != FormatKind::kPlain, "plain elements have no row in the format table");
  return kTable[static_cast<size_t>(kind) - 1];
}

std::string format_name(const Format& format) {
  if (format.is_plain()) return dtype_name(format.element);
  const FormatInfo& info = format_info(format.kind);
  if (!format.is_grouped()) return std::string(info.name);
  const std::string group = format.group == 0 ? "row" : std::to_string(format.group);
  return fmt::format("{} {}-bit/{} {}", info.name, format.bits, group, dtype_name(format.element));
}

std::optional<Format> format_from_gguf(uint32_t type) {
  for (const GgufElement& row : kGgufElements)
    if (row.type == type) return Format::plain(row.element);
  for (const FormatInfo& row : kTable)
    if (row.gguf_type == type) return Format::block(row.kind);
  return std::nullopt;
}

std::optional<uint32_t> gguf_from_format(const Format& format) {
  if (!format.is_plain()) return format_info(format.kind).gguf_type;
  for (const GgufElement& row : kGgufElements)
    if (row.element == format.element) return row.type;
  return std::nullopt;
}

int64_t format_block(const Format& format) {
  if (format.is_plain()) return format.element == DType::kF4 ? 2 : 1;
  if (format.is_grouped() && format.bits == 8) return 1;
  return format_info(format.kind).block_values;
}

int64_t format_row_bytes(const Format& format, int64_t columns) {
  if (format.is_plain()) return packed_bytes(columns, dtype_bits(format.element));
  const FormatInfo& info = format_info(format.kind);
  CHECK(columns % format_block(format) == 0, "{} columns of {}", columns, info.name);
  if (format.is_grouped()) return packed_bytes(columns, format.bits);
  return columns / info.block_values * info.block_bytes;
}

int64_t format_stored_bytes(const Format& format, int64_t columns) {
  const int64_t codes = format_row_bytes(format, columns);
  if (!format.is_grouped()) return codes;
  const int64_t groups = group_count(format, columns);
  switch (format.kind) {
    case FormatKind::kMlxAffine:
      return codes + 2 * groups * dtype_size(format.element);
    case FormatKind::kZeroGroup:
      return codes + groups * (dtype_size(format.element) + 2);
    case FormatKind::kIndexGroup:
      return codes + groups * 8;
    default:
      return codes + groups * dtype_size(format.element);
  }
}

double format_bits_per_value(const Format& format) {
  // Long enough that one scale for a whole row or a matrix counts for nothing.
  const int64_t columns = format.is_grouped() && format.group == 0 ? int64_t{1} << 20
                          : format.is_grouped()                    ? int64_t{8} * format.group
                                                                   : format_block(format);
  return 8.0 * static_cast<double>(format_stored_bytes(format, columns)) / static_cast<double>(columns);
}

}  // namespace tessera
