// Layout of a GGUF file (all numbers little-endian, strings a 64-bit length and bytes):
//   magic "GGUF", u32 version, u64 tensors, u64 pairs
//   pairs:    key, u32 type, value (an array: u32 type of its elements, u64 count, elements)
//   tensors:  name, u32 dimensions, u64 each (innermost first), u32 format, u64 offset into the data
//   data:     from the next multiple of general.alignment (32 if not given); each tensor starts at one, none
//   overlap
// A split set is files NAME-00001-of-0000N.gguf; each says split.no (from 0) and split.count, and holds whole
// tensors; the first has the metadata.
#include "checkpoint/gguf_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "base/checked_math.h"
#include "base/mapped_file.h"
#include "checkpoint/byte_reader.h"
#include "checkpoint/checkpoint_builder.h"
#include "checkpoint/gguf_layout.h"
#include "checkpoint/printable.h"
#include "formats/format_info.h"

namespace tessera {
namespace {

constexpr int kDeepestArray = 4;
// A metadata value takes some forty bytes in memory; a tokenizer has a million of them at most.
constexpr uint64_t kMostValues = uint64_t{1} << 24;
// Least bytes that one pair and one tensor take in a file.
constexpr uint64_t kLeastPairBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kLeastTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

struct GgufTensor {
  std::string name;
  Shape shape;
  Format format;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct GgufFile {
  GgufMetadata metadata;
  std::vector<GgufTensor> tensors;
  std::span<const std::byte> data;
};

// Names of formats that files may hold and this program does not compute, so that an error can say more than
// a number.
std::string_view uncomputed_type_name(uint32_t type) {
  switch (type) {
    case 4:
      return "Q4_2, withdrawn";
    case 5:
      return "Q4_3, withdrawn";
    case 9:
      return "Q8_1, an activation format";
    case 15:
      return "Q8_K, an activation format";
    case 31:
    case 32:
    case 33:
      return "interleaved Q4_0, withdrawn";
    case 36:
    case 37:
    case 38:
      return "interleaved IQ4_NL, withdrawn";
    case 41:
      return "Q1_0, 1-bit";
    case 42:
      return "Q2_0, 2-bit";
    default:
      return "unknown";
  }
}

class GgufParser {
 public:
  GgufParser(std::span<const std::byte> file, const std::string& name) : file_(file), reader_(file, name) {}

  Result<GgufFile> parse() {
    TESSERA_TRY_STATUS(read_counts());
    TESSERA_TRY_STATUS(read_metadata());
    TESSERA_TRY_STATUS(read_alignment());
    TESSERA_TRY_STATUS(read_tensors());
    TESSERA_TRY_STATUS(check_layout());
    return std::move(result_);
  }

 private:
  template <class... Args>
  [[nodiscard]] Failure bad(fmt::format_string<Args...> format, Args&&... args) const {
    return fail(ErrorCode::kBadData, "{}: {}", reader_.what(),
                fmt::format(format, std::forward<Args>(args)...));
  }

  Status read_counts() {
    TESSERA_TRY(const auto magic, reader_.number<uint32_t>("magic"));
    if (magic != kGgufMagic)
      return bad("expected a GGUF file, found the first four bytes {:08x}", __builtin_bswap32(magic));
    TESSERA_TRY(const auto version, reader_.number<uint32_t>("version"));
    if ((version & 0xffff) == 0 && version != 0)
      return fail(ErrorCode::kUnsupported, "{}: a big-endian GGUF file: only little-endian ones are read",
                  reader_.what());
    if (version != 2 && version != 3)
      return fail(ErrorCode::kUnsupported, "{}: GGUF version: expected 2 or 3, found {}", reader_.what(),
                  version);
    TESSERA_TRY(tensor_count_, reader_.number<uint64_t>("number of tensors"));
    TESSERA_TRY(pair_count_, reader_.number<uint64_t>("number of metadata pairs"));
    if (pair_count_ > reader_.left() / kLeastPairBytes)
      return bad("{} metadata pairs do not fit into {} bytes", pair_count_, reader_.left());
    if (tensor_count_ > reader_.left() / kLeastTensorBytes)
      return bad("{} tensors do not fit into {} bytes", tensor_count_, reader_.left());
    return {};
  }

  Result<std::string> read_name(std::string_view thing) {
    const uint64_t offset = reader_.offset();
    TESSERA_TRY(const std::string_view name, reader_.string(thing));
    if (name.empty() || name.size() > kGgufLongestName)
      return bad("{} at byte {}: expected 1 to {} bytes, found {}", thing, offset, kGgufLongestName,
                 name.size());
    return std::string(name);
  }

  Status read_metadata() {
    for (uint64_t i = 0; i < pair_count_; ++i) {
      TESSERA_TRY(std::string key, read_name("metadata key"));
      TESSERA_TRY(const GgufType type, read_type(key));
      TESSERA_TRY(GgufValue value, read_value(type, key, 0));
      if (result_.metadata.contains(key))
        return bad("metadata {}: expected once, found twice", printable(key));
      result_.metadata.emplace(std::move(key), std::move(value));
    }
    return {};
  }

  Result<GgufType> read_type(const std::string& key) {
    const uint64_t offset = reader_.offset();
    TESSERA_TRY(const auto type, reader_.number<uint32_t>("type of metadata " + printable(key)));
    if (type >= kGgufTypes)
      return bad("metadata {} at byte {}: expected a type below {}, found {}", printable(key), offset,
                 kGgufTypes, type);
    return static_cast<GgufType>(type);
  }

  template <class Stored, class Kept>
  Result<GgufValue> read_number(GgufType type, const std::string& key) {
    if (reader_.left() < sizeof(Stored)) {  // the message is only made when it is needed: arrays are long
      TESSERA_TRY(const Stored missing, reader_.number<Stored>("metadata " + printable(key)));
      return GgufValue{static_cast<Kept>(missing), type};
    }
    return GgufValue{static_cast<Kept>(*reader_.number<Stored>({})), type};
  }

  Result<GgufValue> read_value(GgufType type, const std::string& key, int depth) {
    switch (type) {
      case GgufType::kU8:
        return read_number<uint8_t, uint64_t>(type, key);
      case GgufType::kI8:
        return read_number<int8_t, int64_t>(type, key);
      case GgufType::kU16:
        return read_number<uint16_t, uint64_t>(type, key);
      case GgufType::kI16:
        return read_number<int16_t, int64_t>(type, key);
      case GgufType::kU32:
        return read_number<uint32_t, uint64_t>(type, key);
      case GgufType::kI32:
        return read_number<int32_t, int64_t>(type, key);
      case GgufType::kU64:
        return read_number<uint64_t, uint64_t>(type, key);
      case GgufType::kI64:
        return read_number<int64_t, int64_t>(type, key);
      case GgufType::kF32:
        return read_number<float, double>(type, key);
      case GgufType::kF64:
        return read_number<double, double>(type, key);
      case GgufType::kBool: {
        const uint64_t offset = reader_.offset();
        TESSERA_TRY(const auto byte, reader_.number<uint8_t>("metadata value"));
        if (byte > 1)
          return bad("metadata {} at byte {}: expected 0 or 1, found {}", printable(key), offset, byte);
        return GgufValue{byte == 1, type};
      }
      case GgufType::kString: {
        TESSERA_TRY(const std::string_view text, reader_.string("metadata value"));
        return GgufValue{std::string(text), type};
      }
      case GgufType::kArray:
        return read_array(key, depth);
      case GgufType::kUnset:
        break;
    }
    return bad("metadata {}: unknown type", printable(key));
  }

  static uint64_t least_bytes(GgufType type) {
    switch (type) {
      case GgufType::kU8:
      case GgufType::kI8:
      case GgufType::kBool:
        return 1;
      case GgufType::kU16:
      case GgufType::kI16:
        return 2;
      case GgufType::kU32:
      case GgufType::kI32:
      case GgufType::kF32:
        return 4;
      case GgufType::kArray:
        return 12;
      default:
        return 8;
    }
  }

  Result<GgufValue> read_array(const std::string& key, int depth) {
    if (depth == kDeepestArray)
      return bad("metadata {}: arrays nested deeper than {}", printable(key), kDeepestArray);
    TESSERA_TRY(const GgufType type, read_type(key));
    TESSERA_TRY(const auto count, reader_.number<uint64_t>("length of metadata " + printable(key)));
    if (count > reader_.left() / least_bytes(type))
      return bad("metadata {} at byte {}: {} elements do not fit into {} bytes", printable(key),
                 reader_.offset(), count, reader_.left());
    values_ += count;
    if (values_ > kMostValues)
      return bad("metadata {}: more than {} values in all arrays", printable(key), kMostValues);
    GgufArray array;
    array.reserve(count);
    for (uint64_t i = 0; i < count; ++i) {
      TESSERA_TRY(GgufValue value, read_value(type, key, depth + 1));
      array.push_back(std::move(value));
    }
    return GgufValue{std::move(array), GgufType::kArray, type};
  }

  Status read_alignment() {
    const auto it = result_.metadata.find(kGgufAlignmentKey);
    if (it == result_.metadata.end()) return {};
    const auto* value = std::get_if<uint64_t>(&it->second.value);
    if (value == nullptr) return bad("{}: expected an unsigned integer", kGgufAlignmentKey);
    if (!std::has_single_bit(*value) || *value > kGgufLargestAlignment)
      return bad("{}: expected a power of two up to {}, found {}", kGgufAlignmentKey, kGgufLargestAlignment,
                 *value);
    alignment_ = *value;
    return {};
  }

