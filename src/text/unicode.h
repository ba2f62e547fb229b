// Characters: UTF-8 in and out, and the properties that tokenizers ask for. Text that reached the pipeline is
// valid UTF-8 (replace_invalid_utf8 runs first), so the decoder below does not check. Properties come from
// utf8proc (Unicode 15); where a tokenizer's definition of a class differs from a general category, the
// function says which definition it follows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::unicode {

struct Character {
  char32_t code = 0;
  uint32_t length = 1;  // bytes
};

// The character that starts at `position` of valid UTF-8.
[[nodiscard]] inline Character decode(std::string_view text, size_t position) {
  const auto byte = [&](size_t i) {
    return static_cast<uint32_t>(static_cast<unsigned char>(text[position + i]));
  };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xe0) return {(lead & 0x1f) << 6 | (byte(1) & 0x3f), 2};
  if (lead < 0xf0) return {(lead & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f), 3};
  return {(lead & 0x07) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f), 4};
}

// The character that ends just before `position` (> 0) of valid UTF-8.
[[nodiscard]] inline Character decode_before(std::string_view text, size_t position) {
  size_t start = position - 1;
  while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xc0) == 0x80) --start;
  return decode(text, start);
}

[[nodiscard]] inline bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

// Bytes of the character whose lead byte is `lead`, in valid UTF-8.
[[nodiscard]] inline size_t sequence_length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

void append(std::string& out, char32_t code);
[[nodiscard]] std::string encode(char32_t code);
[[nodiscard]] size_t count_characters(std::string_view text);

[[nodiscard]] bool is_ascii(std::string_view text);
[[nodiscard]] bool is_valid_utf8(std::string_view text);

// Appends `text` with each maximal ill-formed subpart (Unicode 15, section 3.9, U+FFFD substitution of maximal
// subparts) replaced by one U+FFFD. With `held` given, a possibly incomplete character at the end is not
// replaced: its length is stored there and its bytes are left out.
void append_replacing_invalid(std::string& out, std::string_view text, size_t* held = nullptr);
[[nodiscard]] std::string replace_invalid_utf8(std::string_view text);

[[nodiscard]] bool is_white_space(char32_t code);      // property White_Space
[[nodiscard]] bool is_numeric(char32_t code);          // Nd, Nl, No
[[nodiscard]] bool is_punctuation(char32_t code);      // ASCII punctuation and symbols, or P*
[[nodiscard]] bool is_mark(char32_t code);             // Mn, Mc, Me
[[nodiscard]] bool is_nonspacing_mark(char32_t code);  // Mn
[[nodiscard]] bool is_other(char32_t code);            // Cc, Cf, Co
[[nodiscard]] bool is_word(char32_t code);             // Alphabetic, M, Nd, Pc, Join_Control (UTS 18, \w)
[[nodiscard]] bool is_cjk_ideograph(char32_t code);    // the blocks that BERT sets apart with spaces
[[nodiscard]] int combining_class(char32_t code);

// Full lower case of one character without context: one code point, except that U+0130 gives two. Returns the
// number of code points written.
int lower(char32_t code, char32_t (&out)[2]);

}  // namespace tessera::unicode
