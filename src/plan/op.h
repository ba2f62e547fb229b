// The operations a plan is made of: plain structs over value ids. They are coarse (Attend stores, scores and
// mixes), so that a backend fuses freely and nobody has to recognise patterns. A value is a matrix with one
// row per token (T) or per wanted output (R); a Slice is a range of its columns. All values are float32 as
// far as an op's definition goes; backend/reference is that definition.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "model/activation.h"
#include "model/norm.h"

namespace tessera {

using ValueId = int32_t;   // index into Plan::values
using WeightId = int32_t;  // index into BoundWeights; -1: not there

struct Slice {
  ValueId value = -1;  // -1: not there
  int64_t offset = 0;  // first column
  int64_t width = 0;   // columns
  [[nodiscard]] bool present() const { return value >= 0; }
};

// output[t] = scale * table[id(t)]; the row of the step's embeddings instead, unscaled, when the step brings
// those.
struct EmbedOp {
  WeightId table = -1;
  float scale = 1.0f;
  Slice output;
};

// x[t] += table[positions[t] + offset] (the first axis of the positions).
struct PositionEmbedOp {
  WeightId table = -1;
  int64_t offset = 0;
  Slice x;
};

// Groups of `group` columns are normalised each on their own (group = input.width: the whole row).
//   rms:   x * (mean(x^2) + eps)^-0.5 * gain + bias       layer: (x - mean) * (var + eps)^-0.5 * gain + bias
// gain and bias are indexed by the column within the group, or by the column of the row when gain_per_row.
// May work in place.
struct NormOp {
  Slice input;
  Slice output;
  NormKind kind = NormKind::kRms;
  double eps = 0;
  int64_t group = 0;
  WeightId gain = -1;
  WeightId bias = -1;
  bool gain_per_row = false;
};

// output = [x W_0^T + b_0 | x W_1^T + b_1 | ...]: matrices that share their input are one op.
struct LinearPart {
  WeightId weight = -1;  // [rows, input.width]; its bound parts' rows joined
  WeightId bias = -1;    // [rows]
  int64_t rows = 0;
};
struct LinearOp {
  Slice input;
  Slice output;
  std::vector<LinearPart> parts;
};

// Rotates the first `dim` values (Plan::ropes[rope].dim) of each of `heads` heads in place, by the token's
// position.
struct RopeOp {
  Slice x;  // heads * head_dim columns
  int64_t heads = 0;
  int64_t head_dim = 0;
  int rope = 0;
};

// Stores k and v of the step's tokens in the state, then for every token and head: softmax over the visible
// positions j of softcap(scale * q . k_j), times v_j. Visible: j <= own position when causal, and j > own
// position - window when window > 0.
struct AttendOp {
  Slice q;  // [heads * head_dim]
  Slice
      k;  // [kv_heads * head_dim]; absent (v too): the state already holds them, stored by the layer they are shared with
  Slice v;       // [kv_heads * value_dim]
  Slice output;  // [heads * value_dim]
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t value_dim = 0;
  double scale = 1;
  double softcap = 0;
  int64_t window = 0;
  bool causal = true;
  WeightId sinks = -1;              // [heads]: a score that joins each softmax and mixes nothing
  std::vector<float> alibi_slopes;  // [heads]: slope * (j - i) is added to the scaled score; empty: none
  double query_scale_beta = 0;      // q is multiplied by 1 + beta * ln(1 + floor(position / context))
  int64_t query_scale_context = 0;
  int group = 0;  // index into Plan::states
  int layer = 0;  // index into that group's layers
};

// output = act(gate) * up, or act(gate) when there is no up.
struct ActivateOp {
  Slice gate;
  Slice up;
  Slice output;
  Activation activation = Activation::kSilu;
};

// output = clamp(input, -limit, limit); may work in place.
struct ClampOp {
  Slice input;
  Slice output;
  double limit = 0;
};

// With m and s the mean and the (population) standard deviation of the row: output = max(0, input - (m + deviations * s)). May work
// in place.
struct SparsifyOp {
  Slice input;
  Slice output;
  double deviations = 0;
};

// Every group of x.width / gate.width columns of x is multiplied by sigmoid of its own gate column. May work in place.
struct SigmoidGateOp {
  Slice x;
  Slice gate;
  Slice output;
};

// output = (residual + alpha * sum of factor_i * term_i) * beta. A factor in a slot multiplies the constant.
struct CombineTerm {
  Slice value;
  double factor = 1;
  WeightId factor_slot = -1;  // [1]
};
struct CombineOp {
  Slice residual;  // may be absent: 0
  std::vector<CombineTerm> terms;
  double alpha = 1;
  double beta = 1;
  WeightId beta_slot = -1;  // [1]
  Slice output;
};

// Rows of a T value that the step wants an output for.
struct GatherRowsOp {
  Slice input;   // T rows
  Slice output;  // R rows
};

// x = softcap * tanh(scale * x / softcap) in place; softcap 0: x = scale * x.
struct ScaleLogitsOp {
  Slice x;
  double scale = 1;
  double softcap = 0;
};

using Op = std::variant<EmbedOp, PositionEmbedOp, ClampOp, SparsifyOp, SigmoidGateOp, NormOp, LinearOp,
                        RopeOp, AttendOp, ActivateOp, CombineOp, GatherRowsOp, ScaleLogitsOp>;

[[nodiscard]] const char* op_name(const Op& op);  // "Linear"

// The slices an op reads and writes, for liveness and for checks. In-place ops list theirs in both.
struct OpSlices {
  std::vector<Slice> reads;
  std::vector<Slice> writes;
};
[[nodiscard]] OpSlices op_slices(const Op& op);

}  // namespace tessera