  Status read_tensors() {
    std::unordered_set<std::string_view> names;
    result_.tensors.reserve(tensor_count_);  // so that views of the names stay valid
    for (uint64_t i = 0; i < tensor_count_; ++i) {
      TESSERA_TRY(GgufTensor tensor, read_tensor());
      result_.tensors.push_back(std::move(tensor));
      if (!names.insert(result_.tensors.back().name).second)
        return bad("tensor {}: expected once, found twice", printable(result_.tensors.back().name));
    }
    return {};
  }

  Result<GgufTensor> read_tensor() {
    GgufTensor tensor;
    TESSERA_TRY(tensor.name, read_name("tensor name"));
    const std::string label = "tensor " + printable(tensor.name);
    uint64_t offset = reader_.offset();
    TESSERA_TRY(const auto rank, reader_.number<uint32_t>(label));
    if (rank > kGgufMaxRank)
      return bad("{} at byte {}: expected at most {} dimensions, found {}", label, offset, kGgufMaxRank,
                 rank);
    std::array<int64_t, kGgufMaxRank> dims{};
    uint64_t elements = 1;
    for (uint32_t axis = 0; axis < rank; ++axis) {
      offset = reader_.offset();
      TESSERA_TRY(const auto dim, reader_.number<uint64_t>(label));
      const auto product = checked_multiply(elements, dim);
      if (dim == 0) return bad("{} at byte {}: expected a dimension of at least 1, found 0", label, offset);
      if (!product || *product > static_cast<uint64_t>(INT64_MAX) / 8)
        return bad("{} at byte {}: dimension {}: the size overflows", label, offset, dim);
      elements = *product;
      dims[rank - 1 - axis] = static_cast<int64_t>(dim);
    }
    tensor.shape = Shape(std::span(dims.data(), rank));
    offset = reader_.offset();
    TESSERA_TRY(const auto type, reader_.number<uint32_t>(label));
    const std::optional<Format> format = format_from_gguf(type);
    if (!format)
      return fail(ErrorCode::kUnsupported, "{}: {} at byte {}: format {} ({}) is not computed",
                  reader_.what(), label, offset, type, uncomputed_type_name(type));
    tensor.format = *format;
    if (tensor.shape.columns() % format_block(*format) != 0)
      return bad("{}: expected rows of a multiple of {} values for {}, found shape {}", label,
                 format_block(*format), format_name(*format), tensor.shape.to_string());
    tensor.bytes = static_cast<uint64_t>(tensor.shape.rows()) *
                   static_cast<uint64_t>(format_row_bytes(*format, tensor.shape.columns()));
    TESSERA_TRY(tensor.offset, reader_.number<uint64_t>(label));
    return tensor;
  }

  Status check_layout() {
    if (result_.tensors.empty()) return {};
    const uint64_t start = round_up(reader_.offset(), alignment_);
    if (start > file_.size())
      return bad("expected data from byte {}, found a file of {} bytes", start, file_.size());
    result_.data = file_.subspan(start);
    std::vector<const GgufTensor*> by_offset;
    by_offset.reserve(result_.tensors.size());
    for (const GgufTensor& tensor : result_.tensors) by_offset.push_back(&tensor);
    std::sort(by_offset.begin(), by_offset.end(),
              [](const GgufTensor* a, const GgufTensor* b) { return a->offset < b->offset; });
    uint64_t end = 0;
    for (const GgufTensor* tensor : by_offset) {
      if (!range_fits(tensor->offset, tensor->bytes, result_.data.size()))
        return bad("tensor {}: expected {} bytes for {} {} at offset {} of the data, found {} bytes of data",
                   printable(tensor->name), tensor->bytes, format_name(tensor->format),
                   tensor->shape.to_string(), tensor->offset, result_.data.size());
      const uint64_t expected = round_up(end, alignment_);
      if (tensor->offset != expected)
        return bad("tensor {}: {}: expected its data at offset {}, found {}", printable(tensor->name),
                   tensor->offset < end        ? "overlaps another"
                   : tensor->offset < expected ? "not aligned"
                                               : "a gap before it",
                   expected, tensor->offset);
      end = tensor->offset + tensor->bytes;
    }
    return {};
  }

