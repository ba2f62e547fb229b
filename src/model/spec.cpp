#include "model/spec.h"

#include <algorithm>

namespace tessera {
namespace {

Failure bad(const std::string& where, const std::string& what) {
  return fail(ErrorCode::kBadData, "{}: {}", where, what);
}

Status validate(const ModelSpec& spec, const AttentionSpec& attention, const std::string& where) {
  if (attention.heads < 1 || attention.kv_heads < 1 || attention.head_dim < 1 || attention.value_dim < 1)
    return bad(where, "head counts and widths must be positive");
  if (attention.heads % attention.kv_heads != 0)
    return fail(ErrorCode::kBadData, "{}: num_attention_heads {} is not a multiple of num_key_value_heads {}",
                where, attention.heads, attention.kv_heads);
  if (attention.rope) {
    const RopeSpec& rope = spec.ropes.at(static_cast<size_t>(*attention.rope));
    if (rope.dim > attention.head_dim)
      return fail(ErrorCode::kBadData, "{}: {} rotated values do not fit the head width {}", where, rope.dim,
                  attention.head_dim);
  }
  if (attention.scale <= 0) return bad(where, "the softmax scale must be positive");
  return {};
}

Status validate(const ModelSpec&, const FfnSpec& ffn, const std::string& where) {
  if (ffn.width < 1) return bad(where, "intermediate_size must be positive");
  return {};
}

}  // namespace

Sublayer sequential(std::string name, std::optional<NormSpec> pre, Block block) {
  Sublayer sublayer;
  sublayer.name = name;
  sublayer.pre = pre;
  sublayer.branches.push_back(Branch{std::move(name), std::move(block), {}, {}, {}, 1.0});
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
        const Status status =
            std::visit([&](const auto& block) { return validate(spec, block, where); }, branch.block);
        if (!status) return status;
      }
    }
  }
  return {};
}

}  // namespace tessera
