// The one place where the library writes to standard error: just before it aborts because of a fault of its
// own.
#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace tessera {

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  std::fprintf(stderr, "tessera: internal error at %s:%d: %s%s%s\n", file, line, condition,
               message.empty() ? "" : ": ", message.c_str());
  std::abort();
}

}  // namespace tessera
