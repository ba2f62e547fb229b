// Arguments of the kernels that walk along one sequence. Row t of a matrix is the sequence's token t; `read` is the state before
// the step and `write` the state after it: the same place, or two places that do not overlap.
#pragma once

#include <cstdint>

#include "backend/cpu/kernel_table.h"

namespace tessera::cpu {

struct ConstRows {
  const float* data = nullptr;
  int64_t stride = 0;
};
struct Rows {
  float* data = nullptr;
  int64_t stride = 0;
};

// State [channels][kernel - 1], oldest first. The activation is not applied.
struct ConvArgs {
  ConstRows input;
  Rows output;
  int64_t tokens = 0;
  int64_t kernel = 0;
  int64_t channels = 0;            // from one row of the weights to the next
  const float* weights = nullptr;  // [kernel][channels]
  const float* bias = nullptr;     // [channels]; null: none
  const float* read = nullptr;
  float* write = nullptr;
};

// output = mix * x[t] + (1 - mix) * x[t - 1]; the state [width] is the last x of the step before. Several outputs are several
// calls, the last of which writes the state.
struct ShiftArgs {
  ConstRows input;
  Rows output;
  int64_t tokens = 0;
  const float* mix = nullptr;
  const float* read = nullptr;
  float* write = nullptr;  // null: not yet
};

// State [3][channels]: numerator, denominator, maximum.
struct WkvArgs {
  ConstRows k;
  ConstRows v;
  Rows output;
  int64_t tokens = 0;
  int64_t channels = 0;
  const float* decay = nullptr;
  const float* first = nullptr;
  const float* read = nullptr;
  float* write = nullptr;
};

// State [channels][states].
struct SelectiveScanArgs {
  ConstRows x;
  ConstRows dt;
  ConstRows b;
  ConstRows c;
  Rows output;
  int64_t tokens = 0;
  int64_t states = 0;
  const float* decay = nullptr;  // [channels, states]
  const float* d = nullptr;      // [channels]
  const float* read = nullptr;
  float* write = nullptr;
};

// State [heads][head_dim][states].
struct HeadScanArgs {
  ConstRows x;
  ConstRows dt;
  ConstRows b;
  ConstRows c;
  Rows output;
  int64_t tokens = 0;
  int64_t heads_per_group = 0;
  int64_t head_dim = 0;
  int64_t states = 0;
  const float* decay = nullptr;    // [heads]
  const float* dt_bias = nullptr;  // [heads]
  const float* d = nullptr;        // [heads]
  float dt_min = 0;
  float dt_max = 0;  // 0: none
  const float* read = nullptr;
  float* write = nullptr;
};

// What all columns of a value head share, for every token of the step: q and k normalised, decay and beta.
struct DeltaInputArgs {
  ConstRows q;
  ConstRows k;
  ConstRows a;
  ConstRows b;
  int64_t key_heads = 0;
  int64_t value_heads = 0;
  int64_t key_dim = 0;
  const float* decay = nullptr;    // [value_heads]
  const float* dt_bias = nullptr;  // [value_heads]
  float* keys = nullptr;           // [tokens][key_heads][2][key_dim]: k, then q
  float* gates = nullptr;          // [tokens][value_heads][2]: decay, then beta
};
// One value head; state [key_dim][value_dim].
struct DeltaArgs {
  const float* keys = nullptr;  // of the sequence's first token and this head's key head
  int64_t key_stride = 0;       // from token to token
  const float* gates = nullptr;
  int64_t gate_stride = 0;
  ConstRows v;
  Rows output;
  int64_t tokens = 0;
  int64_t key_dim = 0;
  int64_t value_dim = 0;
  const float* read = nullptr;
  float* write = nullptr;
};
// Columns of a head's state that one call should have: they stay in the first-level cache over the tokens.
inline constexpr int64_t kDeltaColumns = 64;

// The blocked forms (kernels/blocked.cpp): tokens of a block, counted from the sequence's first token in the step.
inline constexpr int64_t kBlockTokens = 32;
// Fewer tokens of a sequence are computed one by one (docs/BENCH.md): setting up a block costs more for a state that is turned over.
inline constexpr int64_t kDeltaBlocksFrom = 4;
inline constexpr int64_t kScanBlocksFrom = 16;
// Products of the tokens of one block with each other: out[t, i] = left_t . right_i.
struct BlockScoresArgs {
  ConstRows right;
  struct Left {
    ConstRows rows;
    Rows out;  // [tokens][kBlockTokens]
  };
  Left first;
  Left second;  // rows.data null: none
  int64_t tokens = 0;
  int64_t width = 0;
  float* scratch = nullptr;  // [width][kBlockTokens]
};
struct DeltaBlockArgs {
  const float* scores = nullptr;  // [tokens][2][kBlockTokens]: k_t . k_i, then q_t . k_i
  int64_t score_stride = 0;       // from token to token
  float* scratch = nullptr;
};
[[nodiscard]] constexpr int64_t delta_block_scratch(int64_t key_dim, int64_t value_dim) {
  return kBlockTokens * (key_dim + 2 * kBlockTokens + value_dim);
}
struct ScanBlockArgs {
  const float* scores = nullptr;  // [tokens][groups][kBlockTokens]: c_t . b_i
  int64_t score_stride = 0;
  float* scratch = nullptr;
};
[[nodiscard]] constexpr int64_t scan_block_scratch(int64_t head_dim, int64_t states) {
  return states * head_dim + kBlockTokens * (kBlockTokens + states);
}

// Positions per step of the running softmax of latent attention, counted from position 0.
inline constexpr int64_t kLatentStep = 64;
struct LatentSoftmaxArgs {
  float* scores = nullptr;  // [queries, kLatentStep]; becomes the shares, 0 where nothing is visible
  int64_t queries = 0;
  const int32_t* visible =
      nullptr;  // [queries]: how many of the step's positions, from its first, a query sees
  float scale = 1;
  float* maxima = nullptr;       // [queries], -infinity at the start
  float* totals = nullptr;       // [queries], 0 at the start
  float* corrections = nullptr;  // [queries]: what earlier mixes are to be multiplied by
};
// output[n] = output[n] * corrections[n] + sum over j < count of shares[n, j] * values[j].
struct LatentMixArgs {
  const float* shares = nullptr;
  int64_t share_stride = 0;
  int64_t queries = 0;
  const float* corrections = nullptr;  // null: the output is new, and is not read
  const std::byte* values = nullptr;   // rows of floats, or of float16
  int64_t value_stride = 0;            // bytes
  CacheElement element = CacheElement::kF32;
  int64_t count = 0;
  int64_t width = 0;
  Rows output;
};

}  // namespace tessera::cpu