  std::span<const std::byte> file_;
  ByteReader reader_;
  GgufFile result_;
  uint64_t tensor_count_ = 0;
  uint64_t pair_count_ = 0;
  uint64_t values_ = 0;
  uint64_t alignment_ = kGgufDefaultAlignment;
};

void add_tensors(GgufFile& parsed, const std::string& name, std::shared_ptr<const void> owner,
                 CheckpointBuilder& builder) {
  const int file = builder.add_file(name, std::move(owner));
  for (GgufTensor& tensor : parsed.tensors)
    builder.add_tensor({std::move(tensor.name), tensor.shape, tensor.format,
                        parsed.data.subspan(tensor.offset, tensor.bytes), file});
}

struct Split {
  uint64_t number = 0;  // from 0
  uint64_t count = 1;
};

std::optional<uint64_t> find_count(const GgufMetadata& metadata, std::string_view key) {
  const auto it = metadata.find(key);
  if (it == metadata.end()) return std::nullopt;
  if (const auto* value = std::get_if<uint64_t>(&it->second.value)) return *value;
  const auto* value = std::get_if<int64_t>(&it->second.value);
  if (value != nullptr && *value >= 0) return static_cast<uint64_t>(*value);
  return std::nullopt;
}

Split split_of(const GgufMetadata& metadata) {
  return {find_count(metadata, "split.no").value_or(0), find_count(metadata, "split.count").value_or(1)};
}

// NAME-00001-of-0000N.gguf -> the name of part `number` (from 0); nullopt when the name is not of that kind.
std::optional<std::string> part_path(const std::string& first, const Split& split, uint64_t number) {
  const std::string suffix = fmt::format("-{:05}-of-{:05}.gguf", split.number + 1, split.count);
  if (!first.ends_with(suffix)) return std::nullopt;
  return fmt::format("{}-{:05}-of-{:05}.gguf", first.substr(0, first.size() - suffix.size()), number + 1,
                     split.count);
}

Status read_other_parts(const std::string& path, const Split& split, uint64_t first_tensors,
                        std::optional<uint64_t> expected_tensors, CheckpointBuilder& builder) {
  uint64_t tensors = first_tensors;
  for (uint64_t number = 1; number < split.count; ++number) {
    const std::optional<std::string> part = part_path(path, split, number);
    if (!part)
      return fail(ErrorCode::kBadData, "{}: part 1 of {}: expected a name ending in -00001-of-{:05}.gguf",
                  path, split.count, split.count);
    TESSERA_TRY(const auto file, MappedFile::open(*part));
    TESSERA_TRY(GgufFile parsed, GgufParser(file->bytes(), *part).parse());
    const Split found = split_of(parsed.metadata);
    if (found.number != number || found.count != split.count)
      return fail(ErrorCode::kBadData, "{}: expected part {} of {}, found part {} of {}", *part, number + 1,
                  split.count, found.number + 1, found.count);
    tensors += parsed.tensors.size();
    add_tensors(parsed, *part, file, builder);
  }
  if (expected_tensors && *expected_tensors != tensors)
    return fail(ErrorCode::kBadData, "{}: split.tensors.count: expected {} tensors in {} files, found {}",
                path, *expected_tensors, split.count, tensors);
  return {};
}

}  // namespace

Result<std::shared_ptr<const Checkpoint>> open_gguf_file(const std::string& path) {
  TESSERA_TRY(const auto file, MappedFile::open(path));
  TESSERA_TRY(GgufFile parsed, GgufParser(file->bytes(), path).parse());
  const Split split = split_of(parsed.metadata);
  if (split.number != 0)
    return fail(ErrorCode::kInvalidArgument, "{}: part {} of {}: open the first part{}", path,
                split.number + 1, split.count,
                part_path(path, split, 0) ? ", " + *part_path(path, split, 0) : std::string());
  CheckpointBuilder builder(CheckpointKind::kGguf, path);
  const uint64_t tensors = parsed.tensors.size();
  const std::optional<uint64_t> expected = find_count(parsed.metadata, "split.tensors.count");
  add_tensors(parsed, path, file, builder);
  builder.set_metadata(std::move(parsed.metadata));
  if (split.count > 1) TESSERA_TRY_STATUS(read_other_parts(path, split, tensors, expected, builder));
  return builder.finish();
}

Result<std::shared_ptr<const Checkpoint>> read_gguf_memory(std::span<const std::byte> file,
                                                           std::string name) {
  TESSERA_TRY(GgufFile parsed, GgufParser(file, name).parse());
  const Split split = split_of(parsed.metadata);
  if (split.count > 1)
    return fail(ErrorCode::kUnsupported, "{}: part {} of {} of a split set cannot be read from memory", name,
                split.number + 1, split.count);
  CheckpointBuilder builder(CheckpointKind::kGguf, name);
  add_tensors(parsed, name, nullptr, builder);
  builder.set_metadata(std::move(parsed.metadata));
  return builder.finish();
}

}  // namespace tessera
