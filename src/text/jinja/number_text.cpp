// See number_text.h.
#include "text/jinja/number_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "text/jinja/marked_text.h"
#include "text/unicode.h"

namespace tessera::jinja {
namespace {

std::string_view trimmed(std::string_view text, std::string& copy) {
  copy = strip(MarkedText(std::string(text)), StripSide::kBoth).bytes();
  return copy;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Takes out underscores that stand between digits; false where one stands elsewhere.
bool without_underscores(std::string_view text, std::string& out) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    const auto alphanumeric = [](char c) {
      return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    };
    if (i == 0 || i + 1 == text.size() || !alphanumeric(text[i - 1]) || !alphanumeric(text[i + 1]))
      return false;
  }
  return true;
}

}  // namespace

std::string python_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  std::string text(buffer, end.ptr);
  const size_t e = text.find('e');
  const int exponent = std::atoi(text.c_str() + e + 1);
  std::string digits;
  for (const char c : text.substr(0, e))
    if (is_digit(c)) digits += c;
  std::string out = std::signbit(value) ? "-" : "";
  if (exponent < -4 || exponent >= 16) {
    out += digits.substr(0, 1);
    if (digits.size() > 1) out += "." + digits.substr(1);
    char tail[16];
    std::snprintf(tail, sizeof(tail), "e%c%02d", exponent < 0 ? '-' : '+', std::abs(exponent));
    return out + tail;
  }
  if (exponent < 0) return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string format_float(double value, char kind, int precision, bool alternate) {
  if (std::isnan(value)) return kind >= 'a' ? "nan" : "NAN";
  if (std::isinf(value)) return kind >= 'a' ? (value < 0 ? "-inf" : "inf") : (value < 0 ? "-INF" : "INF");
  std::string format = "%";
  if (alternate) format += '#';
  format += ".*";
  format += kind;
  std::string out(400 + static_cast<size_t>(std::max(precision, 0)), '\0');
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  const int length = std::snprintf(out.data(), out.size(), format.c_str(), precision, value);
#pragma GCC diagnostic pop
  out.resize(static_cast<size_t>(std::max(length, 0)));
  return out;
}

std::optional<int64_t> parse_python_integer(std::string_view text, int base) {
  std::string copy;
  text = trimmed(text, copy);
  bool negative = false;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  const auto prefix = [&](char letter) {
    return text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == letter;
  };
  if ((base == 16 || base == 0) && prefix('x')) {
    text.remove_prefix(2);
    base = 16;
  } else if ((base == 8 || base == 0) && prefix('o')) {
    text.remove_prefix(2);
    base = 8;
  } else if ((base == 2 || base == 0) && prefix('b')) {
    text.remove_prefix(2);
    base = 2;
  } else if (base == 0) {
    if (text.size() > 1 && text[0] == '0' && text.find_first_not_of("0_") != std::string_view::npos)
      return std::nullopt;
    base = 10;
  }
  if (base < 2 || base > 36) return std::nullopt;
  std::string digits;
  if (!text.empty() && text[0] == '_' && base != 10) text.remove_prefix(1);
  if (!without_underscores(text, digits) || digits.empty()) return std::nullopt;
  uint64_t number = 0;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
  if (end.ec != std::errc() || end.ptr != digits.data() + digits.size()) return std::nullopt;
  const uint64_t limit = static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) + (negative ? 1 : 0);
  if (number > limit) return std::nullopt;
  return negative ? static_cast<int64_t>(~number + 1) : static_cast<int64_t>(number);
}

std::optional<double> parse_python_float(std::string_view text) {
  std::string copy;
  text = trimmed(text, copy);
  std::string plain;
  if (!without_underscores(text, plain) || plain.empty()) return std::nullopt;
  std::string lower = plain;
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  std::string_view word = lower;
  const bool negative = word[0] == '-';
  if (word[0] == '-' || word[0] == '+') word.remove_prefix(1);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (word == "inf" || word == "infinity") return negative ? -kInfinity : kInfinity;
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (word.empty() || (!is_digit(word[0]) && word[0] != '.')) return std::nullopt;
  for (const char c : word)
    if (!is_digit(c) && c != '.' && c != 'e' && c != '+' && c != '-') return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(lower.c_str(), &end);
  if (end != lower.c_str() + lower.size()) return std::nullopt;
  return value;
}

std::string digits_of(uint64_t value, unsigned base, bool upper) {
  std::string out;
  do {
    out += (upper ? "0123456789ABCDEF" : "0123456789abcdef")[value % base];
    value /= base;
  } while (value != 0);
  return {out.rbegin(), out.rend()};
}

double round_half_even(double value, int64_t places) {
  if (!std::isfinite(value) || places > 308) return value;
  if (places < -308) return std::copysign(0.0, value);
  if (places >= 0) {
    // Correctly rounded decimal digits, half to even on the exact value: what printf does.
    const std::string text = format_float(value, 'f', static_cast<int>(places), false);
    return std::strtod(text.c_str(), nullptr);
  }
  const double scale = std::pow(10.0, static_cast<double>(-places));
  const double scaled = value / scale;
  double rounded = std::round(scaled);
  if (std::fabs(scaled - std::trunc(scaled)) == 0.5) rounded = 2 * std::round(scaled / 2);
  return rounded * scale;
}

}  // namespace tessera::jinja
