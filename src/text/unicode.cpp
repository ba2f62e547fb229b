// See unicode.h.
#include "text/unicode.h"

#include <utf8proc.h>

#include <cstring>

namespace tessera::unicode {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Length of the well-formed sequence at the start of `text`, or 0; then `*subpart` is the length of the maximal
// ill-formed subpart (at least 1), and `*truncated` says that the text ends inside a sequence that was well
// formed so far. Table 3-7 of the Unicode standard.
size_t well_formed(std::string_view text, size_t* subpart, bool* truncated) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  *truncated = false;
  *subpart = 1;
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  size_t length = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xbf;
  if (lead >= 0xc2 && lead <= 0xdf) {
    length = 2;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    length = 3;
    if (lead == 0xe0) low = 0xa0;
    if (lead == 0xed) high = 0x9f;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    length = 4;
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;
  } else {
    return 0;
  }
  for (size_t i = 1; i < length; ++i) {
    if (i == text.size()) {
      *truncated = true;
      *subpart = i;
      return 0;
    }
    if (byte(i) < low || byte(i) > high) {
      *subpart = i;
      return 0;
    }
    low = 0x80;
    high = 0xbf;
  }
  return length;
}

// Bytes at the start that are ASCII, eight at a time.
size_t ascii_prefix(std::string_view text) {
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + i, 8);
    if ((word & 0x8080808080808080ull) != 0) break;
  }
  while (i < text.size() && static_cast<unsigned char>(text[i]) < 0x80) ++i;
  return i;
}

utf8proc_category_t category(char32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

// Symbols that carry the property Other_Alphabetic (PropList.txt): circled and squared Latin letters.
bool is_alphabetic_symbol(char32_t code) {
  return (code >= 0x24b6 && code <= 0x24e9) || (code >= 0x1f130 && code <= 0x1f149) ||
         (code >= 0x1f150 && code <= 0x1f169) || (code >= 0x1f170 && code <= 0x1f189);
}

}  // namespace

void append(std::string& out, char32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

std::string encode(char32_t code) {
  std::string out;
  append(out, code);
  return out;
}

size_t count_characters(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += is_continuation(c) ? 0 : 1;
  return count;
}

bool is_ascii(std::string_view text) {
  return ascii_prefix(text) == text.size();
}

bool is_valid_utf8(std::string_view text) {
  size_t i = 0;
  while (true) {
    i += ascii_prefix(text.substr(i));
    if (i == text.size()) return true;
    size_t subpart = 0;
    bool truncated = false;
    const size_t length = well_formed(text.substr(i), &subpart, &truncated);
    if (length == 0) return false;
    i += length;
  }
}

void append_replacing_invalid(std::string& out, std::string_view text, size_t* held) {
  if (held != nullptr) *held = 0;
  size_t i = 0;
  while (i < text.size()) {
    const size_t run = ascii_prefix(text.substr(i));
    out.append(text.substr(i, run));
    i += run;
    if (i == text.size()) return;
    size_t subpart = 0;
    bool truncated = false;
    const size_t length = well_formed(text.substr(i), &subpart, &truncated);
    if (length != 0) {
      out.append(text.substr(i, length));
      i += length;
      continue;
    }
    if (truncated && held != nullptr) {
      *held = text.size() - i;
      return;
    }
    out.append(kReplacement);
    i += subpart;
  }
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  append_replacing_invalid(out, text);
  return out;
}

bool is_white_space(char32_t code) {
  if (code < 0x80) return code == ' ' || (code >= '\t' && code <= '\r');
  return code == 0x85 || code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) ||
         code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

bool is_numeric(char32_t code) {
  if (code < 0x80) return code >= '0' && code <= '9';
  const auto c = category(code);
  return c == UTF8PROC_CATEGORY_ND || c == UTF8PROC_CATEGORY_NL || c == UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(char32_t code) {
  if (code < 0x80)
    return (code >= '!' && code <= '/') || (code >= ':' && code <= '@') || (code >= '[' && code <= '`') ||
           (code >= '{' && code <= '~');
  const auto c = category(code);
  return c >= UTF8PROC_CATEGORY_PC && c <= UTF8PROC_CATEGORY_PO;
}

bool is_mark(char32_t code) {
  if (code < 0x300) return false;
  const auto c = category(code);
  return c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_MC || c == UTF8PROC_CATEGORY_ME;
}

bool is_nonspacing_mark(char32_t code) {
  return code >= 0x300 && category(code) == UTF8PROC_CATEGORY_MN;
}

bool is_other(char32_t code) {
  const auto c = category(code);
  return c == UTF8PROC_CATEGORY_CC || c == UTF8PROC_CATEGORY_CF || c == UTF8PROC_CATEGORY_CO;
}

bool is_word(char32_t code) {
  if (code < 0x80)
    return (code >= '0' && code <= '9') || (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') ||
           code == '_';
  switch (category(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return code == 0x200c || code == 0x200d || is_alphabetic_symbol(code);
  }
}

bool is_cjk_ideograph(char32_t code) {
  return (code >= 0x4e00 && code <= 0x9fff) || (code >= 0x3400 && code <= 0x4dbf) ||
         (code >= 0x20000 && code <= 0x2a6df) || (code >= 0x2a700 && code <= 0x2b73f) ||
         (code >= 0x2b740 && code <= 0x2b81f) || (code >= 0x2b920 && code <= 0x2ceaf) ||
         (code >= 0xf900 && code <= 0xfaff) || (code >= 0x2f800 && code <= 0x2fa1f);
}

int combining_class(char32_t code) {
  if (code < 0x300) return 0;
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(code))->combining_class;
}

int lower(char32_t code, char32_t (&out)[2]) {
  if (code < 0x80) {
    out[0] = code >= 'A' && code <= 'Z' ? code + 32 : code;
    return 1;
  }
  if (code == 0x130) {
    out[0] = 'i';
    out[1] = 0x307;
    return 2;
  }
  out[0] = static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code)));
  return 1;
}

}  // namespace tessera::unicode
