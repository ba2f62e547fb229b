// Scaled dot-product attention (Vaswani et al., 2017) with grouped key/value heads and everything that
// decoders vary about it.
#pragma once

#include <cstdint>
#include <optional>

#include "model/norm.h"

namespace tessera {

enum class NormOrder : uint8_t { kBeforeRope, kAfterRope };
enum class ValueSource : uint8_t {
  kProjection,  // v has its own matrix
  kKey,         // v is k's projection before norm and rope
};
// Linear biases on scores (Press et al., 2022): slope_h * (j - i) is added to the scaled product, or before the scale.
enum class Alibi : uint8_t { kNone, kAfterScale, kBeforeScale };
enum class ClipPlace : uint8_t { kProjected, kNormed };  // q, k and v are clamped before or after their norms
enum class OutputGate : uint8_t {
  kNone,
  kSigmoid
};  // mixed values times sigmoid of a projection of the input

struct AttentionSpec {
  int64_t heads = 0;
  int64_t kv_heads = 0;            // divides heads
  int64_t head_dim = 0;            // width of a query and key head
  int64_t value_dim = 0;           // width of a value head
  std::optional<int> rope;         // index into ModelSpec::ropes; none: no rotation on this layer
  std::optional<NormSpec> q_norm;  // before rope
  std::optional<NormSpec> k_norm;
  std::optional<NormSpec> v_norm;
  NormOrder norm_order = NormOrder::kBeforeRope;
  ValueSource value_source = ValueSource::kProjection;
  Presence qkv_bias = Presence::kAbsent;
  Presence o_bias = Presence::kAbsent;
  double scale = 0;  // scores are multiplied by it; usually head_dim ^ -0.5
  double clip = 0;   // q, k and v are clamped to [-clip, clip]; 0: not
  ClipPlace clip_place = ClipPlace::kProjected;
  double softcap = 0;  // cap * tanh(score / cap); 0: none
  int64_t window = 0;  // a position sees the last `window` positions, itself included; 0: all
  bool causal = true;
  bool sinks = false;  // one learned score per head joins the softmax and mixes nothing
  Alibi alibi = Alibi::kNone;
  OutputGate output_gate = OutputGate::kNone;
  // The layer whose keys and values this one reads instead of making its own; -1: none.
  int kv_source_layer = -1;
  // Queries are multiplied by 1 + beta * ln(1 + floor(position / context)); beta 0: not.
  double query_scale_beta = 0;
  int64_t query_scale_context = 0;
};

}  // namespace tessera
