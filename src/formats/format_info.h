// The table of weight formats: one row per FormatKind, one file per format. Everything that has to know how a
// format's bytes are laid out asks this table; a backend adds only its own decode function and fast paths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tensor/format.h"
#include "tensor/weight.h"

namespace tessera {

struct GroupedRow;

struct FormatInfo {
  FormatKind kind = FormatKind::kPlain;
  std::string_view name;  // "Q4_0"
  int block_values =
      1;  // values per block along a row; a row's length must be a multiple (grouped formats: whole bytes of codes)
  int block_bytes = 0;  // bytes of one block in plane 0; 0 for grouped formats, where Format::bits says
  std::optional<uint32_t> gguf_type;  // the number GGUF files use for it

  // Decodes `count` values (a multiple of block_values) that start at `blocks` into `values`. The definition
  // of the format.
  void (*decode)(const std::byte* blocks, int64_t count, float* values) = nullptr;
  // The same for a grouped format: columns [first, first + count) of a row, counted in blocks too.
  void (*decode_group)(const GroupedRow& row, int64_t first, int64_t count, float* values) = nullptr;
  // Encodes `count` finite values, with an importance for each (how much a squared error in it counts) or null. Null where we
  // do not produce the format.
  void (*encode)(const float* values, const float* importance, int64_t count, std::byte* blocks) = nullptr;
  std::string_view source = {};  // what it is read from, for the documentation
};

// Every quantised format, in the order of FormatKind (plain element types are not rows of it).
[[nodiscard]] std::span<const FormatInfo> format_table();
[[nodiscard]] const FormatInfo& format_info(FormatKind kind);  // CHECKs that kind is not kPlain

// "F32", "Q4_0", "MLX 4-bit/64 BF16", ...
[[nodiscard]] std::string format_name(const Format& format);
// The format a GGUF type number stands for, element types included; nullopt for a number we do not know.
[[nodiscard]] std::optional<Format> format_from_gguf(uint32_t type);
// The other way; nullopt for what GGUF files cannot hold (unsigned integers, 8-bit floats, ...).
[[nodiscard]] std::optional<uint32_t> gguf_from_format(const Format& format);

// Values per block (1 for plain), and bytes of `columns` values in plane 0 (columns must be a multiple of the
// block).
[[nodiscard]] int64_t format_block(const Format& format);
[[nodiscard]] int64_t format_row_bytes(const Format& format, int64_t columns);
// Bytes of a row in all planes (a list of groups that all rows share and a scale of a whole matrix not counted).
[[nodiscard]] int64_t format_stored_bytes(const Format& format, int64_t columns);
[[nodiscard]] double format_bits_per_value(const Format& format);

// Decodes columns [first, first + count) of one row (both multiples of the block) to float32. Integer
// elements are converted.
void decode_row(const Weight& weight, int64_t row, int64_t first, int64_t count, float* values);

// Encodes a row-major float32 matrix into `format`'s plane 0; an error names what cannot be encoded (no
// encoder, a length that is no multiple of the block, a value that the format cannot hold: overflow is
// refused, never turned into infinity; block formats refuse NaN and infinities, plain floating types keep
// them).
// `importance`: one number per column, not negative, or null (all alike); plain formats do not use it.
[[nodiscard]] Status encode_rows(const Format& format, const float* values, int64_t rows, int64_t columns,
                                 std::byte* out, const float* importance = nullptr);

}  // namespace tessera
