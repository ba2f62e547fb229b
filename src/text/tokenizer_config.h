// What tokenizer_config.json and special_tokens_map.json add to a tokenizer: which tokens begin and end a text.
#pragma once

#include <string>

#include "base/result.h"
#include "text/tokenizer.h"
#include "text/tokenizer_parts.h"

namespace tessera {

[[nodiscard]] Status apply_tokenizer_config(const TokenizerFiles& files, const std::string& name,
                                            TokenizerParts& parts);

}  // namespace tessera
