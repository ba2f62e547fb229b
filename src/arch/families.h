// Declarations of the registry's entries: one function per file of this folder.
#pragma once

#include "arch/architecture.h"

namespace tessera {

const Architecture& llama_architecture();
const Architecture& ministral3_architecture();
const Architecture& mistral_architecture();
const Architecture& qwen2_architecture();
const Architecture& qwen3_architecture();
const Architecture& smollm3_architecture();

}  // namespace tessera
