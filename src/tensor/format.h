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
};

[[nodiscard]] int dtype_size(DType dtype);          // bytes
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
};

struct Format {
  FormatKind kind = FormatKind::kPlain;
  DType element = DType::kF32;  // plain: the element type; grouped formats: the type of their scales
  uint8_t bits = 0;             // grouped formats: bits per value
  uint16_t group = 0;           // grouped formats: values per scale along a row

  [[nodiscard]] static Format plain(DType dtype) { return {FormatKind::kPlain, dtype, 0, 0}; }
  [[nodiscard]] static Format block(FormatKind kind) { return {kind, DType::kF16, 0, 0}; }
  [[nodiscard]] bool is_plain() const { return kind == FormatKind::kPlain; }
  friend bool operator==(const Format&, const Format&) = default;
};

}  // namespace tessera
