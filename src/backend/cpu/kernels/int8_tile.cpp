// Quantised weights times 8-bit activations for many tokens. A tile of rows is re-laid so that a vector holds four codes of
// each of kWidth rows: sums then run along K inside a lane, and one broadcast of four activations serves all rows. K is cut into pieces of
// kTileBlocks blocks: a re-laid piece stays in the first-level cache while all tokens pass over it.
#include "backend/cpu/kernels/int8_pack.h"
#include "backend/cpu/kernels/kernels.h"

namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE {
namespace {

struct PackQ8_0 {
  static constexpr int kBytes = 34;
  static Codes codes(const std::byte* block) { return load_codes(block + 2); }
};
struct PackQ4_0 {
  static constexpr int kBytes = 18;
  static Codes codes(const std::byte* block) { return load_nibble_codes(block + 2); }
};

template <class Pack>
void int8_pack(const Int8PackArgs& args) {
  for (int v = 0; v < kRowVectors; ++v) {
    const std::byte* rows[kWidth];
    const int64_t first = v * kWidth;
    for (int64_t r = 0; r < kWidth; ++r) {
      const int64_t row = first + r < args.rows ? first + r : args.rows - 1;
      rows[r] = args.weights + row * args.row_stride;
    }
    // The rows' next blocks come while these are computed with.
    const int64_t next = args.first_block + args.blocks;
    const int64_t ahead = next + args.blocks < args.row_blocks ? args.blocks : args.row_blocks - next;
    for (const std::byte* row : rows)
      for (int64_t byte = 0; byte < ahead * Pack::kBytes; byte += 64)
        __builtin_prefetch(row + next * Pack::kBytes + byte, 0, 2);
    // Scales are collected as halves for some blocks and then converted together.
    constexpr int64_t kSome = 16;
    uint16_t halves[kSome][kWidth];
    for (int64_t start = 0; start < args.blocks; start += kSome) {
      const int64_t count = args.blocks - start < kSome ? args.blocks - start : kSome;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t block = start + i;
        const int64_t offset = (args.first_block + block) * Pack::kBytes;
        pack_block<Pack>(rows, offset, args.codes + (block * kGroups * kRows + first) * 4);
        TESSERA_UNROLL
        for (int r = 0; r < kWidth; ++r) std::memcpy(&halves[i][r], rows[r] + offset, 2);
      }
      for (int64_t i = 0; i < count; ++i) {
        float* place = args.scales + (start + i) * kRows + first;
        store(place, load_f16(halves[i]));
        for (int64_t r = args.rows - first < 0 ? 0 : args.rows - first; r < kWidth; ++r) place[r] = 0;
      }
    }
  }
}

// Scales and, where the format has them, minima of sixteen columns instead of thirty-two.
enum class Scaling : uint8_t { kBlock, kHalf, kHalfWithMins };

template <int N, Scaling S>
TESSERA_INLINE void tile(const Int8TileArgs& args, int64_t token) {
  Vf total[kRowVectors][N];
  const bool fresh = args.accumulate == Accumulate::kWhole || args.accumulate == Accumulate::kFirst;
  TESSERA_UNROLL
  for (int v = 0; v < kRowVectors; ++v) {
    const int64_t rows = args.rows - v * kWidth;
    TESSERA_UNROLL
    for (int n = 0; n < N; ++n) {
      const float* out = args.out + (token + n) * args.out_stride + v * kWidth;
      if (fresh || rows <= 0)
        total[v][n] = Vf{};
      else
        total[v][n] = rows >= kWidth ? load(out) : load_partial(out, rows);
    }
  }
  const int8_t* x = args.x.codes + token * args.x.code_stride;
  const float* x_scales = args.x.scales + token * args.x.block_stride;
  const int64_t half_stride = 2 * args.x.block_stride;
  const int32_t* x_offsets = args.x.offsets + token * half_stride;
  const float* x_sums = args.x.sums + token * half_stride;
  const float* mins = args.mins;
  const uint8_t* codes = args.codes;
  const float* scales = args.scales;
  constexpr int kParts = S == Scaling::kBlock ? 1 : 2;
  constexpr int kPartGroups = kGroups / kParts;
  for (int64_t block = 0; block < args.blocks; ++block) {
    TESSERA_UNROLL
    for (int part = 0; part < kParts; ++part) {
      Vi products[kRowVectors][N];
      TESSERA_UNROLL
      for (int n = 0; n < N; ++n) {
        Vi start = {};
        if (kCodesAreOffset) {
          const int32_t* offsets = x_offsets + n * half_stride + 2 * block;
          start = splat_int(kParts == 1 ? offsets[0] + offsets[1] : offsets[part]);
        }
        TESSERA_UNROLL
        for (int v = 0; v < kRowVectors; ++v) products[v][n] = start;
      }
      TESSERA_UNROLL
      for (int i = 0; i < kPartGroups; ++i) {
        const int group = part * kPartGroups + i;
        Vi w[kRowVectors];
        TESSERA_UNROLL
        for (int v = 0; v < kRowVectors; ++v)
          w[v] = load_int(reinterpret_cast<const int32_t*>(codes) + group * kRows + v * kWidth);
        TESSERA_UNROLL
        for (int n = 0; n < N; ++n) {
          int32_t four;
          std::memcpy(&four, x + n * args.x.code_stride + group * 4, 4);
          const Vi values = splat_int(four);
          TESSERA_UNROLL
          for (int v = 0; v < kRowVectors; ++v) products[v][n] = dot4(products[v][n], w[v], values);
        }
      }
      TESSERA_UNROLL
      for (int v = 0; v < kRowVectors; ++v) {
        const Vf scale = load(scales + v * kWidth);
        TESSERA_UNROLL
        for (int n = 0; n < N; ++n)
          total[v][n] =
              fma(to_float(products[v][n]), scale * x_scales[n * args.x.block_stride + block], total[v][n]);
        if (S == Scaling::kHalfWithMins) {
          const Vf min = load(mins + v * kWidth);
          TESSERA_UNROLL
          for (int n = 0; n < N; ++n)
            total[v][n] = fma(min, splat(x_sums[n * half_stride + 2 * block + part]), total[v][n]);
        }
      }
      scales += kRows;
      if (S == Scaling::kHalfWithMins) mins += kRows;
    }
    codes += kRows * kQuantBlock;
    x += kQuantBlock;
  }
  TESSERA_UNROLL
  for (int v = 0; v < kRowVectors; ++v) {
    const int64_t rows = args.rows - v * kWidth;
    if (rows <= 0) break;
    Vf bias = {};
    if (args.bias != nullptr &&
        (args.accumulate == Accumulate::kWhole || args.accumulate == Accumulate::kLast))
      bias = rows >= kWidth ? load(args.bias + v * kWidth) : load_partial(args.bias + v * kWidth, rows);
    TESSERA_UNROLL
    for (int n = 0; n < N; ++n) {
      float* out = args.out + (token + n) * args.out_stride + v * kWidth;
      if (rows >= kWidth)
        store(out, total[v][n] + bias);
      else
        store_partial(out, total[v][n] + bias, rows);
    }
  }
}

template <Scaling S>
void tiles(const Int8TileArgs& args) {
  int64_t token = 0;
  for (; token + kTileTokens <= args.tokens; token += kTileTokens) tile<kTileTokens, S>(args, token);
  switch (args.tokens - token) {
    case 5:
      return tile<5, S>(args, token);
    case 4:
      return tile<4, S>(args, token);
    case 3:
      return tile<3, S>(args, token);
    case 2:
      return tile<2, S>(args, token);
    case 1:
      return tile<1, S>(args, token);
    default:
      return;
  }
}

void int8_tile(const Int8TileArgs& args) {
  tiles<Scaling::kBlock>(args);
}
void int8_tile_halves(const Int8TileArgs& args) {
  if (args.mins == nullptr)
    tiles<Scaling::kHalf>(args);
  else
    tiles<Scaling::kHalfWithMins>(args);
}

}  // namespace

void add_int8_tile_kernels(KernelTable& table) {
  table.tile_rows = kRows;
  table.int8_tile = int8_tile;
  table.int8_tile_halves = int8_tile_halves;
  table.block[static_cast<size_t>(FormatKind::kQ8_0)].int8_pack = int8_pack<PackQ8_0>;
  table.block[static_cast<size_t>(FormatKind::kQ4_0)].int8_pack = int8_pack<PackQ4_0>;
}

}  // namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE
