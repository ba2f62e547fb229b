// AWQ, gemm version: X.qweight [K, N / 8] and X.qzeros [K / group, N / 8] pack eight 4-bit codes of neighbouring outputs into an
// int32, in the order 0 2 4 6 1 3 5 7 from the lowest bits up; X.scales [K / group, N]. weight = (code - zero) * scale.
// Codes are laid anew along K, as every product reads them; nothing is lost and nothing gets larger.
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/checked_math.h"
#include "base/json.h"
#include "base/thread_pool.h"
#include "checkpoint/companions.h"
#include "checkpoint/printable.h"
#include "formats/grouped.h"

namespace tessera {
namespace {

constexpr std::array<int, 8> kOrder = {0, 2, 4, 6, 1, 3, 5, 7};

// Where output i of a word lies.
constexpr std::array<int, 8> kShift = [] {
  std::array<int, 8> shift{};
  for (size_t i = 0; i < kOrder.size(); ++i) shift[static_cast<size_t>(kOrder[i])] = static_cast<int>(4 * i);
  return shift;
}();

struct Sizes {
  int64_t inputs = 0;
  int64_t outputs = 0;
  int64_t groups = 0;
};

void lay_codes(const std::byte* words, const Sizes& sizes, std::byte* codes, ThreadPool& threads) {
  const int64_t per_row = sizes.outputs / 8;
  const int64_t bytes = sizes.inputs / 2;
  constexpr int64_t kWords = 8;
  threads.run(ceil_divide(per_row, kWords), [&](int64_t task, int) {
    const int64_t last = std::min(per_row, (task + 1) * kWords);
    for (int64_t k = 0; k < sizes.inputs; k += 2)
      for (int64_t w = task * kWords; w < last; ++w) {
        const auto low = load<uint32_t>(words + (k * per_row + w) * 4);
        const auto high = load<uint32_t>(words + ((k + 1) * per_row + w) * 4);
        for (int64_t i = 0; i < 8; ++i) {
          const int shift = kShift[static_cast<size_t>(i)];
          codes[(w * 8 + i) * bytes + k / 2] =
              static_cast<std::byte>((low >> shift & 15) | (high >> shift & 15) << 4);
        }
      }
  });
}

Status fold_one(CompanionTable& table, const std::string& stem, int64_t group, ThreadPool& threads) {
  TensorEntry& words = *table.find(stem + ".qweight");
  TESSERA_TRY(TensorEntry* const zeros, table.require(stem + ".qzeros", words));
  TESSERA_TRY(TensorEntry* const scales, table.require(stem + ".scales", words));
  TESSERA_TRY_STATUS(table.check_element(words, {DType::kI32}));
  TESSERA_TRY_STATUS(table.check_element(*zeros, {DType::kI32}));
  TESSERA_TRY_STATUS(table.check_element(*scales, {DType::kF16, DType::kBF16, DType::kF32}));
  if (words.shape.rank() != 2 || words.shape.elements() == 0)
    return table.bad(words, "a matrix", "shape " + words.shape.to_string());
  Sizes sizes;
  sizes.inputs = words.shape[0];
  sizes.outputs = words.shape[1] * 8;
  const int64_t step = group < 0 ? sizes.inputs : group;
  if (sizes.inputs % step != 0 || sizes.inputs % 8 != 0)
    return table.bad(words, fmt::format("a multiple of {} inputs (group_size), and of 8", step),
                     "shape " + words.shape.to_string());
  sizes.groups = sizes.inputs / step;
  TESSERA_TRY_STATUS(table.check_shape(*zeros, Shape{sizes.groups, words.shape[1]}));
  TESSERA_TRY_STATUS(table.check_shape(*scales, Shape{sizes.groups, sizes.outputs}));

  std::byte* codes = table.allocate(words.bytes.size());
  lay_codes(words.bytes.data(), sizes, codes, threads);
  std::byte* laid_zeros = table.allocate(static_cast<uint64_t>(sizes.outputs * sizes.groups) * 2);
  for (int64_t g = 0; g < sizes.groups; ++g)
    for (int64_t n = 0; n < sizes.outputs; ++n) {
      const auto word = load<uint32_t>(zeros->bytes.data() + (g * words.shape[1] + n / 8) * 4);
      store(laid_zeros + (n * sizes.groups + g) * 2,
            static_cast<uint16_t>(word >> kShift[static_cast<size_t>(n % 8)] & 15));
    }
  words.companions = {transpose_scales(table, *scales), Plane{laid_zeros, sizes.groups * 2}};
  words.bytes = {codes, words.bytes.size()};
  words.shape = Shape{sizes.outputs, sizes.inputs};
  words.format = Format::grouped(FormatKind::kZeroGroup, scales->format.element, 4, group < 0 ? 0 : group);
  table.take(*zeros);
  table.take(*scales);
  table.rename(words, stem + ".weight");
  return {};
}

}  // namespace

Plane transpose_scales(CompanionTable& table, const TensorEntry& scales) {
  const int64_t groups = scales.shape[0];
  const int64_t rows = scales.shape[1];
  const int64_t size = dtype_size(scales.format.element);
  std::byte* out = table.allocate(scales.bytes.size());
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t n = 0; n < rows; ++n)
      std::memcpy(out + (n * groups + g) * size, scales.bytes.data() + (g * rows + n) * size,
                  static_cast<size_t>(size));
  return {out, groups * size};
}

Status fold_awq(CompanionTable& table, const Json& config, const std::string& path) {
  const std::string where = path + ": quantization_config";
  TESSERA_TRY(const int64_t bits, json_integer(config, "bits", where));
  TESSERA_TRY(const int64_t group, json_integer(config, "group_size", where));
  if (bits != 4) return fail(ErrorCode::kUnsupported, "{}: bits: expected 4, found {}", where, bits);
  if (group != -1 && (group < 8 || group > 32768 || group % 8 != 0))
    return fail(ErrorCode::kUnsupported,
                "{}: group_size: expected -1 or a multiple of 8 up to 32768, found {}", where, group);
  if (const Json* version = json_find(config, "version"); version != nullptr && !version->is_null()) {
    TESSERA_TRY(const std::string name, json_string(config, "version", where));
    if (name != "gemm" && name != "GEMM")
      return fail(ErrorCode::kUnsupported, "{}: version: expected gemm, found {}", where, printable(name));
  }
  ThreadPool threads(available_processors());
  for (const std::string& stem : table.stems(".qweight"))
    TESSERA_TRY_STATUS(fold_one(table, stem, group, threads));
  return {};
}

}  // namespace tessera
