// The methods of Python's str, list and dict that templates may call, and string formatting.
#pragma once

#include <string_view>

#include "base/result.h"
#include "text/jinja/interpreter.h"

namespace tessera::jinja {

// Whether an object of this kind has the method (then the attribute is it, whatever a dict holds under the name).
[[nodiscard]] bool has_method(const Value& object, std::string_view name);
// Methods of Python that are not here: a template that calls one is refused when it is loaded.
[[nodiscard]] bool is_missing_method(std::string_view name);

[[nodiscard]] Result<Value> call_method(Interpreter& interpreter, const MethodFunction& method,
                                        const Arguments& arguments);
[[nodiscard]] bool has_text_method(std::string_view name);
[[nodiscard]] Result<Value> call_text_method(Interpreter& interpreter, const MarkedText& self,
                                             const std::string& name, const Arguments& arguments);

// separator.join(items); the items must be strings.
[[nodiscard]] Result<Value> join_texts(Interpreter& interpreter, const MarkedText& separator,
                                       const std::vector<Value>& items);

// formatting.cpp: format % values, and format.format(...).
[[nodiscard]] Result<Value> percent_format(Interpreter& interpreter, const MarkedText& format,
                                           const Value& values);
[[nodiscard]] Result<Value> brace_format(Interpreter& interpreter, const MarkedText& format,
                                         const Arguments& arguments);

}  // namespace tessera::jinja
