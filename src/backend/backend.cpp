// The list of backends that this build holds.
#include "backend/backend.h"

#include <fmt/format.h>

#ifdef TESSERA_BACKEND_CPU
#include "backend/cpu/cpu_backend.h"
#endif
#include "backend/reference/reference_backend.h"

namespace tessera {

std::vector<std::string> backend_names() {
  return {
#ifdef TESSERA_BACKEND_CPU
      "cpu",
#endif
      "reference"};
}

Result<std::unique_ptr<Backend>> make_backend(std::string_view name) {
#ifdef TESSERA_BACKEND_CPU
  if (name == "cpu") return make_cpu_backend();
#endif
  if (name == "reference") return make_reference_backend();
  return fail(ErrorCode::kUnsupported, "backend {} is not in this build; it has {}", name,
              fmt::join(backend_names(), ", "));
}

}  // namespace tessera
