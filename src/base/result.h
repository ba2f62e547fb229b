// Result<T>: a value or an Error. Everything that can fail because of a file, a request or a device returns
// one; programming errors abort through CHECK (check.h) instead. Context is added on the way up, so that the
// message a user reads names the file, the thing, what was expected and what was found.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace tessera {

enum class ErrorCode {
  kInvalidArgument,  // what the caller asked for makes no sense (a flag, a request)
  kNotFound,         // a file, a name or a tensor that is not there
  kBadData,          // a file that breaks its format or does not fit the model
  kUnsupported,      // well-formed, but not computed here; the message says what is
  kResourceLimit,    // out of memory, context full, a limit reached
  kIo,               // the operating system refused
  kDevice,           // an accelerator failed or is missing
  kCancelled,
};

struct Error {
  ErrorCode code = ErrorCode::kBadData;
  std::string message;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = tl::expected<void, Error>;
using Failure = tl::unexpected<Error>;

// Failure(code, "format {}", args...): the usual way to return an error.
template <class... Args>
[[nodiscard]] Failure fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return Failure(Error{code, fmt::format(format, std::forward<Args>(args)...)});
}

// The same error with "context: " in front of its message.
[[nodiscard]] inline Failure with_context(const Error& error, std::string_view context) {
  return Failure(Error{error.code, fmt::format("{}: {}", context, error.message)});
}

}  // namespace tessera

#define TESSERA_JOIN_INNER(a, b) a##b
#define TESSERA_JOIN(a, b) TESSERA_JOIN_INNER(a, b)

// TESSERA_TRY(auto x, f()): x is the value of f(), or the enclosing function returns f()'s error.
#define TESSERA_TRY(declaration, expression) \
  TESSERA_TRY_INNER(TESSERA_JOIN(tessera_try_, __COUNTER__), declaration, expression)
#define TESSERA_TRY_INNER(temporary, declaration, expression)              \
  auto&& temporary = (expression);                                         \
  if (!temporary) return ::tessera::Failure(std::move(temporary).error()); \
  declaration = *std::move(temporary)

// TESSERA_TRY_STATUS(f()): returns f()'s error, if it has one.
#define TESSERA_TRY_STATUS(expression)                                                           \
  do {                                                                                           \
    if (auto&& tessera_status = (expression); !tessera_status)                                   \
      return ::tessera::Failure(std::forward<decltype(tessera_status)>(tessera_status).error()); \
  } while (false)
