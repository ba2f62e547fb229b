// Declarations of the registry's entries: one function per file of this folder.
#pragma once

#include "arch/architecture.h"

namespace tessera {

const Architecture& deepseek_v2_architecture();
const Architecture& deepseek_v3_architecture();
const Architecture& falcon_h1_architecture();
const Architecture& falcon_mamba_architecture();
const Architecture& gemma3n_architecture();
const Architecture& gemma4_architecture();
const Architecture& glm4_moe_architecture();
const Architecture& gpt_oss_architecture();
const Architecture& granite_hybrid_architecture();
const Architecture& granite_moe_architecture();
const Architecture& jamba_architecture();
const Architecture& lfm2_architecture();
const Architecture& llama_architecture();
const Architecture& mamba_architecture();
const Architecture& mamba2_architecture();
const Architecture& ministral3_architecture();
const Architecture& mistral_architecture();
const Architecture& mixtral_architecture();
const Architecture& olmoe_architecture();
const Architecture& phimoe_architecture();
const Architecture& qwen2_architecture();
const Architecture& qwen2_moe_architecture();
const Architecture& qwen3_architecture();
const Architecture& qwen3_hybrid_architecture();
const Architecture& qwen3_moe_architecture();
const Architecture& rwkv4_architecture();
const Architecture& smollm3_architecture();

}  // namespace tessera
