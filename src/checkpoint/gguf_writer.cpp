// See gguf_reader.cpp for the layout.
#include "checkpoint/gguf_writer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/checked_math.h"
#include "checkpoint/gguf_layout.h"
#include "checkpoint/printable.h"
#include "formats/format_info.h"

namespace tessera {
namespace {

constexpr size_t kLongestTensorName = 63;

class HeaderBytes {
 public:
  template <class T>
  void number(T value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof(T));
  }
  void string(std::string_view text) {
    number<uint64_t>(text.size());
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    bytes_.insert(bytes_.end(), bytes, bytes + text.size());
  }
  [[nodiscard]] std::vector<std::byte>& bytes() { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

bool fits_float(double value) {
  return !std::isfinite(value) || static_cast<double>(static_cast<float>(value)) == value;
}

// The type to write a value as: the one it was read with, or the smallest usual one.
GgufType choose_type(const GgufValue& value) {
  if (value.type != GgufType::kUnset) return value.type;
  if (const auto* number = std::get_if<uint64_t>(&value.value))
    return *number <= UINT32_MAX ? GgufType::kU32 : GgufType::kU64;
  if (const auto* number = std::get_if<int64_t>(&value.value))
    return *number >= INT32_MIN && *number <= INT32_MAX ? GgufType::kI32 : GgufType::kI64;
  if (const auto* number = std::get_if<double>(&value.value))
    return fits_float(*number) ? GgufType::kF32 : GgufType::kF64;
  if (std::holds_alternative<bool>(value.value)) return GgufType::kBool;
  if (std::holds_alternative<std::string>(value.value)) return GgufType::kString;
  return GgufType::kArray;
}

// One type for all elements: of the types chosen for them, the one with the most bytes.
GgufType choose_element_type(const GgufValue& array) {
  if (array.element != GgufType::kUnset) return array.element;
  GgufType chosen = GgufType::kUnset;
  for (const GgufValue& value : std::get<GgufArray>(array.value)) {
    const GgufType type = choose_type(value);
    const bool wider = type == GgufType::kU64 || type == GgufType::kI64 || type == GgufType::kF64;
    if (chosen == GgufType::kUnset || wider) chosen = type;
  }
  return chosen == GgufType::kUnset ? GgufType::kU32 : chosen;
}

// Writes `from` as T; false when T cannot hold it.
template <class T, class From>
bool put_number(From from, HeaderBytes& out) {
  if constexpr (std::is_integral_v<T>) {
    if (!std::in_range<T>(from)) return false;
  }
  out.number(static_cast<T>(from));
  return true;
}

template <class From>
bool put_integer(From from, GgufType type, HeaderBytes& out) {
  switch (type) {
    case GgufType::kU8:
      return put_number<uint8_t>(from, out);
    case GgufType::kI8:
      return put_number<int8_t>(from, out);
    case GgufType::kU16:
      return put_number<uint16_t>(from, out);
    case GgufType::kI16:
      return put_number<int16_t>(from, out);
    case GgufType::kU32:
      return put_number<uint32_t>(from, out);
    case GgufType::kI32:
      return put_number<int32_t>(from, out);
    case GgufType::kU64:
      return put_number<uint64_t>(from, out);
    case GgufType::kI64:
      return put_number<int64_t>(from, out);
    default:
      return false;
  }
}

// False when the value does not fit its type.
bool put_value(const GgufValue& value, GgufType type, HeaderBytes& out) {
  if (const auto* number = std::get_if<uint64_t>(&value.value)) return put_integer(*number, type, out);
  if (const auto* number = std::get_if<int64_t>(&value.value)) return put_integer(*number, type, out);
  if (const auto* number = std::get_if<double>(&value.value)) {
    if (type == GgufType::kF64) return put_number<double>(*number, out);
    return type == GgufType::kF32 && fits_float(*number) && put_number<float>(*number, out);
  }
  if (const auto* flag = std::get_if<bool>(&value.value))
    return type == GgufType::kBool && put_number<uint8_t>(uint8_t{*flag}, out);
  if (const auto* text = std::get_if<std::string>(&value.value)) {
    if (type == GgufType::kString) out.string(*text);
    return type == GgufType::kString;
  }
  if (type != GgufType::kArray) return false;
  const auto& array = std::get<GgufArray>(value.value);
  const GgufType element = choose_element_type(value);
  out.number(static_cast<uint32_t>(element));
  out.number<uint64_t>(array.size());
  return std::all_of(array.begin(), array.end(),
                     [&](const GgufValue& item) { return put_value(item, element, out); });
}

Status put_metadata(const GgufMetadata& metadata, HeaderBytes& out) {
  for (const auto& [key, value] : metadata) {
    if (key.empty() || key.size() > kGgufLongestName)
      return fail(ErrorCode::kInvalidArgument, "metadata {}: expected a key of 1 to {} bytes", printable(key),
                  kGgufLongestName);
    const GgufType type = choose_type(value);
    out.string(key);
    out.number(static_cast<uint32_t>(type));
    if (!put_value(value, type, out))
      return fail(ErrorCode::kInvalidArgument, "metadata {}: the value does not fit its type",
                  printable(key));
  }
  return {};
}

Status check_tensor(const TensorDeclaration& tensor) {
  const std::string name = printable(tensor.name);
  if (tensor.name.size() > kLongestTensorName)
    return fail(ErrorCode::kInvalidArgument, "tensor {}: expected a name of at most {} bytes, found {}", name,
                kLongestTensorName, tensor.name.size());
  if (!gguf_from_format(tensor.format))
    return fail(ErrorCode::kUnsupported, "tensor {}: GGUF cannot hold {}", name, format_name(tensor.format));
  const auto dims = tensor.shape.dims();
  if (tensor.shape.rank() > kGgufMaxRank || std::find(dims.begin(), dims.end(), 0) != dims.end())
    return fail(ErrorCode::kInvalidArgument,
                "tensor {}: expected at most {} dimensions, none of them 0, found {}", name, kGgufMaxRank,
                tensor.shape.to_string());
  return {};
}

Result<uint64_t> alignment_of(const GgufMetadata& metadata) {
  const auto it = metadata.find(kGgufAlignmentKey);
  if (it == metadata.end()) return kGgufDefaultAlignment;
  const auto* value = std::get_if<uint64_t>(&it->second.value);
  if (value == nullptr || !std::has_single_bit(*value) || *value > kGgufLargestAlignment)
    return fail(ErrorCode::kInvalidArgument, "{}: expected a power of two up to {}", kGgufAlignmentKey,
                kGgufLargestAlignment);
  return *value;
}

struct Plan {
  std::vector<std::byte> header;
  std::vector<TensorFileWriter::Region> places;
  uint64_t size = 0;
};

Result<Plan> make_plan(std::span<const TensorDeclaration> tensors, const GgufMetadata& metadata) {
  TESSERA_TRY(const uint64_t alignment, alignment_of(metadata));
  HeaderBytes out;
  out.number(kGgufMagic);
  out.number(kGgufVersion);
  out.number<uint64_t>(tensors.size());
  out.number<uint64_t>(metadata.size());
  TESSERA_TRY_STATUS(put_metadata(metadata, out));

  Plan plan;
  std::unordered_set<std::string_view> names;
  uint64_t end = 0;
  for (const TensorDeclaration& tensor : tensors) {
    TESSERA_TRY_STATUS(check_tensor(tensor));
    TESSERA_TRY(const uint64_t bytes, declared_bytes(tensor));
    if (!names.insert(tensor.name).second)
      return fail(ErrorCode::kInvalidArgument, "tensor {}: the name is taken", printable(tensor.name));
    const uint64_t offset = round_up(end, alignment);
    end = offset + bytes;
    out.string(tensor.name);
    out.number(static_cast<uint32_t>(tensor.shape.rank()));
    for (int axis = tensor.shape.rank() - 1; axis >= 0; --axis)
      out.number(static_cast<uint64_t>(tensor.shape[axis]));
    out.number(*gguf_from_format(tensor.format));
    out.number(offset);
    plan.places.push_back({offset, bytes});
  }
  plan.header = std::move(out.bytes());
  const uint64_t start = round_up(plan.header.size(), alignment);
  for (TensorFileWriter::Region& place : plan.places) place.offset += start;
  plan.size = start + round_up(end, alignment);
  return plan;
}

}  // namespace

Result<std::unique_ptr<TensorFileWriter>> create_gguf_file(const std::string& path,
                                                           std::span<const TensorDeclaration> tensors,
                                                           const GgufMetadata& metadata) {
  auto plan = make_plan(tensors, metadata);
  if (!plan) return with_context(plan.error(), path);
  return TensorFileWriter::create(path, plan->header, std::move(plan->places), plan->size);
}

}  // namespace tessera
