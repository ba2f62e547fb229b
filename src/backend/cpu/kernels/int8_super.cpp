// Products with 8-bit activations for every format that int8_unpack.h knows: a super-block of 256 columns is unpacked once, then
// meets all tokens. For many tokens the same super-blocks are laid into tiles (int8_tile.cpp).
#include "backend/cpu/kernels/int8_pack.h"
#include "backend/cpu/kernels/int8_unpack.h"
#include "backend/cpu/kernels/kernels.h"

namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE {
namespace {

#if defined(TESSERA_SIMD_AVX512)

// Activations of one super-block. Lane l of a vector of 64 codes holds codes 4 l .. 4 l + 3.
struct SpreadSuper {
  int8_t codes[256];
  float scales[64];     // of each lane
  int32_t offsets[64];  // -128 * the sum of a lane's codes
  float sums[16];
};
static_assert(sizeof(SpreadSuper) <= 8 * 112);

int64_t supers_of(int64_t blocks) {
  return (blocks + 7) / 8;
}

void spread_supers(const Int8Activations& x, int64_t tokens, int64_t blocks, std::byte* out) {
  const int64_t supers = supers_of(blocks);
  for (int64_t token = 0; token < tokens; ++token) {
    const int8_t* codes = x.codes + token * x.code_stride;
    const float* scales = x.scales + token * x.block_stride;
    const float* sums = x.sums + 2 * token * x.block_stride;
    auto* place = reinterpret_cast<SpreadSuper*>(out + token * int8_spread_bytes(blocks));
    for (int64_t s = 0; s < supers; ++s) {
      SpreadSuper& to = place[s];
      const int64_t count = blocks - 8 * s < 8 ? blocks - 8 * s : 8;
      if (count < 8) std::memset(&to, 0, sizeof(to));
      std::memcpy(to.codes, codes + 256 * s, static_cast<size_t>(32 * count));
      std::memcpy(to.sums, sums + 16 * s, static_cast<size_t>(2 * count) * sizeof(float));
      for (int64_t lane = 0; lane < 8 * count; ++lane) {
        to.scales[lane] = scales[8 * s + lane / 8];
        const int8_t* four = to.codes + 4 * lane;
        to.offsets[lane] = -128 * (four[0] + four[1] + four[2] + four[3]);
      }
    }
  }
}

template <class Row, int N>
void dot_rows(const Int8DotArgs& args, int64_t token) {
  const int64_t supers = supers_of(args.blocks);
  const SpreadSuper* x[N];
  for (int n = 0; n < N; ++n)
    x[n] = reinterpret_cast<const SpreadSuper*>(args.spread + (token + n) * int8_spread_bytes(args.blocks));
  const __m512i lanes = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
  for (int64_t r = 0; r < args.rows; ++r) {
    const Row row(args.weights, args.row_stride, args.grouped, r, 32 * args.blocks);
    __m512 even[N];
    __m512 odd[N];
    TESSERA_UNROLL
    for (int n = 0; n < N; ++n) even[n] = odd[n] = _mm512_setzero_ps();
    for (int64_t s = 0; s < supers; ++s) {
      Super w;
      Row::unpack(row, s, args.blocks - 8 * s, w);
      const __m512 scales = _mm512_load_ps(w.scales);
      TESSERA_UNROLL
      for (int u = 0; u < 4; ++u) {
        const __m512i codes = _mm512_load_si512(w.codes + 64 * u);
        const __m512 lane_scales =
            _mm512_permutexvar_ps(_mm512_add_epi32(lanes, _mm512_set1_epi32(4 * u)), scales);
        TESSERA_UNROLL
        for (int n = 0; n < N; ++n) {
          const SpreadSuper& a = x[n][s];
          const __m512i products = _mm512_dpbusd_epi32(_mm512_loadu_si512(a.offsets + 16 * u), codes,
                                                       _mm512_loadu_si512(a.codes + 64 * u));
          const __m512 scale = _mm512_mul_ps(lane_scales, _mm512_loadu_ps(a.scales + 16 * u));
          __m512& total = u % 2 == 0 ? even[n] : odd[n];
          total = _mm512_fmadd_ps(_mm512_cvtepi32_ps(products), scale, total);
        }
      }
      if (Row::kMins) {
        const __m512 mins = _mm512_load_ps(w.mins);
        TESSERA_UNROLL
        for (int n = 0; n < N; ++n) even[n] = _mm512_fmadd_ps(mins, _mm512_loadu_ps(x[n][s].sums), even[n]);
      }
    }
    const float bias = args.bias == nullptr ? 0.0f : args.bias[r];
    TESSERA_UNROLL
    for (int n = 0; n < N; ++n)
      args.out[(token + n) * args.out_stride + r] = sum(reinterpret_cast<Vf>(even[n] + odd[n])) + bias;
  }
}

constexpr auto kSpreadSupers = spread_supers;

#else

// Eight blocks one after the other; the two halves of a block have scales of their own.
template <class Row, int N>
void dot_rows(const Int8DotArgs& args, int64_t token) {
  const int64_t supers = (args.blocks + 7) / 8;
  const int8_t* x[N];
  const float* x_scales[N];
  const float* x_sums[N];
  for (int n = 0; n < N; ++n) {
    x[n] = args.x.codes + (token + n) * args.x.code_stride;
    x_scales[n] = args.x.scales + (token + n) * args.x.block_stride;
    x_sums[n] = args.x.sums + 2 * (token + n) * args.x.block_stride;
  }
  for (int64_t r = 0; r < args.rows; ++r) {
    const Row row(args.weights, args.row_stride, args.grouped, r, 32 * args.blocks);
    Vf total[N];
    float plain[N];
    TESSERA_UNROLL
    for (int n = 0; n < N; ++n) {
      total[n] = Vf{};
      plain[n] = 0;
    }
    for (int64_t s = 0; s < supers; ++s) {
      const int64_t blocks = args.blocks - 8 * s < 8 ? args.blocks - 8 * s : 8;
      Super w;
      Row::unpack(row, s, args.blocks - 8 * s, w);
      for (int64_t b = 0; b < blocks; ++b) {
        uint8_t codes[32];
        TESSERA_UNROLL
        for (int j = 0; j < 32; ++j) codes[j] = w.codes[32 * b + j] ^ 0x80;
        const float scales[2] = {w.scales[2 * b], w.scales[2 * b + 1]};
        TESSERA_UNROLL
        for (int n = 0; n < N; ++n) {
          const Halves halves =
              dot_halves(load_codes(reinterpret_cast<const std::byte*>(codes)), x[n] + 256 * s + 32 * b);
          const float scale = x_scales[n][8 * s + b];
          total[n] = add_halves(halves, scales[0] * scale, scales[1] * scale, total[n]);
          if (Row::kMins)
            plain[n] +=
                w.mins[2 * b] * x_sums[n][16 * s + 2 * b] + w.mins[2 * b + 1] * x_sums[n][16 * s + 2 * b + 1];
        }
      }
    }
    const float bias = args.bias == nullptr ? 0.0f : args.bias[r];
    TESSERA_UNROLL
    for (int n = 0; n < N; ++n) args.out[(token + n) * args.out_stride + r] = sum(total[n]) + plain[n] + bias;
  }
}

constexpr decltype(FormatKernels::int8_spread) kSpreadSupers = nullptr;

#endif

// Rows are taken some at a time, so that they are still in the cache when a second group of tokens needs them.
template <class Row>
void int8_dot(const Int8DotArgs& whole) {
  constexpr int64_t kSome = 16;
  Int8DotArgs args = whole;
  for (int64_t first = 0; first < whole.rows; first += kSome) {
    args.weights = whole.weights + first * whole.row_stride;
    for (int i = 0; i < 2; ++i)
      if (whole.grouped.planes[i] != nullptr)
        args.grouped.planes[i] = whole.grouped.planes[i] + first * whole.grouped.strides[i];
    args.rows = whole.rows - first < kSome ? whole.rows - first : kSome;
    args.bias = whole.bias == nullptr ? nullptr : whole.bias + first;
    args.out = whole.out + first;
    int64_t token = 0;
    for (; token + 4 <= args.tokens; token += 4) dot_rows<Row, 4>(args, token);
    for (; token + 2 <= args.tokens; token += 2) dot_rows<Row, 2>(args, token);
    if (token < args.tokens) dot_rows<Row, 1>(args, token);
  }
}

struct PackSuper {
  static Codes codes(const std::byte* block) {
    uint8_t codes[32];
    for (int j = 0; j < 32; ++j) codes[j] = static_cast<uint8_t>(byte_at(block + j) ^ 0x80);
    return load_codes(reinterpret_cast<const std::byte*>(codes));
  }
};

// Pieces of a row begin at multiples of kTileBlocks: whole super-blocks.
template <class Row>
void int8_pack(const Int8PackArgs& args) {
  static_assert(kTileBlocks % 8 == 0);
  const int64_t columns = 32 * args.row_blocks;
  for (int v = 0; v < kRowVectors; ++v) {
    const int64_t first = v * kWidth;
    for (int64_t start = 0; start < args.blocks; start += 8) {
      const int64_t count = args.blocks - start < 8 ? args.blocks - start : 8;
      const int64_t super = (args.first_block + start) / 8;
      Super supers[kWidth];
      const std::byte* rows[kWidth];
      for (int64_t r = 0; r < kWidth; ++r) {
        const int64_t at = first + r < args.rows ? first + r : args.rows - 1;
        const Row row(args.weights, args.row_stride, args.grouped, at, columns);
        Row::unpack(row, super, args.row_blocks - 8 * super, supers[r]);
        rows[r] = reinterpret_cast<const std::byte*>(supers[r].codes);
      }
      for (int64_t b = 0; b < count; ++b)
        pack_block<PackSuper>(rows, 32 * b, args.codes + ((start + b) * kGroups * kRows + first) * 4);
      for (int64_t i = 0; i < 2 * count; ++i) {
        const int64_t place = (2 * start + i) * kRows + first;
        for (int64_t r = 0; r < kWidth; ++r) {
          const bool there = first + r < args.rows;
          args.scales[place + r] = there ? supers[r].scales[i] : 0.0f;
          if (Row::kMins) args.mins[place + r] = there ? supers[r].mins[i] : 0.0f;
        }
      }
    }
  }
}

template <class Row>
void add(KernelTable& table, FormatKind kind) {
  FormatKernels& kernels = table.block[static_cast<size_t>(kind)];
  kernels.int8_dot = int8_dot<Row>;
  kernels.int8_spread = kSpreadSupers;
  kernels.int8_pack = int8_pack<Row>;
  kernels.int8_halves = true;
  kernels.int8_mins = Row::kMins;
}

}  // namespace

void add_int8_super_kernels(KernelTable& table) {
  add<BlockRow<SuperQ4_1>>(table, FormatKind::kQ4_1);
  add<BlockRow<SuperQ5_0>>(table, FormatKind::kQ5_0);
  add<BlockRow<SuperQ5_1>>(table, FormatKind::kQ5_1);
  add<BlockRow<SuperQ2K>>(table, FormatKind::kQ2K);
  add<BlockRow<SuperQ3K>>(table, FormatKind::kQ3K);
  add<BlockRow<SuperQ4K>>(table, FormatKind::kQ4K);
  add<BlockRow<SuperQ5K>>(table, FormatKind::kQ5K);
  add<BlockRow<SuperQ6K>>(table, FormatKind::kQ6K);
  add<BlockRow<SuperIQ4NL>>(table, FormatKind::kIQ4NL);
  add<BlockRow<SuperIQ4XS>>(table, FormatKind::kIQ4XS);
  add<BlockRow<SuperTQ2_0>>(table, FormatKind::kTQ2_0);
  add<BlockRow<SuperMXFP4>>(table, FormatKind::kMXFP4);
  add<BlockRow<SuperNVFP4>>(table, FormatKind::kNVFP4);
  add<GroupedRowOf<FormatKind::kMlxAffine>>(table, FormatKind::kMlxAffine);
  add<GroupedRowOf<FormatKind::kMlcGroup>>(table, FormatKind::kMlcGroup);
  add<GroupedRowOf<FormatKind::kOffsetGroup>>(table, FormatKind::kOffsetGroup);
  add<GroupedRowOf<FormatKind::kZeroGroup>>(table, FormatKind::kZeroGroup);
  add<GroupedRowOf<FormatKind::kInt8Group>>(table, FormatKind::kInt8Group);
  add<GroupedRowOf<FormatKind::kFloat4Group>>(table, FormatKind::kFloat4Group);
}

}  // namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE
