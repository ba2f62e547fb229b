// CHECK(condition, "format", ...): a programming error, never a user's. It prints file, line and message and
// aborts, in every build, because a wrong number is worse than a stop.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

namespace tessera {

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& message);

inline std::string check_message() {
  return {};
}
template <class... Args>
std::string check_message(fmt::format_string<Args...> format, Args&&... args) {
  return fmt::format(format, std::forward<Args>(args)...);
}

}  // namespace tessera

#define CHECK(condition, ...)                                                                         \
  do {                                                                                                \
    if (!(condition)) [[unlikely]]                                                                    \
      ::tessera::check_failed(__FILE__, __LINE__, #condition, ::tessera::check_message(__VA_ARGS__)); \
  } while (false)
