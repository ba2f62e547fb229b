// Cutting one or two encodings to a length, by the rules of tokenizer.json.
#pragma once

#include <vector>

#include "base/result.h"
#include "text/encoding.h"
#include "text/tokenizer_parts.h"

namespace tessera {

// `added` special tokens are still to come and count. kInvalidArgument where the rule cannot be kept.
[[nodiscard]] Status truncate(std::vector<Encoding>& encodings, const TruncationRule& rule, size_t added);

}  // namespace tessera
