#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "arch/families.h"

namespace tessera {

const std::vector<const Architecture*>& architectures() {
  static const std::vector<const Architecture*> list = {
      &deepseek_v2_architecture(),  &deepseek_v3_architecture(), &falcon_h1_architecture(),
      &falcon_mamba_architecture(), &gemma3n_architecture(),     &gemma4_architecture(),
      &glm4_moe_architecture(),     &gpt_oss_architecture(),     &granite_hybrid_architecture(),
      &granite_moe_architecture(),  &jamba_architecture(),       &lfm2_architecture(),
      &llama_architecture(),        &mamba_architecture(),       &mamba2_architecture(),
      &ministral3_architecture(),   &mistral_architecture(),     &mixtral_architecture(),
      &olmoe_architecture(),        &phimoe_architecture(),      &qwen2_architecture(),
      &qwen2_moe_architecture(),    &qwen3_architecture(),       &qwen3_hybrid_architecture(),
      &qwen3_moe_architecture(),    &rwkv4_architecture(),       &smollm3_architecture(),
  };
  return list;
}

Result<const Architecture*> find_architecture(const Config& config) {
  const bool gguf = config.source() == ConfigSource::kGguf;
  for (const std::string& name : config.architecture_names()) {
    for (const Architecture* architecture : architectures()) {
      const auto& names = gguf ? architecture->gguf_names : architecture->hf_names;
      if (std::find(names.begin(), names.end(), name) != names.end()) return architecture;
    }
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
