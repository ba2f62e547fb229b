// Multi-head latent attention (arXiv 2405.04434): keys and values of all heads are projections of one normalised
// latent per position, plus one rotated key that all heads share. Only latent and shared key are kept in the state.
#pragma once

#include <cstdint>

#include "model/norm.h"

namespace tessera {

struct MlaSpec {
  int64_t heads = 0;
  int64_t q_lora = 0;    // rank of the query's own latent; 0: a direct projection
  int64_t kv_lora = 0;   // width of the latent
  int64_t nope_dim = 0;  // per head, not rotated
  int64_t rope_dim = 0;  // per head and of the shared key, rotated
  int64_t value_dim = 0;
  int rope = 0;  // index into ModelSpec::ropes
  double scale = 0;
  NormSpec latent_norm;               // of both latents
  Presence bias = Presence::kAbsent;  // of q_a, kv_a and o
};

}  // namespace tessera
