// See byte_level.h.
#include "text/byte_level.h"

#include <fmt/core.h>

#include <array>

#include "text/unicode.h"

namespace tessera {
namespace {

constexpr int kAlphabetEnd = 0x100 + 68;  // 68 bytes are not printable

constexpr bool printable(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
}

constexpr std::array<char32_t, 256> kCharacters = [] {
  std::array<char32_t, 256> table{};
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte)
    table[static_cast<size_t>(byte)] = printable(byte) ? static_cast<char32_t>(byte) : next++;
  return table;
}();

constexpr std::array<int16_t, kAlphabetEnd> kBytes = [] {
  std::array<int16_t, kAlphabetEnd> table{};
  for (int16_t& entry : table) entry = -1;
  for (int byte = 0; byte < 256; ++byte)
    table[kCharacters[static_cast<size_t>(byte)]] = static_cast<int16_t>(byte);
  return table;
}();

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

char32_t byte_level_character(unsigned char byte) {
  return kCharacters[byte];
}

int byte_level_byte(char32_t code) {
  return code < kBytes.size() ? kBytes[code] : -1;
}

std::optional<std::string> byte_level_decode(std::string_view piece) {
  std::string bytes;
  bytes.reserve(piece.size());
  for (size_t i = 0; i < piece.size();) {
    const unicode::Character c = unicode::decode(piece, i);
    const int byte = byte_level_byte(c.code);
    if (byte < 0) return std::nullopt;
    bytes += static_cast<char>(byte);
    i += c.length;
  }
  return bytes;
}

std::string byte_level_encode(std::string_view bytes) {
  std::string piece;
  piece.reserve(bytes.size() * 2);
  for (const char c : bytes) unicode::append(piece, byte_level_character(static_cast<unsigned char>(c)));
  return piece;
}

int fallback_byte(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return -1;
  const int high = hex_digit(piece[3]);
  const int low = hex_digit(piece[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

std::string fallback_piece(unsigned char byte) {
  return fmt::format("<0x{:02X}>", byte);
}

}  // namespace tessera
