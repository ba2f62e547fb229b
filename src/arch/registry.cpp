#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "arch/families.h"

namespace tessera {

const std::vector<const Architecture*>& architectures() {
  static const std::vector<const Architecture*> list = {
      // clang-format off: one a line
      &bloom_architecture(),        &cohere_architecture(),        &cohere2_architecture(),
      &deepseek_v2_architecture(),  &deepseek_v3_architecture(),   &ernie4_5_architecture(),
      &exaone4_architecture(),      &falcon_architecture(),        &falcon_h1_architecture(),
      &falcon_mamba_architecture(), &gemma_architecture(),         &gemma2_architecture(),
      &gemma3_architecture(),       &gemma3n_architecture(),       &gemma4_architecture(),
      &glm_architecture(),          &glm4_architecture(),          &glm4_moe_architecture(),
      &glm_ocr_architecture(),      &gpt2_architecture(),          &gpt_neox_architecture(),
      &gpt_oss_architecture(),      &granite_architecture(),       &granite_hybrid_architecture(),
      &granite_moe_architecture(),  &hunyuan_dense_architecture(), &jamba_architecture(),
      &lfm2_architecture(),         &llama_architecture(),         &mamba_architecture(),
      &mamba2_architecture(),       &ministral3_architecture(),    &mistral_architecture(),
      &mixtral_architecture(),      &moshi_architecture(),         &nemotron_architecture(),
      &olmo_architecture(),         &olmo2_architecture(),         &olmo3_architecture(),
      &olmoe_architecture(),        &opt_architecture(),           &phi_architecture(),
      &phi3_architecture(),         &phimoe_architecture(),        &qwen2_architecture(),
      &qwen2_moe_architecture(),    &qwen3_architecture(),         &qwen3_5_architecture(),
      &qwen3_moe_architecture(),    &qwen3_next_architecture(),    &rwkv4_architecture(),
      &seed_oss_architecture(),     &smollm3_architecture(),       &stablelm_architecture(),
      &starcoder2_architecture(),
      // clang-format on
  };
  return list;
}

Result<const Architecture*> find_architecture(const Config& config) {
  const bool gguf = config.source() == ConfigSource::kGguf;
  for (const std::string& name : config.architecture_names()) {
    const Architecture* found = nullptr;
    for (const Architecture* architecture : architectures()) {
      const auto& names = gguf ? architecture->gguf_names : architecture->hf_names;
      if (std::find(names.begin(), names.end(), name) == names.end()) continue;
      const bool keyed = gguf && !architecture->gguf_key.empty();
      const Json* value = keyed ? json_find(config.values(), architecture->gguf_key) : nullptr;
      if (keyed && (value == nullptr || *value == 0)) continue;
      if (found == nullptr || keyed) found = architecture;
    }
    if (found != nullptr) return found;
  }
  std::string known;
  for (const Architecture* architecture : architectures()) {
    const auto& names = gguf ? architecture->gguf_names : architecture->hf_names;
    if (!names.empty()) known += fmt::format("{}{}", known.empty() ? "" : ", ", names.front());
  }
  return fail(ErrorCode::kUnsupported, "{}: architecture {} is not supported; supported are {}",
              config.file(), config.architecture_names().front(), known);
}

}  // namespace tessera
