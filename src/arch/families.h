// Declarations of the registry's entries: one function per file of this folder.
#pragma once

#include "arch/architecture.h"

namespace tessera {

const Architecture& bloom_architecture();
const Architecture& cohere_architecture();
const Architecture& cohere2_architecture();
const Architecture& deepseek_v2_architecture();
const Architecture& deepseek_v3_architecture();
const Architecture& ernie4_5_architecture();
const Architecture& exaone4_architecture();
const Architecture& falcon_architecture();
const Architecture& falcon_h1_architecture();
const Architecture& falcon_mamba_architecture();
const Architecture& gemma_architecture();
const Architecture& gemma2_architecture();
const Architecture& gemma3_architecture();
const Architecture& gemma3n_architecture();
const Architecture& gemma4_architecture();
const Architecture& glm_architecture();
const Architecture& glm4_architecture();
const Architecture& glm4_moe_architecture();
const Architecture& glm_ocr_architecture();
const Architecture& gpt2_architecture();
const Architecture& gpt_neox_architecture();
const Architecture& gpt_oss_architecture();
const Architecture& granite_architecture();
const Architecture& granite_hybrid_architecture();
const Architecture& granite_moe_architecture();
const Architecture& hunyuan_dense_architecture();
const Architecture& jamba_architecture();
const Architecture& lfm2_architecture();
const Architecture& llama_architecture();
const Architecture& mamba_architecture();
const Architecture& mamba2_architecture();
const Architecture& ministral3_architecture();
const Architecture& mistral_architecture();
const Architecture& mixtral_architecture();
const Architecture& moshi_architecture();
const Architecture& nemotron_architecture();
const Architecture& olmo_architecture();
const Architecture& olmo2_architecture();
const Architecture& olmo3_architecture();
const Architecture& olmoe_architecture();
const Architecture& opt_architecture();
const Architecture& phi_architecture();
const Architecture& phi3_architecture();
const Architecture& phimoe_architecture();
const Architecture& qwen2_architecture();
const Architecture& qwen2_moe_architecture();
const Architecture& qwen3_architecture();
const Architecture& qwen3_5_architecture();
const Architecture& qwen3_next_architecture();
const Architecture& qwen3_moe_architecture();
const Architecture& rwkv4_architecture();
const Architecture& seed_oss_architecture();
const Architecture& smollm3_architecture();
const Architecture& stablelm_architecture();
const Architecture& starcoder2_architecture();

}  // namespace tessera
