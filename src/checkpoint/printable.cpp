#include "checkpoint/printable.h"

#include <fmt/format.h>

#include <iterator>

namespace tessera {
namespace {
constexpr size_t kLongest = 120;
}

std::string printable(std::string_view name) {
  if (name.empty()) return "\"\"";
  std::string text;
  for (const char c : name.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f)
      fmt::format_to(std::back_inserter(text), "\\x{:02x}", byte);
    else
      text += c;
  }
  if (name.size() > kLongest) fmt::format_to(std::back_inserter(text), "... ({} bytes)", name.size());
  return text;
}

}  // namespace tessera
