// Blocks with a state of fixed size: short convolutions, gated delta rule (Yang et al., 2024), selective state spaces
// (Mamba: Gu and Dao, 2023; Mamba-2: Dao and Gu, 2024) and RWKV-4's time and channel mix (Peng et al., 2023).
#pragma once

#include <cstdint>
#include <optional>

#include "model/norm.h"

namespace tessera {

// [b | c | x] = in(h); y = out(c * conv(b * x)).
struct ShortConvSpec {
  int64_t kernel = 0;
  Presence bias = Presence::kAbsent;  // of in, out and the convolution
};

// Which key head a value head uses: h / (value_heads / key_heads), or h mod key_heads.
enum class HeadMap : uint8_t { kGrouped, kTiled };

// q, k, v pass a convolution and SiLU; S <- decay * S + k (beta (v - S^T k))^T; o = S^T q; y = out(norm(o) * silu(z)).
struct DeltaNetSpec {
  int64_t key_heads = 0;
  int64_t value_heads = 0;
  int64_t key_dim = 0;
  int64_t value_dim = 0;
  int64_t kernel = 0;
  HeadMap head_map = HeadMap::kGrouped;
  NormSpec norm;  // of each head of o
};

// [x | z] = in(h); x = silu(conv(x)); [dt | B | C] = x_proj(x), each normed if so; dt = softplus(dt_proj(dt));
// s <- exp(dt A) s + dt B x; y = out((C s + D x) * silu(z)).
struct MambaSpec {
  int64_t inner = 0;
  int64_t state = 0;
  int64_t kernel = 0;
  int64_t dt_rank = 0;
  Presence conv_bias = Presence::kRequired;
  Presence proj_bias = Presence::kAbsent;  // of in and out
  std::optional<NormSpec> parameter_norm;  // of dt, B and C
};

enum class GatedNorm : uint8_t {
  kGateOnly,   // y * silu(z)
  kGateFirst,  // norm(y * silu(z))
  kNormFirst,  // norm(y) * silu(z)
};

// [z | x | B | C | dt] = in(h), each times its multiplier; [x B C] = silu(conv); dt = clamp(softplus(dt + bias));
// s <- exp(dt A) s + dt B x; y = C s + D x, per head; gated norm; out.
struct Mamba2Spec {
  int64_t heads = 0;
  int64_t head_dim = 0;
  int64_t state = 0;
  int64_t groups = 1;  // of B and C; head h uses group h / (heads / groups)
  int64_t kernel = 0;
  Presence conv_bias = Presence::kRequired;
  Presence proj_bias = Presence::kAbsent;
  double dt_min = 0;
  double dt_max = 0;  // 0: no upper bound
  GatedNorm gated_norm = GatedNorm::kGateFirst;
  NormSpec norm;  // norm.group: values normalised together
  double z_scale = 1, x_scale = 1, b_scale = 1, c_scale = 1, dt_scale = 1;

  [[nodiscard]] int64_t inner() const { return heads * head_dim; }
};

// Inputs mixed with the token before; wkv by a decaying average kept stable by a running maximum; y = out(sigmoid(r) * wkv).
struct RwkvTimeSpec {
  int64_t width = 0;
};

// k = relu(key(x_k))^2; y = sigmoid(receptance(x_r)) * value(k).
struct RwkvChannelSpec {
  int64_t width = 0;
};

}  // namespace tessera
