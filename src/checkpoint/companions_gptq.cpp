// GPTQ: X.qweight [K * bits / 32, N] packs codes of neighbouring inputs into int32 words, lowest bits first; X.qzeros [groups,
// N * bits / 32] packs the zero points of neighbouring outputs; X.scales [groups, N]; X.g_idx [K] names the group of every input.
// weight = (code - zero) * scale, where the first version of the layout stores zero - 1 (checkpoint_format gptq) and the second
// stores zero (gptq_v2). With desc_act the groups are not runs of inputs: then the list is kept. Codes are laid anew along K.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/checked_math.h"
#include "base/json.h"
#include "base/thread_pool.h"
#include "checkpoint/companions.h"
#include "checkpoint/printable.h"
#include "formats/grouped.h"

namespace tessera {
namespace {

struct Gptq {
  int64_t bits = 4;
  int64_t group = -1;
  int zero_offset = 1;
};

// Words down a column of the matrix of words are the words of a row of codes.
void lay_codes(const std::byte* words, int64_t word_rows, int64_t outputs, std::byte* codes,
               ThreadPool& threads) {
  constexpr int64_t kOutputs = 64;
  threads.run(ceil_divide(outputs, kOutputs), [&](int64_t task, int) {
    const int64_t last = std::min(outputs, (task + 1) * kOutputs);
    for (int64_t w = 0; w < word_rows; ++w)
      for (int64_t n = task * kOutputs; n < last; ++n)
        std::memcpy(codes + (n * word_rows + w) * 4, words + (w * outputs + n) * 4, 4);
  });
}

// Code i of a stream of words.
uint32_t code_at(const std::byte* words, int64_t bits, int64_t i) {
  const int64_t bit = i * bits;
  uint64_t two = load<uint32_t>(words + bit / 32 * 4);
  if (bit % 32 + bits > 32) two |= static_cast<uint64_t>(load<uint32_t>(words + bit / 32 * 4 + 4)) << 32;
  return static_cast<uint32_t>(two >> (bit % 32) & ((uint64_t{1} << bits) - 1));
}

// The group of every input; in_runs: groups are runs of `step` inputs.
struct Groups {
  std::vector<int32_t> of_input;
  bool in_runs = true;
};

Result<Groups> read_groups(CompanionTable& table, const TensorEntry* list, int64_t inputs, int64_t step,
                           int64_t count) {
  Groups groups;
  groups.of_input.resize(static_cast<size_t>(inputs));
  if (list != nullptr) {
    TESSERA_TRY_STATUS(table.check_element(*list, {DType::kI32}));
    TESSERA_TRY_STATUS(table.check_shape(*list, Shape{inputs}));
  }
  for (int64_t k = 0; k < inputs; ++k) {
    const auto run = static_cast<int32_t>(k / step);
    const int32_t group = list == nullptr ? run : load<int32_t>(list->bytes.data() + 4 * k);
    if (group < 0 || group >= count)
      return table.bad(*list, fmt::format("groups from 0 to {}", count - 1),
                       fmt::format("{} at input {}", group, k));
    groups.of_input[static_cast<size_t>(k)] = group;
    groups.in_runs = groups.in_runs && group == run;
  }
  return groups;
}

Status fold_one(CompanionTable& table, const std::string& stem, const Gptq& gptq, ThreadPool& threads) {
  TensorEntry& words = *table.find(stem + ".qweight");
  TESSERA_TRY(TensorEntry* const zeros, table.require(stem + ".qzeros", words));
  TESSERA_TRY(TensorEntry* const scales, table.require(stem + ".scales", words));
  TensorEntry* const list = table.find(stem + ".g_idx");
  TESSERA_TRY_STATUS(table.check_element(words, {DType::kI32}));
  TESSERA_TRY_STATUS(table.check_element(*zeros, {DType::kI32}));
  TESSERA_TRY_STATUS(table.check_element(*scales, {DType::kF16, DType::kBF16, DType::kF32}));
  if (words.shape.rank() != 2 || words.shape.elements() == 0 || words.shape[0] * 32 % gptq.bits != 0)
    return table.bad(words, fmt::format("a matrix with whole {}-bit codes down its columns", gptq.bits),
                     "shape " + words.shape.to_string());
  const int64_t inputs = words.shape[0] * 32 / gptq.bits;
  const int64_t outputs = words.shape[1];
  const int64_t step = gptq.group < 0 ? inputs : gptq.group;
  if (inputs % step != 0 || inputs % 8 != 0)
    return table.bad(words, fmt::format("a multiple of {} inputs (group_size), and of 8", step),
                     fmt::format("{} inputs, shape {}", inputs, words.shape.to_string()));
  const int64_t count = inputs / step;
  TESSERA_TRY_STATUS(table.check_shape(*zeros, Shape{count, ceil_divide(outputs * gptq.bits, 32)}));
  TESSERA_TRY_STATUS(table.check_shape(*scales, Shape{count, outputs}));
  TESSERA_TRY(const Groups groups, read_groups(table, list, inputs, step, count));

  std::byte* codes = table.allocate(words.bytes.size());
  lay_codes(words.bytes.data(), words.shape[0], outputs, codes, threads);
  const int64_t zero_bytes = zeros->shape[1] * 4;
  const auto zero_of = [&](int64_t g, int64_t n) {
    return static_cast<int>(code_at(zeros->bytes.data() + g * zero_bytes, gptq.bits, n)) + gptq.zero_offset;
  };
  const int bits = static_cast<int>(gptq.bits);
  if (groups.in_runs) {
    std::byte* laid = table.allocate(static_cast<uint64_t>(outputs * count) * 2);
    for (int64_t g = 0; g < count; ++g)
      for (int64_t n = 0; n < outputs; ++n)
        store(laid + (n * count + g) * 2, static_cast<uint16_t>(zero_of(g, n)));
    words.companions = {transpose_scales(table, *scales), Plane{laid, count * 2}};
    words.format = Format::grouped(FormatKind::kZeroGroup, scales->format.element, bits,
                                   gptq.group < 0 ? 0 : gptq.group);
  } else {
    std::byte* pairs = table.allocate(static_cast<uint64_t>(outputs * count) * 8);
    for (int64_t g = 0; g < count; ++g)
      for (int64_t n = 0; n < outputs; ++n) {
        std::byte* pair = pairs + (n * count + g) * 8;
        store(pair, load_scale(scales->format.element, scales->bytes.data(), g * outputs + n));
        store(pair + 4, static_cast<float>(zero_of(g, n)));
      }
    std::byte* kept = table.allocate(static_cast<uint64_t>(inputs) * 4);
    std::memcpy(kept, groups.of_input.data(), static_cast<size_t>(inputs) * 4);
    words.companions = {Plane{pairs, count * 8}, Plane{kept, 0}};
    words.format = Format::grouped(FormatKind::kIndexGroup, DType::kF32, bits, step);
  }
  words.bytes = {codes, words.bytes.size()};
  words.shape = Shape{outputs, inputs};
  for (const TensorEntry* used : {zeros, scales, list})
    if (used != nullptr) table.take(*used);
  table.rename(words, stem + ".weight");
  return {};
}

// Exporters write a bias of zeros for layers that have none; the model has no place for it.
void drop_zero_biases(CompanionTable& table, const std::vector<std::string>& stems) {
  for (const std::string& stem : stems) {
    const TensorEntry* bias = table.find(stem + ".bias");
    if (bias == nullptr) continue;
    bool zero = true;
    for (const std::byte byte : bias->bytes) zero = zero && byte == std::byte{0};
    if (zero) table.take(*bias);
  }
}

}  // namespace

Status fold_gptq(CompanionTable& table, const Json& config, const std::string& path) {
  const std::string where = path + ": quantization_config";
  Gptq gptq;
  TESSERA_TRY(gptq.bits, json_integer(config, "bits", where));
  TESSERA_TRY(gptq.group, json_integer(config, "group_size", where));
  if (gptq.bits != 2 && gptq.bits != 3 && gptq.bits != 4 && gptq.bits != 8)
    return fail(ErrorCode::kUnsupported, "{}: bits: expected 2, 3, 4 or 8, found {}", where, gptq.bits);
  if (gptq.group != -1 && (gptq.group < 8 || gptq.group > 32768 || gptq.group % 8 != 0))
    return fail(ErrorCode::kUnsupported,
                "{}: group_size: expected -1 or a multiple of 8 up to 32768, found {}", where, gptq.group);
  if (const Json* name = json_find(config, "checkpoint_format"); name != nullptr && !name->is_null()) {
    TESSERA_TRY(const std::string layout, json_string(config, "checkpoint_format", where));
    if (layout != "gptq" && layout != "gptq_v2")
      return fail(ErrorCode::kUnsupported, "{}: checkpoint_format: expected gptq or gptq_v2, found {}", where,
                  printable(layout));
    gptq.zero_offset = layout == "gptq" ? 1 : 0;
  }
  ThreadPool threads(available_processors());
  const std::vector<std::string> stems = table.stems(".qweight");
  for (const std::string& stem : stems) TESSERA_TRY_STATUS(fold_one(table, stem, gptq, threads));
  drop_zero_biases(table, stems);
  return {};
}

}  // namespace tessera
