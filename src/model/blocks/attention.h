// Scaled dot-product attention (Vaswani et al., 2017) with grouped key/value heads and everything that
// decoders vary about it.
#pragma once

#include <cstdint>
#include <optional>

#include "model/norm.h"

namespace tessera {

struct AttentionSpec {
  int64_t heads = 0;
  int64_t kv_heads = 0;            // divides heads
  int64_t head_dim = 0;            // width of a query and key head
  int64_t value_dim = 0;           // width of a value head
  std::optional<int> rope;         // index into ModelSpec::ropes; none: no rotation on this layer
  std::optional<NormSpec> q_norm;  // before rope
  std::optional<NormSpec> k_norm;
  Presence qkv_bias = Presence::kAbsent;
  Presence o_bias = Presence::kAbsent;
  double scale = 0;    // scores are multiplied by it; usually head_dim ^ -0.5
  double softcap = 0;  // cap * tanh(score / cap); 0: none
  int64_t window = 0;  // a position sees the last `window` positions, itself included; 0: all
  bool causal = true;
  // Queries are multiplied by 1 + beta * ln(1 + floor(position / context)); beta 0: not.
  double query_scale_beta = 0;
  int64_t query_scale_context = 0;
};

}  // namespace tessera
