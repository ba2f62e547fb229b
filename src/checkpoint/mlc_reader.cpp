// See mlc_reader.h. Manifest:
//   {"metadata": {...}, "records": [{"dataPath": "params_shard_0.bin", "format": "raw-shard", "nbytes": 36672,
//      "md5sum": "...", "records": [{"name": ..., "shape": [128, 8], "dtype": "uint32", "format": "raw", "nbytes": 4096,
//      "byteOffset": 0}, ...]}, ...]}
// or a flat list whose records have a dataPath of their own. The format f32-to-bf16 stores float32 tensors as bfloat16.
#include "checkpoint/mlc_reader.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/checked_math.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "base/md5.h"
#include "base/thread_pool.h"
#include "checkpoint/checkpoint_builder.h"
#include "checkpoint/printable.h"

namespace tessera {
namespace {

constexpr const char* kConfig = "mlc-chat-config.json";
constexpr const char* kManifests[] = {"tensor-cache.json", "ndarray-cache.json"};

std::optional<DType> element_of(std::string_view name) {
  constexpr std::pair<std::string_view, DType> kNames[] = {
      {"float32", DType::kF32}, {"float16", DType::kF16},        {"bfloat16", DType::kBF16},
      {"uint32", DType::kU32},  {"uint16", DType::kU16},         {"uint8", DType::kU8},
      {"int32", DType::kI32},   {"int16", DType::kI16},          {"int8", DType::kI8},
      {"int64", DType::kI64},   {"e4m3_float8", DType::kF8E4M3}, {"float8_e4m3fn", DType::kF8E4M3},
  };
  for (const auto& [text, element] : kNames)
    if (text == name) return element;
  return std::nullopt;
}

Result<uint64_t> read_size(const Json& object, std::string_view key, std::string_view what) {
  TESSERA_TRY(const int64_t value, json_integer(object, key, what));
  if (value < 0) return fail(ErrorCode::kBadData, "{}: {}: expected a size, found {}", what, key, value);
  return static_cast<uint64_t>(value);
}

Result<Shape> read_shape(const Json& record, const std::string& where) {
  const Json* list = json_find(record, "shape");
  if (list == nullptr || !list->is_array())
    return fail(ErrorCode::kBadData, "{}: shape: expected an array, found {}", where,
                list == nullptr ? "none" : json_type_name(*list));
  if (list->size() > Shape::kMaxRank)
    return fail(ErrorCode::kBadData, "{}: shape: expected at most {} numbers, found {}", where,
                Shape::kMaxRank, list->size());
  std::vector<int64_t> dims;
  for (const Json& dim : *list) {
    if (!dim.is_number_integer() || dim.get<int64_t>() < 1)
      return fail(ErrorCode::kBadData, "{}: shape: expected numbers of at least 1, found {}", where,
                  dump_json(dim));
    dims.push_back(dim.get<int64_t>());
  }
  return Shape(dims);
}

Result<MlcRecord> read_record(const Json& json, std::string_view what, uint64_t shard_bytes) {
  MlcRecord record;
  TESSERA_TRY(record.name, json_string(json, "name", what));
  const std::string where = fmt::format("{}: tensor {}", what, printable(record.name));
  TESSERA_TRY(record.shape, read_shape(json, where));
  TESSERA_TRY(const std::string dtype, json_string(json, "dtype", where));
  std::string format = "raw";
  if (json_find(json, "format") != nullptr) {
    TESSERA_TRY(format, json_string(json, "format", where));
  }
  const std::optional<DType> element = element_of(dtype);
  if (!element) return fail(ErrorCode::kUnsupported, "{}: dtype {} is not computed", where, printable(dtype));
  record.element = *element;
  if (format == "f32-to-bf16") {
    if (*element == DType::kF32) record.element = DType::kBF16;
  } else if (format != "raw") {
    return fail(ErrorCode::kUnsupported, "{}: format: expected raw or f32-to-bf16, found {}", where,
                printable(format));
  }
  if (json_find(json, "byteOffset") != nullptr) {
    TESSERA_TRY(record.offset, read_size(json, "byteOffset", where));
  }
  TESSERA_TRY(record.bytes, read_size(json, "nbytes", where));
  std::optional<uint64_t> expected = static_cast<uint64_t>(dtype_size(record.element));
  for (const int64_t dim : record.shape.dims())
    if (expected) expected = checked_multiply(*expected, static_cast<uint64_t>(dim));
  if (!expected || *expected > static_cast<uint64_t>(INT64_MAX) / 8)
    return fail(ErrorCode::kBadData, "{}: shape {} overflows", where, record.shape.to_string());
  if (record.bytes != *expected)
    return fail(ErrorCode::kBadData, "{}: nbytes: expected {} for {} of {}, found {}", where, *expected,
                record.shape.to_string(), dtype_name(record.element), record.bytes);
  if (!range_fits(record.offset, record.bytes, shard_bytes))
    return fail(ErrorCode::kBadData, "{}: expected bytes inside a shard of {}, found {} bytes from {} on",
                where, shard_bytes, record.bytes, record.offset);
  return record;
}

Result<MlcShard> read_shard(const Json& json, std::string_view what) {
  MlcShard shard;
  TESSERA_TRY(shard.file, json_string(json, "dataPath", what));
  if (shard.file.empty() || shard.file == "." || shard.file == ".." ||
      shard.file.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos)
    return fail(ErrorCode::kBadData, "{}: dataPath: expected the name of a file in this folder, found {}",
                what, printable(shard.file));
  const std::string where = fmt::format("{}: {}", what, printable(shard.file));
  TESSERA_TRY(shard.bytes, read_size(json, "nbytes", where));
  if (json_find(json, "md5sum") != nullptr) {
    TESSERA_TRY(shard.md5, json_string(json, "md5sum", where));
  }
  const Json* records = json_find(json, "records");
  if (records == nullptr) {  // a tensor with a file of its own
    const uint64_t none = 0;
    Json whole = json;
    whole["byteOffset"] = none;
    TESSERA_TRY(MlcRecord record, read_record(whole, where, shard.bytes));
    shard.records.push_back(std::move(record));
    return shard;
  }
  if (!records->is_array())
    return fail(ErrorCode::kBadData, "{}: records: expected an array, found {}", where,
                json_type_name(*records));
  for (const Json& item : *records) {
    TESSERA_TRY(MlcRecord record, read_record(item, where, shard.bytes));
    shard.records.push_back(std::move(record));
  }
  return shard;
}

Status check_shard(const MlcShard& shard, const MappedFile& file) {
  if (file.bytes().size() != shard.bytes)
    return fail(ErrorCode::kBadData, "{}: expected {} bytes as the manifest says, found {}", file.path(),
                shard.bytes, file.bytes().size());
  if (shard.md5.empty()) return {};
  file.advise_sequential();
  const std::string sum = md5_hex(file.bytes());
  if (sum != shard.md5)
    return fail(ErrorCode::kBadData, "{}: expected the MD5 sum {} as the manifest says, found {}",
                file.path(), printable(shard.md5), sum);
  return {};
}

}  // namespace

Result<std::vector<MlcShard>> parse_mlc_manifest(std::string_view text, std::string_view what) {
  TESSERA_TRY(const Json json, parse_json(text, what));
  const Json* records = json_find(json, "records");
  if (records == nullptr || !records->is_array())
    return fail(ErrorCode::kBadData, "{}: records: expected an array, found {}", what,
                records == nullptr ? "none" : json_type_name(*records));
  std::vector<MlcShard> shards;
  for (const Json& item : *records) {
    TESSERA_TRY(MlcShard shard, read_shard(item, what));
    for (const MlcShard& other : shards)
      if (other.file == shard.file)
        return fail(ErrorCode::kBadData, "{}: {}: expected once, found twice", what, printable(shard.file));
    shards.push_back(std::move(shard));
  }
  if (shards.empty()) return fail(ErrorCode::kBadData, "{}: records: expected some, found none", what);
  return shards;
}

bool is_mlc_folder(const std::string& path) {
  return file_exists((std::filesystem::path(path) / kConfig).string());
}

Result<std::shared_ptr<const Checkpoint>> open_mlc_folder(const std::string& path) {
  const std::filesystem::path folder(path);
  CheckpointBuilder builder(CheckpointKind::kMlc, path);
  builder.set_folder(path);
  TESSERA_TRY(Json config, read_json_file((folder / kConfig).string()));
  std::string manifest;
  for (const char* name : kManifests)
    if (manifest.empty() && file_exists((folder / name).string())) manifest = (folder / name).string();
  if (manifest.empty())
    return fail(ErrorCode::kNotFound, "{}: expected {} or {}, found neither", path, kManifests[0],
                kManifests[1]);
  TESSERA_TRY(const std::string text, read_file(manifest));
  TESSERA_TRY(const std::vector<MlcShard> shards, parse_mlc_manifest(text, manifest));

  std::vector<std::shared_ptr<MappedFile>> files;
  for (const MlcShard& shard : shards) {
    TESSERA_TRY(auto file, MappedFile::open((folder / shard.file).string()));
    files.push_back(std::move(file));
  }
  std::vector<Status> checks(shards.size());
  ThreadPool threads(available_processors());
  threads.run(static_cast<int64_t>(shards.size()), [&](int64_t i, int) {
    const auto at = static_cast<size_t>(i);
    checks[at] = check_shard(shards[at], *files[at]);
  });
  for (size_t i = 0; i < shards.size(); ++i) {
    TESSERA_TRY_STATUS(checks[i]);
    const int file = builder.add_file(files[i]->path(), files[i]);
    for (const MlcRecord& record : shards[i].records)
      builder.add_tensor({record.name, record.shape, Format::plain(record.element),
                          files[i]->bytes().subspan(record.offset, record.bytes), file});
  }
  builder.set_config(std::move(config));
  return builder.finish();
}

}  // namespace tessera
