// The gated delta rule and the state space of Mamba-2 by blocks of tokens: what a token takes from the tokens of its own block is a
// small triangular matrix, what it takes from before is a product with the state, and the state is read and written once a block.
// With S_0 the state before a block, g_t the decay of token t and G(t, i) = g_{i+1} ... g_t, the recurrences unroll as follows.
//
// Delta rule, S_t = g_t S_{t-1} + k_t u_t^T with u_t = beta_t (v_t - g_t S_{t-1}^T k_t) (the WY form of a product of Householder-like
// factors, Bischof and Van Loan 1987, as arXiv 2406.06484 uses it for the delta rule and arXiv 2412.06464 with decay):
//     S_t = G(t, 0) S_0 + sum over i <= t of G(t, i) k_i u_i^T
//     u_t + sum over i < t of beta_t G(t, i) (k_t . k_i) u_i = beta_t (v_t - G(t, 0) S_0^T k_t)       a unit lower triangular system
//     o_t = G(t, 0) S_0^T q_t + sum over i <= t of G(t, i) (q_t . k_i) u_i
// State space, s_t = g_t s_{t-1} + dt_t x_t b_t^T (the block decomposition of a semiseparable matrix, arXiv 2405.21060, section 6):
//     y_t = G(t, 0) s_0 c_t + sum over i <= t of G(t, i) dt_i (c_t . b_i) x_i + d x_t
// Products of decays are built up along a row, never as quotients or differences of logarithms: small ones stay exact.
#include "backend/cpu/kernels/block_product.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/vector_math.h"
#include "backend/cpu/sequence_args.h"

namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE {
namespace {

constexpr int64_t kBlock = kBlockTokens;
constexpr int64_t kBlockVectors = kBlock / kWidth;

void block_scores(const BlockScoresArgs& args) {
  transpose(args.right.data, args.right.stride, args.tokens, args.width, args.scratch, kBlock);
  for (const BlockScoresArgs::Left* left : {&args.first, &args.second}) {
    if (left->rows.data == nullptr) continue;
    Product p;
    p.a = left->rows.data;
    p.a_row = left->rows.stride;
    p.b = args.scratch;
    p.b_row = kBlock;
    p.out = left->out.data;
    p.out_row = left->out.stride;
    p.rows = args.tokens;
    p.inner = args.width;
    p.columns = args.tokens;
    product<Inner::kAll>(p);
  }
}

// shares[i] = G(t, i) from those of token t - 1, for i <= t; 0 beyond.
TESSERA_INLINE void age_shares(float* shares, int64_t t, float kept) {
  TESSERA_UNROLL
  for (int64_t i = 0; i < kBlockVectors; ++i) store(shares + i * kWidth, load(shares + i * kWidth) * kept);
  shares[t] = 1.0f;
}

// out[i] = factor * shares[i] * scores[i] for i < count, 0 beyond.
TESSERA_INLINE void weigh(const float* shares, const float* scores, float factor, int64_t count, float* out) {
  const Vi last = splat_int(static_cast<int32_t>(count));
  TESSERA_UNROLL
  for (int64_t i = 0; i < kBlockVectors; ++i) {
    const Vi here = lane_numbers() + static_cast<int32_t>(i * kWidth) < last;
    const Vf value = load(shares + i * kWidth) * load(scores + i * kWidth) * factor;
    store(out + i * kWidth, select(here, value, Vf{}));
  }
}

// Solves the triangular system in place: u holds the right side and becomes the solution; `system` holds the negated factors below
// the diagonal, 0 elsewhere.
TESSERA_INLINE void solve(const float* system, int64_t tokens, int64_t columns, float* u) {
  constexpr int64_t kRows = 4;
  const float one = 1.0f;
  for (int64_t row = 0; row < tokens; row += kRows) {
    const int64_t rows = tokens - row < kRows ? tokens - row : kRows;
    Product p;
    p.a = system + row * kBlock;
    p.a_row = kBlock;
    p.b = u;
    p.b_row = columns;
    p.out = u + row * columns;
    p.out_row = columns;
    p.keep = &one;
    p.keep_step = 0;
    p.rows = rows;
    p.inner = row;
    p.columns = columns;
    if (row > 0) product<Inner::kAll>(p);
    for (int64_t r = 1; r < rows; ++r) {
      p.a = system + (row + r) * kBlock + row;
      p.b = u + row * columns;
      p.out = u + (row + r) * columns;
      p.rows = 1;
      p.inner = r;
      product<Inner::kAll>(p);
    }
  }
}

void delta_block(const DeltaArgs& args, const DeltaBlockArgs& block, int64_t start, int64_t first,
                 int64_t columns) {
  const int64_t tokens = args.tokens - start < kBlock ? args.tokens - start : kBlock;
  const float* keys = args.keys + start * args.key_stride;
  const float* gates = args.gates + start * args.gate_stride;
  const float* scores = block.scores + start * block.score_stride;
  float* keys_by_column = block.scratch;                   // [key_dim][kBlock]
  float* system = keys_by_column + args.key_dim * kBlock;  // [kBlock][kBlock]
  float* mix = system + kBlock * kBlock;                   // [kBlock][kBlock]
  float* u = mix + kBlock * kBlock;                        // [kBlock][columns]
  alignas(64) float shares[kBlock] = {};
  float from_start[kBlock];
  float kept = 1;
  for (int64_t t = 0; t < tokens; ++t) {
    const float decay = gates[t * args.gate_stride];
    const float beta = gates[t * args.gate_stride + 1];
    kept *= decay;
    from_start[t] = kept;
    age_shares(shares, t, decay);
    const float* row = scores + t * block.score_stride;
    weigh(shares, row, -beta, t, system + t * kBlock);
    weigh(shares, row + kBlock, 1.0f, t + 1, mix + t * kBlock);
  }

  Product p;
  p.a = keys;
  p.a_row = args.key_stride;
  p.b = args.write + first;
  p.b_row = args.value_dim;
  p.out = u;
  p.out_row = columns;
  p.rows = tokens;
  p.inner = args.key_dim;
  p.columns = columns;
  product<Inner::kAll>(p);
  float* output = args.output.data + start * args.output.stride + first;
  p.a = keys + args.key_dim;
  p.out = output;
  p.out_row = args.output.stride;
  product<Inner::kAll>(p);

  for (int64_t t = 0; t < tokens; ++t) {
    const float beta = gates[t * args.gate_stride + 1];
    const float* v = args.v.data + (start + t) * args.v.stride + first;
    float* row = u + t * columns;
    int64_t c = 0;
    for (; c + kWidth <= columns; c += kWidth)
      store(row + c, beta * (load(v + c) - from_start[t] * load(row + c)));
    for (; c < columns; ++c) row[c] = beta * (v[c] - from_start[t] * row[c]);
  }
  solve(system, tokens, columns, u);

  p.a = mix;
  p.a_row = kBlock;
  p.b = u;
  p.b_row = columns;
  p.keep = from_start;
  p.inner = tokens;
  product<Inner::kLower>(p);

  transpose(keys, args.key_stride, tokens, args.key_dim, keys_by_column, kBlock);
  for (int64_t d = 0; d < args.key_dim; ++d) {
    float* row = keys_by_column + d * kBlock;
    TESSERA_UNROLL
    for (int64_t i = 0; i < kBlockVectors; ++i)
      store(row + i * kWidth, load(row + i * kWidth) * load(shares + i * kWidth));
  }
  p.a = keys_by_column;
  p.out = args.write + first;
  p.out_row = args.value_dim;
  p.keep = &kept;
  p.keep_step = 0;
  p.rows = args.key_dim;
  product<Inner::kAll>(p);
}

void delta_rule_blocked(const DeltaArgs& args, const DeltaBlockArgs& block, int64_t first, int64_t last) {
  if (args.read != args.write)
    for (int64_t d = 0; d < args.key_dim; ++d)
      for (int64_t c = first; c < last; ++c)
        args.write[d * args.value_dim + c] = args.read[d * args.value_dim + c];
  for (int64_t start = 0; start < args.tokens; start += kBlock)
    delta_block(args, block, start, first, last - first);
}

void scan_block(const HeadScanArgs& args, const ScanBlockArgs& block, int64_t head, int64_t start,
                float* state) {
  const int64_t tokens = args.tokens - start < kBlock ? args.tokens - start : kBlock;
  const int64_t group = head / args.heads_per_group;
  const int64_t head_dim = args.head_dim;
  float* mix = state + args.states * head_dim;  // [kBlock][kBlock]
  float* b_by_state = mix + kBlock * kBlock;    // [states][kBlock]
  const float* scores = block.scores + start * block.score_stride + group * kBlock;
  const float* x = args.x.data + start * args.x.stride + head * head_dim;
  const float* b = args.b.data + start * args.b.stride + group * args.states;
  const float* c = args.c.data + start * args.c.stride + group * args.states;
  float* output = args.output.data + start * args.output.stride + head * head_dim;
  alignas(64) float steps[kBlock] = {};
  alignas(64) float decays[kBlock];
  for (int64_t t = 0; t < tokens; t += kWidth) {
    const int64_t n = tokens - t < kWidth ? tokens - t : kWidth;
    float lanes[kWidth] = {};
    for (int64_t i = 0; i < n; ++i) lanes[i] = args.dt.data[(start + t + i) * args.dt.stride + head];
    Vf dt = softplus(load(lanes) + args.dt_bias[head]);
    dt = max(splat(args.dt_min), dt);
    if (args.dt_max > 0) dt = min(splat(args.dt_max), dt);
    store(steps + t, dt);
    store(decays + t, exp(dt * args.decay[head]));
  }
  // steps[i] * G(t, i): the steps enter with their own token.
  alignas(64) float shares[kBlock] = {};
  float from_start[kBlock];
  float kept = 1;
  for (int64_t t = 0; t < tokens; ++t) {
    kept *= decays[t];
    from_start[t] = kept;
    age_shares(shares, t, decays[t]);
    shares[t] = steps[t];
    weigh(shares, scores + t * block.score_stride, 1.0f, t + 1, mix + t * kBlock);
    mix[t * kBlock + t] += args.d[head];
  }

  Product p;
  p.a = c;
  p.a_row = args.c.stride;
  p.b = state;
  p.b_row = head_dim;
  p.out = output;
  p.out_row = args.output.stride;
  p.rows = tokens;
  p.inner = args.states;
  p.columns = head_dim;
  product<Inner::kAll>(p);

  p.a = mix;
  p.a_row = kBlock;
  p.b = x;
  p.b_row = args.x.stride;
  p.keep = from_start;
  p.inner = tokens;
  product<Inner::kLower>(p);

  transpose(b, args.b.stride, tokens, args.states, b_by_state, kBlock);
  for (int64_t n = 0; n < args.states; ++n) {
    float* row = b_by_state + n * kBlock;
    TESSERA_UNROLL
    for (int64_t i = 0; i < kBlockVectors; ++i)
      store(row + i * kWidth, load(row + i * kWidth) * load(shares + i * kWidth));
  }
  p.a = b_by_state;
  p.out = state;
  p.out_row = head_dim;
  p.keep = &kept;
  p.keep_step = 0;
  p.rows = args.states;
  product<Inner::kAll>(p);
}

// The state is turned over, [states][head_dim], while the blocks pass.
void head_scan_blocked(const HeadScanArgs& args, const ScanBlockArgs& block, int64_t first, int64_t last) {
  for (int64_t head = first; head < last; ++head) {
    const int64_t place = head * args.head_dim * args.states;
    transpose(args.read + place, args.states, args.head_dim, args.states, block.scratch, args.head_dim);
    for (int64_t start = 0; start < args.tokens; start += kBlock)
      scan_block(args, block, head, start, block.scratch);
    transpose(block.scratch, args.head_dim, args.states, args.head_dim, args.write + place, args.states);
  }
}

}  // namespace

void add_blocked_kernels(KernelTable& table) {
  table.block_scores = block_scores;
  table.delta_rule_blocked = delta_rule_blocked;
  table.head_scan_blocked = head_scan_blocked;
}

}  // namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE
