// The reference checkpoints that the registered architectures are held to. A GGUF file whose metadata lacks a
// fact that changes the result cannot be compared: it is listed with the reason and must load.
#pragma once

#include <string_view>

namespace tessera {

struct GoldenCase {
  std::string_view folder;  // under tests/goldens: "arch", "arch_more", "gguf/arch", "gguf/quant"
  std::string_view name;
  std::string_view load_only;  // why the numbers cannot be compared; "" when they are
  double bound = 1e-9;         // of the normalised squared error with exact activations
};

inline constexpr GoldenCase kGoldenCases[] = {
    {"arch", "deepseek_v2_dense", ""},
    {"arch", "deepseek_v2_group", ""},
    {"arch", "deepseek_v2_lite", ""},
    {"arch", "deepseek_v3", ""},
    {"arch", "falcon_h1", ""},
    {"arch", "gemma3n", ""},
    {"arch", "gemma4_dense31b", ""},
    {"arch", "gemma4_edge", ""},
    {"arch", "gemma4_moe", ""},
    {"arch", "glm4_moe", ""},
    {"arch", "gpt_oss", ""},
    {"arch", "granitemoe", ""},
    {"arch", "granitemoehybrid", ""},
    {"arch", "jamba", ""},
    {"arch", "lfm2", ""},
    {"arch", "lfm2_moe", ""},
    {"arch", "llama", ""},
    {"arch", "llama_bias", ""},
    {"arch", "llama_f16", ""},
    {"arch", "llama_f32", ""},
    {"arch", "llama_headdim", ""},
    {"arch", "llama_linear_rope", ""},
    {"arch", "llama_tied_llama3rope", ""},
    {"arch", "llama_wide", ""},
    {"arch", "llama_yarn", ""},
    {"arch", "mamba", ""},
    {"arch", "mamba2", ""},
    {"arch", "ministral3", ""},
    {"arch", "mistral_swa", ""},
    {"arch", "mixtral", ""},
    {"arch", "olmoe", ""},
    {"arch", "phimoe", ""},
    {"arch", "qwen2", ""},
    {"arch", "qwen2_moe", ""},
    {"arch", "qwen2_moe_nonorm_mixed", ""},
    {"arch", "qwen2_swa", ""},
    {"arch", "qwen2_tied", ""},
    {"arch", "qwen3", ""},
    {"arch", "qwen3_5", ""},
    {"arch", "qwen3_5_moe", ""},
    {"arch", "qwen3_5_tied", ""},
    {"arch", "qwen3_5_vl", ""},
    {"arch", "qwen3_moe", ""},
    {"arch", "qwen3_moe_nonorm", ""},
    {"arch", "qwen3_next", ""},
    {"arch", "qwen3_untied", ""},
    {"arch", "rwkv4", ""},
    {"arch", "smollm3", ""},
    {"arch_more", "falcon_h1_multipliers", ""},
    {"arch_more", "falcon_mamba", ""},
    {"arch_more", "granitemoehybrid_rope_groups", ""},
    {"arch_more", "lfm2_moe_bias", ""},
    {"arch_more", "llama_dynamic_rope", ""},
    {"arch_more", "llama_mqa", ""},
    {"arch_more", "mamba2_groups", ""},
    {"arch_more", "rwkv4_rescale", ""},
    {"gguf/arch", "llama", ""},
    {"gguf/arch", "llama_bias", ""},
    // The converter rounded these two files' matrices to bfloat16 (2^-9 relative: about 6e-5 in the logits).
    {"gguf/arch", "llama_f16", "", 1e-4},
    {"gguf/arch", "llama_f32", "", 1e-4},
    {"gguf/arch", "llama_headdim", ""},
    {"gguf/arch", "llama_linear_rope", ""},
    {"gguf/arch", "llama_tied_llama3rope", ""},
    {"gguf/arch", "llama_wide", ""},
    {"gguf/arch", "llama_yarn", ""},
    {"gguf/arch", "ministral3", ""},
    {"gguf/arch", "mistral_swa", "the window is not written"},
    {"gguf/arch", "olmoe", ""},
    {"gguf/arch", "qwen2", ""},
    {"gguf/arch", "qwen2_swa", "the window is not written"},
    {"gguf/arch", "qwen2_tied", ""},
    {"gguf/arch", "qwen2_moe", "whether weights are renormalised is not written"},
    {"gguf/arch", "qwen3", ""},
    {"gguf/arch", "qwen3_moe", ""},
    {"gguf/arch", "qwen3_moe_nonorm", "whether weights are renormalised is not written"},
    {"gguf/arch", "qwen3_untied", ""},
    {"gguf/arch", "smollm3", ""},
    {"gguf/quant", "Q4_0", ""},
    {"gguf/quant", "Q8_0", ""},
};

}  // namespace tessera
