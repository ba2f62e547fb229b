// ModelSpec: an architecture as data. A layer is a list of sublayers, each following one formula, every norm
// optional:
//
//     h = pre(x)
//     y = sum over branches b of w_b * post_b(block_b(pre_b(h)))
//     x <- out(r + alpha * post(y)) * beta
//
// with r = x (or h). Two sublayers give sequential residuals, two branches a parallel one, `post` sandwich
// norms, `out` post-norm. A spec is made by one file of arch/, validated once (validate_spec) and immutable
// from then on; it yields the weight slots (slots.h), the state every block keeps (state.h) and, with bound
// weights, the plan (plan/).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "model/blocks/block.h"
#include "model/norm.h"
#include "model/rope.h"

namespace tessera {

// A factor of the formula: a constant, or a weight slot when the checkpoint holds it.
struct Scalar {
  double value = 1.0;
  bool slot = false;
};

struct Branch {
  std::string name;  // "attn", "ffn": the middle of slot names, layers.3.<name>.q.weight
  Block block;
  std::optional<NormSpec> pre = {};
  std::optional<NormSpec> post = {};
  Scalar weight = {};
  double input_scale = 1.0;
};

enum class ResidualFrom : uint8_t { kInput, kNormedInput };

struct Sublayer {
  std::string name;  // "attn": slots layers.3.<name>.norm, .post_norm, .out_norm
  std::vector<Branch> branches;
  std::optional<NormSpec> pre;
  std::optional<NormSpec> post;
  std::optional<NormSpec> out;
  double alpha = 1.0;
  Scalar beta;  // as a slot: layers.3.<name>.scale
  ResidualFrom residual = ResidualFrom::kInput;
};

// One branch with the usual pre-norm: x + block(pre(x)).
[[nodiscard]] Sublayer sequential(std::string name, std::optional<NormSpec> pre, Block block);

struct LayerSpec {
  std::vector<Sublayer> sublayers;
};

struct EmbeddingSpec {
  int64_t rows = 0;              // of the table; 0: the vocabulary
  int64_t width = 0;             // of the table, projected to `hidden` by a matrix when it differs; 0: hidden
  double scale = 1.0;            // the row is multiplied by it, in float32
  std::optional<NormSpec> norm;  // after the sum of all embeddings
  // A table [rows, layers * per_layer_width] besides, for PerLayerInput blocks: (norm(projection(x) * hidden^-0.5) +
  // row * per_layer_scale) * 2^-0.5. 0: none.
  int64_t per_layer_width = 0;
  int64_t per_layer_rows = 0;
  NormSpec per_layer_norm;
  int64_t learned_positions = 0;  // rows of a learned position table; 0: none
  int64_t position_offset = 0;    // first row used
};

// The hidden state as several parallel streams (Alternating Updates, arXiv 2301.13310). Every layer predicts all streams from all,
// runs its sublayers on the active one, and corrects the predictions by what those changed; router(norm(x) / hidden) gives the
// coefficients through tanh. At the end the streams are projected back, matched in magnitude and averaged. A per-layer input, made
// from the corrected active stream, joins the others.
struct StreamSpec {
  int64_t count = 0;
  int64_t active = 0;
  NormSpec router_norm;
  bool output_scale = true;  // a slot scales the active stream where it feeds the per-layer input
  PerLayerInputSpec input;
  NormSpec input_post_norm;
};

enum class HeadTie : uint8_t { kTied, kUntied };  // untied falls back to tied when the checkpoint has no head

struct HeadSpec {
  HeadTie tie = HeadTie::kUntied;
  Presence bias = Presence::kAbsent;
  int64_t width = 0;     // the hidden state is projected to this width first; 0: not
  double scale = 1.0;    // logits are multiplied by it
  double softcap = 0.0;  // then cap * tanh(logit / cap); 0: none
};

struct ModelSpec {
  std::string architecture;  // the family's name, for messages and inspect
  int64_t vocabulary = 0;
  int64_t hidden = 0;
  int64_t context = 0;  // positions the model was trained for
  EmbeddingSpec embedding;
  std::vector<RopeSpec> ropes;
  std::vector<LayerSpec> layers;
  std::optional<StreamSpec> streams;
  std::optional<NormSpec> final_norm;
  HeadSpec head;
  std::vector<int32_t> stop_ids;  // eos ids the config names
  std::optional<int32_t> bos_id;

  // Adds the table, or finds an equal one; its index.
  int add_rope(RopeSpec rope);
};

// Dimensions fit together (heads divisible, even rotary widths, positive sizes): an error names what does
// not.
[[nodiscard]] Status validate_spec(const ModelSpec& spec);

}  // namespace tessera
