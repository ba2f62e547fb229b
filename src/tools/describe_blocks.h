// A block, a norm and the streams in a few words, for `inspect`.
#pragma once

#include <string>

#include "model/spec.h"

namespace tessera {

[[nodiscard]] std::string norm_text(const NormSpec& norm);
// "attention", "experts": without its numbers.
[[nodiscard]] std::string block_kind(const Block& block);
// The kind and its main dimensions, and what is unusual about it.
[[nodiscard]] std::string block_text(const Block& block);
[[nodiscard]] std::string streams_text(const StreamSpec& streams);

}  // namespace tessera
