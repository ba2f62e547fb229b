// Attention over pages. Keys lie transposed in a page ([head_dim][slots]), so a vector of scores belongs to neighbouring
// positions. The softmax runs (Milakov and Gimelshein, 2018) over steps of kKeyUnits slot units, aligned to absolute page
// indices: what a token gets depends only on its own position and the state, never on the tokens computed with it.
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/simd.h"
#include "backend/cpu/kernels/vector_math.h"

namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE {
namespace {

constexpr int kUnitVectors = static_cast<int>(kSlotUnit) / kWidth;
constexpr int64_t kStep = kKeyUnits * kSlotUnit;
constexpr float kMinusInfinity = -__builtin_inff();

// Queries of a register tile, and value vectors.
#if defined(TESSERA_SIMD_AVX512)
constexpr int kScoreQueries = 8;
constexpr int kMixQueries = 4;
constexpr int kMixVectors = 4;
#elif defined(TESSERA_SIMD_AVX2)
constexpr int kScoreQueries = 4;
constexpr int kMixQueries = 4;
constexpr int kMixVectors = 2;
#else
constexpr int kScoreQueries = 2;
constexpr int kMixQueries = 4;
constexpr int kMixVectors = 2;
#endif

struct ElementF32 {
  using Type = float;
  static Vf get(const float* p) { return load(p); }
  static void put(float* p, Vf v) { store(p, v); }
  static float one(float x) { return x; }
  static void put_one(float* p, float x) { *p = x; }
};
struct ElementF16 {
  using Type = uint16_t;
  static Vf get(const uint16_t* p) { return load_f16(p); }
  static void put(uint16_t* p, Vf v) { store_f16(p, v); }
  static float one(uint16_t x) { return half_to_float(x); }
  static void put_one(uint16_t* p, float x) { *p = float_to_half(x); }
};

// The keys and values of one kv head in one page.
template <class Element>
struct PageView {
  typename Element::Type* keys;    // [head_dim, slots]
  typename Element::Type* values;  // [slots, value_dim]
};

template <class Element>
TESSERA_INLINE PageView<Element> page_view(const AttendArgs& args, int32_t page, int64_t kv_head) {
  auto* base = reinterpret_cast<typename Element::Type*>(args.pool + page * args.page_bytes);
  auto* values = base + args.kv_heads * args.head_dim * args.slots;
  return {base + kv_head * args.head_dim * args.slots, values + kv_head * args.slots * args.value_dim};
}

template <class Element>
TESSERA_INLINE void store_tokens(const AttendArgs& args, const AttendSequence& sequence, int64_t kv_head,
                                 int64_t first, int64_t last) {
  for (int64_t token = first; token < last; ++token) {
    const int64_t position = sequence.past + token;
    const int64_t slot = position % args.page_positions;
    const PageView<Element> page =
        page_view<Element>(args, sequence.pages[position / args.page_positions], kv_head);
    const float* k = args.k + (sequence.first_token + token) * args.k_stride + kv_head * args.head_dim;
    const float* v = args.v + (sequence.first_token + token) * args.v_stride + kv_head * args.value_dim;
    auto* keys = page.keys + slot;
    int64_t column = 0;
    for (; column + kWidth <= args.head_dim; column += kWidth) {
      typename Element::Type lanes[kWidth];
      Element::put(lanes, load(k + column));
      for (int i = 0; i < kWidth; ++i) keys[(column + i) * args.slots] = lanes[i];
    }
    for (; column < args.head_dim; ++column) Element::put_one(keys + column * args.slots, k[column]);
    auto* values = page.values + slot * args.value_dim;
    column = 0;
    for (; column + kWidth <= args.value_dim; column += kWidth)
      Element::put(values + column, load(v + column));
    for (; column < args.value_dim; ++column) Element::put_one(values + column, v[column]);
  }
}

// scores[n, U units] of N queries.
template <class Element, int N, int U>
TESSERA_INLINE void score_tile(const float* q, int64_t head_dim, const typename Element::Type* const* keys,
                               int64_t slots, float* scores) {
  Vf total[N][U * kUnitVectors];
  TESSERA_UNROLL
  for (int n = 0; n < N; ++n) {
    TESSERA_UNROLL
    for (int i = 0; i < U * kUnitVectors; ++i) total[n][i] = Vf{};
  }
  for (int64_t d = 0; d < head_dim; ++d) {
    Vf k[U * kUnitVectors];
    TESSERA_UNROLL
    for (int i = 0; i < U * kUnitVectors; ++i)
      k[i] = Element::get(keys[i / kUnitVectors] + d * slots + i % kUnitVectors * kWidth);
    TESSERA_UNROLL
    for (int n = 0; n < N; ++n) {
      const Vf x = splat(q[n * head_dim + d]);
      TESSERA_UNROLL
      for (int i = 0; i < U * kUnitVectors; ++i) total[n][i] = fma(x, k[i], total[n][i]);
    }
  }
  TESSERA_UNROLL
  for (int n = 0; n < N; ++n) {
    TESSERA_UNROLL
    for (int i = 0; i < U * kUnitVectors; ++i) store(scores + n * kStep + i * kWidth, total[n][i]);
  }
}

template <class Element, int U>
TESSERA_INLINE void score_units(const float* q, int64_t queries, int64_t head_dim,
                                const typename Element::Type* const* keys, int64_t slots, float* scores) {
  int64_t n = 0;
  for (; n + kScoreQueries <= queries; n += kScoreQueries)
    score_tile<Element, kScoreQueries, U>(q + n * head_dim, head_dim, keys, slots, scores + n * kStep);
  if constexpr (kScoreQueries > 4)
    for (; n + 4 <= queries; n += 4)
      score_tile<Element, 4, U>(q + n * head_dim, head_dim, keys, slots, scores + n * kStep);
  for (; n < queries; ++n)
    score_tile<Element, 1, U>(q + n * head_dim, head_dim, keys, slots, scores + n * kStep);
}

// out[n, D vectors] = out * correction[n] + sum over the rows of p[n, row] * v[row].
template <class Element, int N, int D>
TESSERA_INLINE void mix_tile(const float* p, const float* correction,
                             const typename Element::Type* const* rows, const int32_t* slots, int64_t count,
                             int64_t column, float* out, int64_t value_dim) {
  Vf total[N][D];
  TESSERA_UNROLL
  for (int n = 0; n < N; ++n) {
    TESSERA_UNROLL
    for (int i = 0; i < D; ++i) total[n][i] = load(out + n * value_dim + column + i * kWidth) * correction[n];
  }
  for (int64_t j = 0; j < count; ++j) {
    Vf v[D];
    TESSERA_UNROLL
    for (int i = 0; i < D; ++i) v[i] = Element::get(rows[j] + column + i * kWidth);
    TESSERA_UNROLL
    for (int n = 0; n < N; ++n) {
      const Vf x = splat(p[n * kStep + slots[j]]);
      TESSERA_UNROLL
      for (int i = 0; i < D; ++i) total[n][i] = fma(x, v[i], total[n][i]);
    }
  }
  TESSERA_UNROLL
  for (int n = 0; n < N; ++n) {
    TESSERA_UNROLL
    for (int i = 0; i < D; ++i) store(out + n * value_dim + column + i * kWidth, total[n][i]);
  }
}

template <class Element, int N>
TESSERA_INLINE void mix_queries(const float* p, const float* correction,
                                const typename Element::Type* const* rows, const int32_t* slots,
                                int64_t count, float* out, int64_t value_dim) {
  int64_t column = 0;
  for (; column + kMixVectors * kWidth <= value_dim; column += kMixVectors * kWidth)
    mix_tile<Element, N, kMixVectors>(p, correction, rows, slots, count, column, out, value_dim);
  for (; column + kWidth <= value_dim; column += kWidth)
    mix_tile<Element, N, 1>(p, correction, rows, slots, count, column, out, value_dim);
  for (; column < value_dim; ++column) {
    for (int n = 0; n < N; ++n) {
      float total = out[n * value_dim + column] * correction[n];
      for (int64_t j = 0; j < count; ++j) total += p[n * kStep + slots[j]] * Element::one(rows[j][column]);
      out[n * value_dim + column] = total;
    }
  }
}

// Scores of one query: scale, cap, hide what it does not see; then one step of the running softmax. `positions` are those of
// the step's slots (-1: none).
struct SoftmaxState {
  float* maximum;
  float* total;
  float* correction;
};

TESSERA_INLINE void softmax_step(const AttendArgs& args, float* scores, const int32_t* positions, int64_t low,
                                 int64_t high, float slope, float own, SoftmaxState state) {
  constexpr int kVectors = static_cast<int>(kStep) / kWidth;
  const Vi lowest = splat_int(static_cast<int32_t>(low));
  const Vi highest = splat_int(static_cast<int32_t>(high));
  Vf s[kVectors];
  Vf best = splat(kMinusInfinity);
  TESSERA_UNROLL
  for (int i = 0; i < kVectors; ++i) {
    const Vi position = load_int(positions + i * kWidth);
    Vf score = load(scores + i * kWidth) * args.scale;
    if (slope != 0.0f) score += slope * (to_float(position) - own);
    if (args.softcap != 0.0f) score = args.softcap * tanh(score / args.softcap);
    s[i] = select((position >= lowest) & (position <= highest), score, splat(kMinusInfinity));
    best = max(s[i], best);
  }
  const float before = *state.maximum;
  const float step_maximum = maximum(best);
  const float now = step_maximum > before ? step_maximum : before;
  if (now == kMinusInfinity) {  // nothing visible so far
    TESSERA_UNROLL
    for (int i = 0; i < kVectors; ++i) store(scores + i * kWidth, Vf{});
    *state.correction = 1;
    return;
  }
  const Vf shift = splat(now);
  Vf total = {};
  TESSERA_UNROLL
  for (int i = 0; i < kVectors; ++i) {
    const Vf p = exp(s[i] - shift);
    total += p;
    store(scores + i * kWidth, p);
  }
  const float correction = before == now ? 1.0f : exp(splat(before - now))[0];
  *state.maximum = now;
  *state.total = *state.total * correction + sum(total);
  *state.correction = correction;
}

template <class Element>
void attend_tokens(const AttendArgs& args, const AttendSequence& sequence, int64_t kv_head, int64_t first,
                   int64_t last, float* scratch) {
  using Type = typename Element::Type;
  const int64_t heads_per_kv = args.heads / args.kv_heads;
  const int64_t queries = (last - first) * heads_per_kv;
  float* q = scratch;
  float* out = q + queries * args.head_dim;
  float* scores = out + queries * args.value_dim;
  float* maxima = scores + queries * kStep;
  float* totals = maxima + queries;
  float* corrections = totals + queries;

  for (int64_t token = first; token < last; ++token) {
    const int64_t row = sequence.first_token + token;
    const float factor = args.query_scales == nullptr ? 1.0f : args.query_scales[row];
    const float* source = args.q + row * args.q_stride + kv_head * heads_per_kv * args.head_dim;
    float* place = q + (token - first) * heads_per_kv * args.head_dim;
    for (int64_t i = 0; i < heads_per_kv * args.head_dim; ++i) place[i] = source[i] * factor;
  }
  for (int64_t i = 0; i < queries * args.value_dim; ++i) out[i] = 0;
  for (int64_t n = 0; n < queries; ++n) {
    // A sink is a score whose value is nothing.
    const bool sink = args.sinks != nullptr;
    maxima[n] = sink ? args.sinks[kv_head * heads_per_kv + n % heads_per_kv] : kMinusInfinity;
    totals[n] = sink ? 1.0f : 0.0f;
  }

  // Positions any of the tokens sees: [begin, end).
  const int64_t all = sequence.past + sequence.tokens;
  const int64_t begin = args.window > 0 && sequence.past + first - args.window + 1 > 0
                            ? sequence.past + first - args.window + 1
                            : 0;
  const int64_t end = args.causal ? sequence.past + last : all;
  const int64_t page_units = args.slots / kSlotUnit;
  const int64_t first_unit =
      begin / args.page_positions * page_units + begin % args.page_positions / kSlotUnit;
  const int64_t last_unit =
      (end - 1) / args.page_positions * page_units + (end - 1) % args.page_positions / kSlotUnit + 1;

  for (int64_t step = first_unit / kKeyUnits * kKeyUnits; step < last_unit; step += kKeyUnits) {
    int32_t positions[kStep];
    const Type* keys[kKeyUnits];
    const Type* rows[kStep];
    int32_t row_slots[kStep];
    int64_t row_count = 0;
    int units = 0;
    for (int64_t i = 0; i < kStep; ++i) positions[i] = -1;
    const int64_t step_begin = step > first_unit ? step : first_unit;
    const int64_t step_end = step + kKeyUnits < last_unit ? step + kKeyUnits : last_unit;
    for (int64_t unit = step_begin; unit < step_end; ++unit, ++units) {
      const int64_t table_index = unit / page_units;
      const int64_t slot = unit % page_units * kSlotUnit;
      const PageView<Element> page = page_view<Element>(args, sequence.pages[table_index], kv_head);
      keys[units] = page.keys + slot;
      for (int64_t i = 0; i < kSlotUnit && slot + i < args.page_positions; ++i) {
        const int64_t position = table_index * args.page_positions + slot + i;
        if (position < begin || position >= end) continue;
        positions[units * kSlotUnit + i] = static_cast<int32_t>(position);
        rows[row_count] = page.values + (slot + i) * args.value_dim;
        row_slots[row_count++] = static_cast<int32_t>(units * kSlotUnit + i);
      }
    }
    for (int unit = 0; unit < units;) {
      if (unit + 2 <= units && kUnitVectors == 1) {
        score_units<Element, 2>(q, queries, args.head_dim, keys + unit, args.slots,
                                scores + unit * kSlotUnit);
        unit += 2;
      } else {
        score_units<Element, 1>(q, queries, args.head_dim, keys + unit, args.slots,
                                scores + unit * kSlotUnit);
        ++unit;
      }
    }
    for (int64_t n = 0; n < queries; ++n) {
      const int64_t own = sequence.past + first + n / heads_per_kv;
      const int64_t low = args.window > 0 && own - args.window + 1 > 0 ? own - args.window + 1 : 0;
      const int64_t high = args.causal ? own : all - 1;
      const float slope =
          args.slopes == nullptr ? 0.0f : args.slopes[kv_head * heads_per_kv + n % heads_per_kv];
      softmax_step(args, scores + n * kStep, positions, low, high, slope, static_cast<float>(own),
                   {maxima + n, totals + n, corrections + n});
    }
    int64_t n = 0;
    for (; n + kMixQueries <= queries; n += kMixQueries)
      mix_queries<Element, kMixQueries>(scores + n * kStep, corrections + n, rows, row_slots, row_count,
                                        out + n * args.value_dim, args.value_dim);
    for (; n < queries; ++n)
      mix_queries<Element, 1>(scores + n * kStep, corrections + n, rows, row_slots, row_count,
                              out + n * args.value_dim, args.value_dim);
  }

  for (int64_t n = 0; n < queries; ++n) {
    const int64_t row = sequence.first_token + first + n / heads_per_kv;
    const int64_t head = kv_head * heads_per_kv + n % heads_per_kv;
    float* place = args.output + row * args.output_stride + head * args.value_dim;
    const float factor = 1.0f / totals[n];
    for (int64_t i = 0; i < args.value_dim; ++i) place[i] = out[n * args.value_dim + i] * factor;
  }
}

}  // namespace

void store_kv(const AttendArgs& args, const AttendSequence& sequence, int64_t kv_head, int64_t first,
              int64_t last) {
  if (args.element == CacheElement::kF16)
    store_tokens<ElementF16>(args, sequence, kv_head, first, last);
  else
    store_tokens<ElementF32>(args, sequence, kv_head, first, last);
}

void attend(const AttendArgs& args, const AttendSequence& sequence, int64_t kv_head, int64_t first,
            int64_t last, float* scratch) {
  if (args.element == CacheElement::kF16)
    attend_tokens<ElementF16>(args, sequence, kv_head, first, last, scratch);
  else
    attend_tokens<ElementF32>(args, sequence, kv_head, first, last, scratch);
}

}  // namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE
