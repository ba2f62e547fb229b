// Which family a config declares, and the families that are refused. See companions.h.
#include "checkpoint/companions.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "checkpoint/printable.h"

namespace tessera {
namespace {

// A key of the config, or of the text model's part of it.
const Json* find_object(const Json& config, std::string_view key) {
  const Json* found = json_find(config, key);
  if (found == nullptr || !found->is_object()) {
    const Json* text = json_find(config, "text_config");
    found = text == nullptr ? nullptr : json_find(*text, key);
  }
  return found != nullptr && found->is_object() ? found : nullptr;
}

// Tensors that only these programs write: their codes would otherwise be taken for something else.
constexpr std::pair<std::string_view, std::string_view> kForeignEndings[] = {
    {".weight.absmax", "bitsandbytes"},
    {".weight.quant_map", "bitsandbytes"},
    {".weight.SCB", "bitsandbytes"},
    {".SCB", "bitsandbytes"},
    {".W_q", "HQQ"},
    {".q_invperm", "EXL2"},
    {".q_groups", "EXL2"},
    {".trellis", "EXL3"},
};

Status check_foreign(const CompanionTable& table, const std::string& path) {
  for (const TensorEntry& entry : table.tensors())
    for (const auto& [ending, program] : kForeignEndings)
      if (entry.name.ends_with(ending))
        return fail(ErrorCode::kUnsupported, "{}: tensor {}: weights quantised by {} are not computed", path,
                    printable(entry.name), program);
  return {};
}

constexpr std::string_view kComputed = "awq, compressed-tensors, fbgemm_fp8, fp8, gptq, mxfp4";

}  // namespace

Result<CheckpointKind> fold_companions(CompanionTable& table, const Json& config, CheckpointKind kind,
                                       const std::string& path) {
  const Json* declared = find_object(config, "quantization_config");
  const Json* mlx = find_object(config, "quantization");
  const Json* method = declared == nullptr ? nullptr : json_find(*declared, "quant_method");
  if (mlx == nullptr && declared != nullptr && method == nullptr) mlx = declared;
  if (method != nullptr && method->is_string() && mlx == nullptr) {
    const auto& name = method->get_ref<const std::string&>();
    if (name == "awq") {
      TESSERA_TRY_STATUS(fold_awq(table, *declared, path));
    } else if (name == "gptq") {
      TESSERA_TRY_STATUS(fold_gptq(table, *declared, path));
    } else if (name == "fp8" || name == "fbgemm_fp8") {
      TESSERA_TRY_STATUS(fold_float8(table, *declared, path));
    } else if (name == "mxfp4") {
      TESSERA_TRY_STATUS(fold_mxfp4(table));
    } else if (name == "compressed-tensors") {
      TESSERA_TRY_STATUS(fold_compressed(table, *declared, path));
    } else {
      return fail(ErrorCode::kUnsupported,
                  "{}: quantization_config: quant_method {} is not computed; computed are {}", path,
                  printable(name), kComputed);
    }
  } else if (mlx != nullptr) {
    TESSERA_TRY_STATUS(fold_mlx(table, *mlx, path));
    kind = CheckpointKind::kMlx;
  } else if (method != nullptr) {
    return fail(ErrorCode::kBadData, "{}: quantization_config: quant_method: expected a string, found {}",
                path, json_type_name(*method));
  }
  TESSERA_TRY_STATUS(check_foreign(table, path));
  table.finish();
  return kind;
}

}  // namespace tessera
