// Any text as a config.json: parsing, translation into one vocabulary, the spec of the architecture that it names.
#include <nlohmann/json.hpp>

#include "arch/load.h"
#include "base/check.h"
#include "base/json.h"
#include "model/config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  const auto one_line = [](const Error& error) {
    CHECK(error.message.find('\n') == std::string::npos, "{}", error.message);
  };
  const auto json = parse_python_json({reinterpret_cast<const char*>(data), size}, "config.json");
  if (!json) return one_line(json.error()), 0;
  const auto config = Config::from_hf(*json, "config.json");
  if (!config) return one_line(config.error()), 0;
  const auto spec = load_spec(*config);
  if (!spec) one_line(spec.error());
  return 0;
}
