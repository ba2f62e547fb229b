// The byte-level alphabet of GPT-2 and its heirs: each of the 256 bytes is written as one printable character,
// itself where it is printable Latin-1 (! to ~, 0xA1 to 0xAC, 0xAE to 0xFF), else U+0100 onwards in order.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tessera {

[[nodiscard]] char32_t byte_level_character(unsigned char byte);

// The byte that a character stands for; -1 for a character outside the alphabet.
[[nodiscard]] int byte_level_byte(char32_t code);

// The bytes that a piece stands for; nullopt when one of its characters is outside the alphabet.
[[nodiscard]] std::optional<std::string> byte_level_decode(std::string_view piece);
[[nodiscard]] std::string byte_level_encode(std::string_view bytes);

// "<0x0A>" gives 0x0A, anything else -1: the pieces of byte fallback.
[[nodiscard]] int fallback_byte(std::string_view piece);
[[nodiscard]] std::string fallback_piece(unsigned char byte);

}  // namespace tessera
