#include "checkpoint/safetensors_writer.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <unordered_set>

#include "base/checked_math.h"
#include "base/json.h"
#include "checkpoint/printable.h"
#include "formats/format_info.h"

namespace tessera {
namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kHeaderAlignment = 8;
constexpr const char* kMetadataKey = "__metadata__";

std::string quoted(const std::string& text) {
  return dump_json(Json(text));
}

// The tensors' offsets in `places` count from the end of the header.
std::string make_header(std::span<const TensorDeclaration> tensors,
                        std::span<const TensorFileWriter::Region> places,
                        const std::map<std::string, std::string>& metadata) {
  std::string header = "{";
  if (!metadata.empty()) {
    Json object = Json::object();
    for (const auto& [key, value] : metadata) object[key] = value;
    header += quoted(kMetadataKey) + ":" + dump_json(object) + ",";
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorDeclaration& tensor = tensors[i];
    header += fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":[{},{}]}},",
                          quoted(tensor.name), dtype_name(tensor.format.element), tensor.shape.to_string(),
                          places[i].offset, places[i].offset + places[i].bytes);
  }
  if (header.back() == ',') header.pop_back();
  header += '}';
  header.resize(round_up(header.size(), kHeaderAlignment), ' ');
  return header;
}

}  // namespace

Result<std::unique_ptr<TensorFileWriter>> create_safetensors_file(
    const std::string& path, std::span<const TensorDeclaration> tensors,
    const std::map<std::string, std::string>& metadata) {
  std::vector<TensorFileWriter::Region> places(tensors.size());
  std::unordered_set<std::string_view> names;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorDeclaration& tensor = tensors[i];
    if (!tensor.format.is_plain())
      return fail(ErrorCode::kUnsupported, "{}: tensor {}: safetensors cannot hold {}", path,
                  printable(tensor.name), format_name(tensor.format));
    if (tensor.name == kMetadataKey || !names.insert(tensor.name).second)
      return fail(ErrorCode::kInvalidArgument, "{}: tensor {}: the name is taken", path,
                  printable(tensor.name));
    auto bytes = declared_bytes(tensor);
    if (!bytes) return with_context(bytes.error(), path);
    places[i].bytes = *bytes;
  }

  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return dtype_bits(tensors[a].format.element) > dtype_bits(tensors[b].format.element);
  });
  uint64_t end = 0;
  for (const size_t i : order) {
    places[i].offset = end;
    end += places[i].bytes;
  }

  const std::string header = make_header(tensors, places, metadata);
  const uint64_t length = header.size();
  std::vector<std::byte> start(kLengthBytes + length);
  std::memcpy(start.data(), &length, kLengthBytes);
  std::memcpy(start.data() + kLengthBytes, header.data(), length);
  for (TensorFileWriter::Region& place : places) place.offset += start.size();
  return TensorFileWriter::create(path, start, std::move(places), start.size() + end);
}

}  // namespace tessera
