// docs/FORMATS.md is written from the table of formats and the kernel tables; here it is held to them. scripts/formats-page
// (TESSERA_UPDATE_FORMATS=1) writes it anew.
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

#include "base/mapped_file.h"
#include "formats/format_info.h"
#include "ops/op_bench.h"

namespace tessera::ops_test {
namespace {

constexpr const char* kPage = "docs/FORMATS.md";

// What the cpu backend has for a format on every one of its instruction sets.
std::string fast_path(const Format& format) {
  bool int8 = true;
  bool floats = true;
  bool bf16 = false;
  for (const cpu::KernelTable& kernels : all_kernels()) {
    const cpu::FormatKernels& fast = kernels.format(format);
    int8 = int8 && fast.int8_dot != nullptr;
    floats = floats && fast.float_dot != nullptr;
    bf16 = bf16 || fast.decode_bf16 != nullptr;
  }
  if (int8) return "8-bit activations";
  if (floats && bf16) return "float32, bfloat16";
  return floats ? "float32" : "";
}

std::string row(std::string_view name, const Format& format, bool encoded, std::string_view source) {
  return fmt::format("| {} | {:.4g} | {} | {} | {} |\n", name, format_bits_per_value(format), source,
                     encoded ? "yes" : "", fast_path(format));
}

std::string page() {
  std::string text =
      "# Weight formats\n\n"
      "Written by `scripts/formats-page` from the tables in `src/formats` and `src/backend/cpu/kernels`; a "
      "test holds it to them.\n"
      "Every format is computed by every backend in every place that a weight may stand (products, experts, "
      "rows of an\n"
      "embedding, the head), through its decode function; the last column says where the `cpu` backend has a "
      "faster way.\n"
      "Tensors of one model may each have a format of their own.\n\n"
      "| format | bits per weight | read from | written | fast path of `cpu` |\n|---|---|---|---|---|\n";
  for (const DType element :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kF8E4M3, DType::kF8E5M2})
    text += row(dtype_name(element), Format::plain(element),
                element == DType::kF32 || element == DType::kF16 || element == DType::kBF16,
                element == DType::kF8E4M3 || element == DType::kF8E5M2 ? "safetensors" : "safetensors, GGUF");
  for (const FormatInfo& info : format_table())
    if (info.decode != nullptr)
      text += row(info.name, Format::block(info.kind), info.encode != nullptr, info.source);
  text +=
      "\nGrouped formats, whose codes, scales and zero points lie in tensors of their own, with the usual "
      "settings. "
      "8-bit activations need\nrows of a multiple of 32 and groups of a multiple of 16 (or a whole row).\n\n"
      "| format | bits per weight | read from | written | fast path of `cpu` |\n|---|---|---|---|---|\n";
  const auto grouped = [&](FormatKind kind, DType scales, int bits, int64_t group) {
    const Format format = Format::grouped(kind, scales, bits, group);
    text += row(format_name(format), format, false, format_info(kind).source);
  };
  for (const int bits : {2, 3, 4, 5, 6, 8}) grouped(FormatKind::kMlxAffine, DType::kBF16, bits, 64);
  grouped(FormatKind::kMlcGroup, DType::kF16, 4, 32);
  grouped(FormatKind::kOffsetGroup, DType::kBF16, 4, 128);
  grouped(FormatKind::kOffsetGroup, DType::kBF16, 8, 0);
  grouped(FormatKind::kZeroGroup, DType::kF16, 4, 128);
  grouped(FormatKind::kZeroGroup, DType::kF16, 8, 128);
  grouped(FormatKind::kIndexGroup, DType::kF32, 4, 128);
  grouped(FormatKind::kInt8Group, DType::kBF16, 8, 0);
  grouped(FormatKind::kFloat8Group, DType::kF32, 8, 128);
  grouped(FormatKind::kFloat8Group, DType::kBF16, 8, 0);
  grouped(FormatKind::kFloat4Group, DType::kF8E8M0, 4, 32);
  grouped(FormatKind::kFloat4Group, DType::kF8E4M3, 4, 16);
  text +=
      "\nRefused by name: weights of bitsandbytes, HQQ, EXL2 and EXL3, any other `quant_method`, GGUF types "
      "41 and 42 (1- and "
      "2-bit),\nMLC layouts other than `_1`, AWQ versions other than gemm, rotated or sparse "
      "compressed-tensors.\n";
  return text;
}

TEST(FormatsPage, IsCurrent) {
  const std::string text = page();
  if (std::getenv("TESSERA_UPDATE_FORMATS") != nullptr) std::ofstream(kPage) << text;
  const auto found = read_file(kPage);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(text, *found) << kPage << ": scripts/formats-page writes it anew";
}

}  // namespace
}  // namespace tessera::ops_test
