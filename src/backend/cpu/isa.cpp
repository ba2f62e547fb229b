#include "backend/cpu/isa.h"

#include <fmt/format.h>

#if defined(TESSERA_KERNELS_AVX2) || defined(TESSERA_KERNELS_AVX512)
#include <cpuid.h>
#endif

#include <cstdlib>
#include <string>
#include <string_view>

namespace tessera::cpu {
namespace {

[[maybe_unused]] KernelTable make_table(void (*fill)(KernelTable&), const char* description) {
  KernelTable table;
  fill(table);
  table.description = description;
  return table;
}

#if defined(TESSERA_KERNELS_AVX2) || defined(TESSERA_KERNELS_AVX512)
// Half-float conversions, by CPUID leaf 1: clang 14's __builtin_cpu_supports does not know them. Only meant
// together with AVX2, whose builtin also asks whether the system keeps the wide registers.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

std::vector<KernelTable> make_tables() {
  std::vector<KernelTable> tables;
#if defined(TESSERA_KERNELS_AVX512)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx2") &&
      __builtin_cpu_supports("fma") && has_f16c()) {
    tables.push_back(make_table(avx512::fill_kernel_table, "AVX-512 with VNNI and BF16"));
    if (!__builtin_cpu_supports("avx512bf16")) {
      KernelTable& table = tables.back();
      table.description = "AVX-512 with VNNI";
      table.bf16_dot = nullptr;
      table.to_bf16 = nullptr;
    }
  }
#endif
#if defined(TESSERA_KERNELS_AVX2)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c())
    tables.push_back(make_table(avx2::fill_kernel_table, "AVX2 with FMA and F16C"));
#endif
#if defined(TESSERA_KERNELS_BASELINE)
  tables.push_back(make_table(baseline::fill_kernel_table, "SSE2"));
#endif
#if defined(TESSERA_KERNELS_PORTABLE)
  tables.push_back(make_table(portable::fill_kernel_table, "portable C++"));
#endif
  return tables;
}

}  // namespace

const std::vector<KernelTable>& available_kernels() {
  static const std::vector<KernelTable> tables = make_tables();
  return tables;
}

Result<const KernelTable*> choose_kernels() {
  const std::vector<KernelTable>& tables = available_kernels();
  const char* forced = std::getenv("TESSERA_ISA");
  if (forced == nullptr || *forced == '\0') return tables.data();
  std::string names;
  for (const KernelTable& table : tables) {
    if (std::string_view(forced) == table.name) return &table;
    names += names.empty() ? table.name : std::string(", ") + table.name;
  }
  return fail(ErrorCode::kInvalidArgument,
              "TESSERA_ISA: expected one of {} (what this processor runs), found {}", names, forced);
}

}  // namespace tessera::cpu
