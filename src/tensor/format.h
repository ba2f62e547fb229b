// What a weight's bytes mean: an element type (plain) or a quantised layout, as a small value. The layouts
// themselves - bytes per block, decoding, encoding - are rows of the table in formats/.
#pragma once

#include <cstdint>
#include <string>

namespace tessera {

enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kF64,
  kF8E4M3,
  kF8E5M2,
  kI64,
  kI32,
  kI16,
  kI8,
  kU64,
  kU32,
  kU16,
  kU8,
  kBool,
  kF8E8M0,  // a power of two: scales of the microscaling formats
  kF4,      // E2M1, two values a byte, the first in the low half
};
inline constexpr DType kLastDType = DType::kF4;

[[nodiscard]] int dtype_bits(DType dtype);
[[nodiscard]] int dtype_size(DType dtype);          // bytes; CHECKs that it is whole bytes (all but F4)
[[nodiscard]] const char* dtype_name(DType dtype);  // "F32", "BF16", as safetensors spells them
[[nodiscard]] bool is_floating(DType dtype);

enum class FormatKind : uint8_t {
  kPlain,  // rows of DType elements
  // GGUF block formats: one plane of blocks.
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2K,
  kQ3K,
  kQ4K,
  kQ5K,
  kQ6K,
  kIQ1S,
  kIQ1M,
  kIQ2XXS,
  kIQ2XS,
  kIQ2S,
  kIQ3XXS,
  kIQ3S,
  kIQ4NL,
  kIQ4XS,
  kTQ1_0,
  kTQ2_0,
  kMXFP4,
  kNVFP4,
  // Grouped formats: codes along K in one plane, a scale per group along K in the second, and what the group needs besides in
  // the third. Format::bits, group and element say which.
  kMlxAffine,    // scale * code + bias
  kMlcGroup,     // (code - (2^(bits-1) - 1)) * scale
  kOffsetGroup,  // (code - 2^(bits-1)) * scale
  kZeroGroup,    // (code - zero) * scale
  kIndexGroup,   // (code - zero) * scale, the group of each column given by a list
  kInt8Group,    // signed code * scale
  kFloat8Group,  // E4M3 * scale
  kFloat4Group,  // E2M1 * scale, optionally times one factor for the whole matrix
};
inline constexpr FormatKind kLastBlockFormat = FormatKind::kNVFP4;

struct Format {
  FormatKind kind = FormatKind::kPlain;
  DType element = DType::kF32;  // plain: the element type; grouped formats: the type of their scales
  uint8_t bits = 0;             // grouped formats: bits per value
  uint16_t group = 0;           // grouped formats: values per scale along a row; 0: the whole row

  [[nodiscard]] static Format plain(DType dtype) { return {FormatKind::kPlain, dtype, 0, 0}; }
  [[nodiscard]] static Format block(FormatKind kind) { return {kind, DType::kF16, 0, 0}; }
  [[nodiscard]] static Format grouped(FormatKind kind, DType scales, int bits, int64_t group) {
    return {kind, scales, static_cast<uint8_t>(bits), static_cast<uint16_t>(group)};
  }
  [[nodiscard]] bool is_plain() const { return kind == FormatKind::kPlain; }
  [[nodiscard]] bool is_grouped() const { return kind > kLastBlockFormat; }
  friend bool operator==(const Format&, const Format&) = default;
};

}  // namespace tessera
