// The time as strftime_now writes it.
#pragma once

#include <string>

#include "text/jinja/template.h"

namespace tessera::jinja {

// Python's strftime in the C locale, for a time without a zone.
[[nodiscard]] std::string format_time(const Clock& clock, const std::string& format);

}  // namespace tessera::jinja
