// The tests ("is ...") of Jinja 3.1.
#pragma once

#include <string_view>

#include "base/result.h"
#include "text/jinja/interpreter.h"

namespace tessera::jinja {

[[nodiscard]] bool has_test(std::string_view name);
[[nodiscard]] Result<bool> apply_test(Interpreter& interpreter, const std::string& name, const Value& input,
                                      const Arguments& arguments);

}  // namespace tessera::jinja
