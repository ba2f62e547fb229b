// A safetensors file with a config in front: the length of the config in two bytes, the config, the file. Whatever companions
// the config declares are folded, and what comes out is read.
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "fuzz/read_tensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  if (size < 2) return 0;
  const size_t length = std::min<size_t>(size - 2, data[0] + size_t{256} * data[1]);
  auto config = parse_json({reinterpret_cast<const char*>(data) + 2, length}, "config");
  if (!config || !config->is_object()) return 0;
  const auto file = std::as_bytes(std::span(data, size)).subspan(2 + length);
  const auto checkpoint = Checkpoint::from_safetensors(file, "fuzz", *std::move(config));
  if (!checkpoint) {
    CHECK(checkpoint.error().message.find('\n') == std::string::npos, "{}", checkpoint.error().message);
    return 0;
  }
  for (const TensorEntry& entry : (*checkpoint)->tensors()) {
    const Weight matrix = matrix_view(entry);
    if (entry.bytes.empty() || matrix.rows == 0 || matrix.columns % format_block(entry.format) != 0) continue;
    std::vector<float> values(static_cast<size_t>(matrix.columns));
    for (const int64_t row : {int64_t{0}, matrix.rows / 2, matrix.rows - 1})
      decode_row(matrix, row, 0, matrix.columns, values.data());
  }
  return 0;
}
