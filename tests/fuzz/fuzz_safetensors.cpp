// Any bytes as a safetensors file, and as the text of a shard index.
#include <nlohmann/json.hpp>

#include "checkpoint/safetensors_header.h"
#include "fuzz/read_tensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto checkpoint = Checkpoint::from_safetensors(bytes, "fuzz", Json::object());
  if (checkpoint)
    read_tensors(**checkpoint, size);
  else
    CHECK(checkpoint.error().message.find('\n') == std::string::npos, "{}", checkpoint.error().message);
  const auto index = parse_weight_map({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!index) CHECK(index.error().message.find('\n') == std::string::npos, "{}", index.error().message);
  return 0;
}
