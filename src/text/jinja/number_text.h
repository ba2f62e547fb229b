// Numbers as Python writes and reads them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tessera::jinja {

// repr(): the shortest digits that read back as the same number; 1e+16 and beyond and below 1e-4 with an exponent.
[[nodiscard]] std::string python_float(double value);

// %.<precision>f, %e, %g of a float: `kind` is one of f e g F E G. With `alternate`, # of the format.
[[nodiscard]] std::string format_float(double value, char kind, int precision, bool alternate);

// int(text, base) and float(text); nullopt where Python raises ValueError, or where an integer does not fit 64 bits.
[[nodiscard]] std::optional<int64_t> parse_python_integer(std::string_view text, int base);
[[nodiscard]] std::optional<double> parse_python_float(std::string_view text);

// Digits of a number in a base from 2 to 16, without sign.
[[nodiscard]] std::string digits_of(uint64_t value, unsigned base, bool upper);

// round(value, places), half to even as Python rounds.
[[nodiscard]] double round_half_even(double value, int64_t places);

}  // namespace tessera::jinja
