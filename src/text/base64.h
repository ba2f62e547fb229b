// Base64 (RFC 4648, with or without padding).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tessera {

// nullopt for a character that is not in the alphabet.
[[nodiscard]] std::optional<std::string> decode_base64(std::string_view text);

}  // namespace tessera
