// MD5 (RFC 1321), to check files against the sums that are published with them; no protection against anybody.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace tessera {

// 32 hexadecimal digits in lower case.
[[nodiscard]] std::string md5_hex(std::span<const std::byte> bytes);

}  // namespace tessera
