// Names from files, made fit for a one-line message: control characters and invalid bytes escaped, long names
// cut.
#pragma once

#include <string>
#include <string_view>

namespace tessera {

[[nodiscard]] std::string printable(std::string_view name);

}  // namespace tessera
