#include "model/spec.h"

#include <algorithm>

namespace tessera {
namespace {

Failure bad(const std::string& where, const std::string& what) {
  return fail(ErrorCode::kBadData, "{}: {}", where, what);
}

}  // namespace

Sublayer sequential(std::string name, std::optional<NormSpec> pre, Block block) {
  Sublayer sublayer;
  sublayer.name = name;
  sublayer.pre = pre;
  sublayer.branches.push_back(Branch{std::move(name), std::move(block)});
  return sublayer;
}

int ModelSpec::add_rope(RopeSpec rope) {
  const auto it = std::find(ropes.begin(), ropes.end(), rope);
  if (it != ropes.end()) return static_cast<int>(it - ropes.begin());
  ropes.push_back(std::move(rope));
  return static_cast<int>(ropes.size()) - 1;
}

Status validate_spec(const ModelSpec& spec) {
  if (spec.vocabulary < 1 || spec.hidden < 1)
    return bad(spec.architecture, "vocab_size and hidden_size must be positive");
  for (size_t layer = 0; layer < spec.layers.size(); ++layer) {
    for (const Sublayer& sublayer : spec.layers[layer].sublayers) {
      if (sublayer.branches.empty())
        return fail(ErrorCode::kBadData, "layer {}: {} has no branch", layer, sublayer.name);
      for (const Branch& branch : sublayer.branches) {
        const std::string where = fmt::format("layer {}: {}", layer, branch.name);
        TESSERA_TRY_STATUS(validate_block(spec, branch.block, where));
      }
    }
  }
  return {};
}

}  // namespace tessera
