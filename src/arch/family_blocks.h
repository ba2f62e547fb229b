// Which kinds of blocks the layers of a family hold, over all its published sizes: "attention", "gated feed-forward", "experts".
#pragma once

#include <string_view>
#include <vector>

namespace tessera {

struct Architecture;

[[nodiscard]] std::vector<std::string_view> family_blocks(const Architecture& architecture);

}  // namespace tessera
