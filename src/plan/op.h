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
#include "model/blocks/moe.h"
#include "model/blocks/recurrent.h"
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

// output[t] = scale * table[id(t)]; for kIdsOrEmbeddings the row of the step's embeddings instead, unscaled, when the step
// brings those.
enum class EmbedSource : uint8_t { kIdsOrEmbeddings, kIds };
struct EmbedOp {
  WeightId table = -1;
  float scale = 1.0f;
  Slice output;
  EmbedSource source = EmbedSource::kIdsOrEmbeddings;
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

// Rotates, from head_offset on, `dim` values (Plan::ropes[rope].dim) of each of `heads` heads in place, by the token's
// position.
struct RopeOp {
  Slice x;  // heads * head_dim columns
  int64_t heads = 0;
  int64_t head_dim = 0;  // from one head to the next
  int rope = 0;
  int64_t head_offset = 0;  // first rotated value of a head
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

// Chooses `top_k` of the experts (the columns of `logits`) for every token. The output row holds their numbers, then their weights;
// numbers are small integers, held exactly in float32. Ties go to the lower number. Scores, choice and weights as MoeSpec says.
struct RouteOp {
  Slice logits;  // [experts]
  Slice output;  // [2 * top_k]
  int64_t top_k = 0;
  RouterScore score = RouterScore::kSoftmax;
  bool renormalise = false;
  double renormalise_eps = 0;
  double scale = 1;
  int64_t groups = 1;
  int64_t top_groups = 1;
  GroupScore group_score = GroupScore::kMax;
  double sparsemixer_threshold = 0;
  WeightId selection_bias = -1;  // [experts]
  WeightId expert_scale = -1;    // [experts]
};

// output[t] = sum over the token's experts of weight * (down_e (act(gate_e x) * (up_e x + up_offset)) + bias).
struct ExpertsOp {
  Slice input;
  Slice routes;  // of a RouteOp
  Slice output;
  WeightId gate = -1;  // [experts, width, input]; absent: plain
  WeightId up = -1;
  WeightId down = -1;
  WeightId gate_bias = -1;  // [experts, width]
  WeightId up_bias = -1;
  WeightId down_bias = -1;
  int64_t experts = 0;
  int64_t top_k = 0;
  int64_t width = 0;
  Activation activation = Activation::kSilu;
  double limit = 0;  // gate = min(gate, limit), up = clamp(up, -limit, limit), biases included; 0: none
  double up_offset = 0;
};

// Latent attention: stores [latent | shared rotated key] of the step's tokens, then for every token and head h, with
// [K_h; V_h] the rows of kv_b: score_j = scale * (q_nope . (K_h c_j) + q_rope . r_j), causal; output_h = V_h (sum of softmax * c_j).
// A backend may expand keys and values or absorb K_h into the query: the result is the same.
struct MlaAttendOp {
  Slice q;             // heads of nope_dim + rope_dim, the latter rotated
  Slice latent;        // [kv_lora], normalised
  Slice k_rope;        // [rope_dim], rotated
  WeightId kv_b = -1;  // [heads * (nope_dim + value_dim), kv_lora]
  Slice output;        // [heads * value_dim]
  int64_t heads = 0;
  int64_t nope_dim = 0;
  int64_t rope_dim = 0;
  int64_t value_dim = 0;
  double scale = 1;
  int group = 0;
  int layer = 0;
};

// Depthwise causal convolution over the sequence: output[t][c] = act(bias[c] + sum over i of weight[c][i] * x[t - kernel + 1 + i][c]).
// The state keeps the last kernel - 1 inputs, [channels][kernel - 1], oldest first. Not in place.
struct CausalConvOp {
  Slice input;
  Slice output;
  WeightId weight = -1;  // [channels, kernel]
  WeightId bias = -1;    // [channels]
  int64_t kernel = 0;
  Activation activation = Activation::kIdentity;
  int group = 0;
  int layer = 0;
};

// The gated delta rule (arXiv 2412.06464), per value head with state S [key_dim][value_dim]: q and k are divided by their length
// (rsqrt(sum of squares + 1e-6)), q also by sqrt(key_dim); g = exp(decay * softplus(a + dt_bias)), beta = sigmoid(b);
// S <- g S;  S <- S + k (beta (v - S^T k))^T;  output = S^T q.
struct DeltaRuleOp {
  Slice q;  // [key_heads * key_dim]
  Slice k;
  Slice v;  // [value_heads * value_dim]
  Slice a;  // [value_heads]
  Slice b;
  Slice output;           // [value_heads * value_dim]
  WeightId decay = -1;    // [value_heads], negative
  WeightId dt_bias = -1;  // [value_heads]
  int64_t key_heads = 0;
  int64_t value_heads = 0;
  int64_t key_dim = 0;
  int64_t value_dim = 0;
  HeadMap head_map = HeadMap::kGrouped;
  int group = 0;
  int layer = 0;
};

// Selective scan (arXiv 2312.00752), state s [channels][states]: dt = softplus(dt); s <- exp(dt * decay) s + dt * b * x;
// output = s . c + d * x.
struct SelectiveScanOp {
  Slice x;   // [channels]
  Slice dt;  // [channels], before softplus
  Slice b;   // [states]
  Slice c;   // [states]
  Slice output;
  WeightId decay = -1;  // [channels, states], negative
  WeightId d = -1;      // [channels]
  int group = 0;
  int layer = 0;
};

// The same with one decay per head (arXiv 2405.21060), state [heads][head_dim][states]; head h uses b and c of group
// h / (heads / groups); dt = clamp(softplus(dt + dt_bias), dt_min, dt_max), dt_max 0: no upper bound.
struct HeadScanOp {
  Slice x;   // [heads * head_dim]
  Slice dt;  // [heads]
  Slice b;   // [groups * states]
  Slice c;
  Slice output;
  WeightId decay = -1;    // [heads], negative
  WeightId dt_bias = -1;  // [heads]
  WeightId d = -1;        // [heads]
  int64_t heads = 0;
  int64_t head_dim = 0;
  int64_t states = 0;
  int64_t groups = 1;
  double dt_min = 0;
  double dt_max = 0;
  int group = 0;
  int layer = 0;
};

// output_i[t] = mix_i * x[t] + (1 - mix_i) * x[t - 1]; the state keeps the last x (zero at the start).
struct TokenShiftOp {
  Slice x;
  std::vector<WeightId> mixes;  // each [width]
  std::vector<Slice> outputs;   // one per mix
  int group = 0;
  int layer = 0;
};

// The WKV recurrence (arXiv 2305.13048), per channel, with state num, den, max ([3][channels]; den = 0: nothing yet):
// output = (num + e^(first + k) v) / (den + e^(first + k)); then num <- e^decay num + e^k v, den likewise, all kept relative to max.
struct WkvOp {
  Slice k;
  Slice v;
  Slice output;
  WeightId decay = -1;  // [channels], negative
  WeightId first = -1;  // [channels]
  int group = 0;
  int layer = 0;
};

// output = input * scale, column by column; may work in place.
struct ScaleColumnsOp {
  Slice input;
  WeightId scale = -1;  // [width]
  Slice output;
};

// Mixes parallel streams of the hidden state by per-token coefficients: output_i = input_i + sum over j of coefficients[i, j] input_j
// (kPredict, coefficients [streams * streams], entry i * streams + j), or
// output_i = input_i + (1 + coefficients[i]) * (actual - input_active) (kCorrect). Streams lie side by side in the columns.
struct MixStreamsOp {
  enum class Kind : uint8_t { kPredict, kCorrect } kind = Kind::kPredict;
  Slice input;  // [streams * width]
  Slice coefficients;
  Slice actual;  // [width], kCorrect
  Slice output;  // [streams * width], not in place
  int64_t streams = 0;
  int64_t active = 0;
};

// Multiplies every stream but the first so that its magnitude equals the first one's:
// x_i *= sqrt(mean(x_0^2)) / sqrt(max(mean(x_i^2), eps)).
struct MatchMagnitudeOp {
  Slice x;  // [streams * width]
  int64_t streams = 0;
  double eps = 1e-5;
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

using Op = std::variant<EmbedOp, PositionEmbedOp, ClampOp, SparsifyOp, SigmoidGateOp, RouteOp, ExpertsOp,
                        MlaAttendOp, CausalConvOp, DeltaRuleOp, SelectiveScanOp, HeadScanOp, TokenShiftOp,
                        WkvOp, ScaleColumnsOp, MixStreamsOp, MatchMagnitudeOp, NormOp, LinearOp, RopeOp,
                        AttendOp, ActivateOp, CombineOp, GatherRowsOp, ScaleLogitsOp>;

[[nodiscard]] const char* op_name(const Op& op);  // "Linear"

// The slices an op reads and writes, for liveness and for checks. In-place ops list theirs in both.
struct OpSlices {
  std::vector<Slice> reads;
  std::vector<Slice> writes;
};
[[nodiscard]] OpSlices op_slices(const Op& op);

}  // namespace tessera
