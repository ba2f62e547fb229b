#include "tools/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "checkpoint/gguf_writer.h"
#include "formats/format_info.h"

namespace tessera {
namespace {

// What a file's general.file_type says of a recipe; other programs show it and compute nothing from it.
constexpr std::pair<std::string_view, uint64_t> kFileTypes[] = {
    {"f32", 0},      {"f16", 1},     {"q4_0", 2},      {"q4_1", 3},    {"q8_0", 7},     {"q5_0", 8},
    {"q5_1", 9},     {"q2_k", 10},   {"q3_k_s", 11},   {"q3_k_m", 12}, {"q3_k_l", 13},  {"q4_k_s", 14},
    {"q4_k_m", 15},  {"q5_k_s", 16}, {"q5_k_m", 17},   {"q6_k", 18},   {"iq2_xxs", 19}, {"iq2_xs", 20},
    {"iq3_xxs", 23}, {"iq4_nl", 25}, {"iq3_s", 26},    {"iq2_s", 28},  {"iq4_xs", 30},  {"bf16", 32},
    {"tq1_0", 36},   {"tq2_0", 37},  {"mxfp4_moe", 38}};
constexpr uint64_t kMixedFileType = 1024;  // "guessed": no recipe
constexpr uint64_t kQuantizationVersion = 2;

struct Work {
  const TensorEntry* entry;
  Format to;
};

// A tensor that holds several slots takes the format with the most bits of theirs.
Result<std::vector<Work>> plan_work(const LoadedModel& model, const PrecisionPolicy& policy) {
  std::vector<Slot> slots;
  for (const BoundSlot& bound : model.weights.slots()) slots.push_back(bound.slot);
  TESSERA_TRY_STATUS(policy.check(model.spec, slots));
  std::map<std::string_view, Format> formats;
  for (const BoundSlot& bound : model.weights.slots()) {
    TESSERA_TRY(const std::optional<Format> format, policy.format_of(bound.slot, model.spec));
    if (!format) continue;
    const auto [it, inserted] = formats.emplace(bound.source, *format);
    if (!inserted && format_bits_per_value(*format) > format_bits_per_value(it->second)) it->second = *format;
  }
  std::vector<Work> work;
  for (const TensorEntry& entry : model.checkpoint->tensors()) {
    const auto it = formats.find(entry.name);
    work.push_back({&entry, it == formats.end() ? entry.format : it->second});
  }
  return work;
}

const float* importance_of(const ColumnImportance& importance, const TensorEntry& entry) {
  const auto it = importance.find(entry.name);
  return it == importance.end() || static_cast<int64_t>(it->second.size()) != entry.shape.columns()
             ? nullptr
             : it->second.data();
}

GgufMetadata metadata_for(const Checkpoint& checkpoint, const PrecisionPolicy& policy) {
  GgufMetadata metadata = checkpoint.metadata();
  std::erase_if(metadata, [](const auto& item) { return item.first.starts_with("split."); });
  uint64_t type = kMixedFileType;
  for (const auto& [name, number] : kFileTypes)
    if (name == policy.text()) type = number;
  metadata["general.file_type"] = {type, GgufType::kU32, GgufType::kUnset};
  metadata["general.quantization_version"] = {kQuantizationVersion, GgufType::kU32, GgufType::kUnset};
  return metadata;
}

// The bytes of a tensor in its new format; a view of the old ones where nothing changes.
struct Encoded {
  Buffer buffer;
  std::span<const std::byte> bytes;
};

Result<Encoded> encode(const LoadedModel& model, const Work& work, const ColumnImportance& importance,
                       ThreadPool& threads) {
  Encoded encoded;
  encoded.bytes = work.entry->bytes;
  if (work.to == work.entry->format) return encoded;
  const Weight matrix = matrix_view(*work.entry);
  encoded.buffer = Buffer(static_cast<size_t>(matrix.rows * format_row_bytes(work.to, matrix.columns)));
  const Status status = encode_matrices({&matrix, 1}, work.to, importance_of(importance, *work.entry),
                                        threads, model.checkpoint.get(), encoded.buffer.data());
  if (!status) return with_context(status.error(), work.entry->name);
  encoded.bytes = {encoded.buffer.data(), encoded.buffer.size()};
  return encoded;
}

Status check_source(const LoadedModel& model) {
  if (model.checkpoint == nullptr || model.checkpoint->kind() != CheckpointKind::kGguf)
    return fail(ErrorCode::kUnsupported, "quantize: expected a .gguf file");
  return {};
}

}  // namespace

Result<QuantizeReport> quantize_gguf(const LoadedModel& model, const PrecisionPolicy& policy,
                                     const ColumnImportance& importance, ThreadPool& threads,
                                     const PackProgress& progress, const std::string& output) {
  TESSERA_TRY_STATUS(check_source(model));
  TESSERA_TRY(const std::vector<Work> work, plan_work(model, policy));
  QuantizeReport report;
  std::vector<TensorDeclaration> declarations;
  uint64_t total = 0;
  for (const Work& item : work) {
    const TensorEntry& entry = *item.entry;
    declarations.push_back({entry.name, entry.shape, item.to});
    TESSERA_TRY(const uint64_t bytes, declared_bytes(declarations.back()));
    report.tensors.push_back({entry.name, entry.shape, entry.format, item.to, bytes});
    report.bytes += bytes;
    if (item.to != entry.format && !entry.format.is_plain()) ++report.requantized;
    total += static_cast<uint64_t>(entry.shape.elements());
  }
  TESSERA_TRY(const std::unique_ptr<TensorFileWriter> writer,
              create_gguf_file(output, declarations, metadata_for(*model.checkpoint, policy)));
  uint64_t done = 0;
  for (size_t i = 0; i < work.size(); ++i) {
    TESSERA_TRY(const Encoded encoded, encode(model, work[i], importance, threads));
    TESSERA_TRY_STATUS(writer->write(i, encoded.bytes));
    done += static_cast<uint64_t>(work[i].entry->shape.elements());
    if (progress) progress(done, total);
  }
  TESSERA_TRY_STATUS(writer->finish());
  return report;
}

Status verify_quantized(const LoadedModel& model, const PrecisionPolicy& policy,
                        const ColumnImportance& importance, ThreadPool& threads, const PackProgress& progress,
                        const std::string& path) {
  TESSERA_TRY_STATUS(check_source(model));
  TESSERA_TRY(const std::vector<Work> work, plan_work(model, policy));
  TESSERA_TRY(const std::shared_ptr<const Checkpoint> written, Checkpoint::open(path));
  if (written->tensors().size() != work.size())
    return fail(ErrorCode::kBadData, "{}: expected {} tensors, found {}", path, work.size(),
                written->tensors().size());
  uint64_t done = 0;
  for (const Work& item : work) {
    const TensorEntry* found = written->find(item.entry->name);
    if (found == nullptr) return fail(ErrorCode::kBadData, "{}: {} is missing", path, item.entry->name);
    if (found->format != item.to || !(found->shape == item.entry->shape))
      return fail(ErrorCode::kBadData, "{}: {}: expected {} {}, found {} {}", path, found->name,
                  format_name(item.to), item.entry->shape.to_string(), format_name(found->format),
                  found->shape.to_string());
    TESSERA_TRY(const Encoded expected, encode(model, item, importance, threads));
    if (!std::equal(expected.bytes.begin(), expected.bytes.end(), found->bytes.begin(), found->bytes.end()))
      return fail(ErrorCode::kBadData, "{}: {}: the bytes in the file are not the ones that were encoded",
                  path, found->name);
    if (progress) progress(++done, work.size());
  }
  const auto reloaded = load_model(written);
  if (!reloaded) return Failure(reloaded.error());
  return {};
}

}  // namespace tessera
