// Any bytes as a GGUF file.
#include <span>

#include "fuzz/read_tensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  const auto checkpoint = Checkpoint::from_gguf(std::as_bytes(std::span(data, size)), "fuzz");
  if (checkpoint)
    read_tensors(**checkpoint, size);
  else
    CHECK(checkpoint.error().message.find('\n') == std::string::npos, "{}", checkpoint.error().message);
  return 0;
}
