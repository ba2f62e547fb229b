// What the CPU backend computes with: one table of functions per instruction set. The same sources (kernels/) are compiled
// once per set, each into its own namespace and with its own flags; the table is chosen at start (isa.h). Arguments are
// plain structs of pointers and sizes, because code compiled for a newer processor must not leak into shared inline
// functions. Row ranges [first, last) let the caller split work over threads; every output value is computed by one call, in
// an order that depends neither on the range nor on the other rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/activation.h"
#include "model/norm.h"
#include "model/rope.h"
#include "tensor/format.h"

namespace tessera::cpu {

struct NormArgs {
  const float* input = nullptr;
  int64_t input_stride = 0;  // floats from row to row, here and below
  float* output = nullptr;
  int64_t output_stride = 0;
  int64_t width = 0;
  int64_t group = 0;  // divides width
  NormKind kind = NormKind::kRms;
  float eps = 0;
  const float* gain = nullptr;  // [group], or [width] when per_row; null: ones
  const float* bias = nullptr;
  bool per_row = false;
};

struct RopeArgs {
  float* x = nullptr;
  int64_t stride = 0;
  int64_t heads = 0;
  int64_t head_dim = 0;
  int64_t dim = 0;  // rotated values per head
  RopeLayout layout = RopeLayout::kHalfSplit;
  const float* cos = nullptr;  // [rows, dim / 2], amplitude included
  const float* sin = nullptr;
};

struct ActivateArgs {
  const float* gate = nullptr;
  int64_t gate_stride = 0;
  const float* up = nullptr;  // null: none
  int64_t up_stride = 0;
  float* output = nullptr;
  int64_t output_stride = 0;
  int64_t width = 0;
  Activation activation = Activation::kSilu;
};

// output = clamp(input, -limit, limit)
struct ClampArgs {
  const float* input = nullptr;
  int64_t input_stride = 0;
  float* output = nullptr;
  int64_t output_stride = 0;
  int64_t width = 0;
  float limit = 0;
};

// output = max(0, input - (mean + deviations * standard deviation of the row))
struct SparsifyArgs {
  const float* input = nullptr;
  int64_t input_stride = 0;
  float* output = nullptr;
  int64_t output_stride = 0;
  int64_t width = 0;
  float deviations = 0;
};

// output = x * sigmoid(gate), a column of the gate for every `group` columns of x.
struct SigmoidGateArgs {
  const float* x = nullptr;
  int64_t x_stride = 0;
  const float* gate = nullptr;
  int64_t gate_stride = 0;
  float* output = nullptr;
  int64_t output_stride = 0;
  int64_t width = 0;
  int64_t group = 1;
};

struct CombineInput {
  const float* data = nullptr;
  int64_t stride = 0;
  float factor = 1;
};
// output = (residual + alpha * sum of factor * term) * beta
struct CombineArgs {
  const float* residual = nullptr;  // null: 0
  int64_t residual_stride = 0;
  const CombineInput* terms = nullptr;
  int64_t term_count = 0;
  float alpha = 1;
  float beta = 1;
  float* output = nullptr;
  int64_t output_stride = 0;
  int64_t width = 0;
};

struct ScaleLogitsArgs {
  float* x = nullptr;
  int64_t stride = 0;
  int64_t width = 0;
  float scale = 1;
  float softcap = 0;  // 0: none
};

// What a partial product along K finds in `out` and leaves there. The bias is added last.
enum class Accumulate : uint8_t {
  kWhole,   // all of K: starts from 0, ends with the bias
  kFirst,   // starts from 0
  kMiddle,  // adds to what is there
  kLast,    // adds to what is there, then the bias
};

// Rows of weights times rows of activations: out[t, r] = sum over k of w[r, k] * x[t, k] + bias[r]. Sums of chunks of
// kFloatChunk columns are added in order, so parts of K must begin at multiples of it.
inline constexpr int64_t kFloatChunk = 1024;
struct FloatDotArgs {
  const std::byte* weights = nullptr;
  int64_t row_stride = 0;  // bytes
  int64_t rows = 0;
  int64_t columns = 0;
  const float* x = nullptr;
  int64_t x_stride = 0;
  int64_t tokens = 0;
  const float* bias = nullptr;  // [rows]; null: none
  float* out = nullptr;
  int64_t out_stride = 0;
  Accumulate accumulate = Accumulate::kWhole;
};

// The same with bfloat16 weights and activations, summed in float32. Parts of K may begin anywhere.
inline constexpr int64_t kBf16Chunk = 2048;
struct Bf16DotArgs {
  const uint16_t* weights = nullptr;
  int64_t row_stride = 0;  // values
  int64_t rows = 0;
  int64_t columns = 0;
  const uint16_t* x = nullptr;
  int64_t x_stride = 0;
  int64_t tokens = 0;
  const float* bias = nullptr;
  float* out = nullptr;
  int64_t out_stride = 0;
  Accumulate accumulate = Accumulate::kWhole;
};

// Activations in 8 bits, blocks of 32 along a row: x = code * scale. Codes lie in [-127, 127].
inline constexpr int64_t kQuantBlock = 32;
struct Int8Activations {
  int8_t* codes = nullptr;  // [tokens, columns]
  int64_t code_stride = 0;
  float* scales = nullptr;  // [tokens, columns / 32]
  // [tokens, columns / 16], stride 2 * block_stride: -128 * the sum of sixteen codes, what a weight code + 128 adds too much
  int32_t* offsets = nullptr;
  int64_t block_stride = 0;
  float* sums =
      nullptr;  // [tokens, columns / 16], stride 2 * block_stride: of the activations before they were rounded
};

// The planes of a grouped format besides its codes, from the first row on.
struct GroupedPlanes {
  Format format;
  const std::byte* planes[2] = {};
  int64_t strides[2] = {};  // bytes
};

// Few tokens: rows are read in their own format.
struct Int8DotArgs {
  const std::byte* weights = nullptr;
  int64_t row_stride = 0;  // bytes
  int64_t rows = 0;
  int64_t blocks = 0;  // of 32 along a row
  Int8Activations x;
  int64_t tokens = 0;
  const float* bias = nullptr;
  float* out = nullptr;
  int64_t out_stride = 0;
  const std::byte* spread = nullptr;  // what the format's int8_spread wrote, when it has one
  GroupedPlanes grouped;
};
inline constexpr int64_t kMaxDotTokens = 8;
// Blocks of K that are re-laid at a time: what all tokens then pass over stays in the first-level cache.
inline constexpr int64_t kTileBlocks = 16;
// Bytes that int8_spread writes at most for one token.
[[nodiscard]] constexpr int64_t int8_spread_bytes(int64_t blocks) {
  return (blocks + 8) * 112;
}

// Many tokens: a tile of at most KernelTable::tile_rows rows is re-laid first, codes as [blocks][8][tile_rows][4] bytes and
// scales as [blocks][tile_rows]; rows beyond `rows` have scale 0. Formats with int8_halves have scales for 16 columns each,
// [2 * blocks][tile_rows]; formats with int8_mins have as many numbers to be added to every weight of the columns.
struct Int8PackArgs {
  const std::byte* weights = nullptr;
  int64_t row_stride = 0;
  int64_t rows = 0;
  int64_t first_block = 0;
  int64_t blocks = 0;
  int64_t row_blocks = 0;  // of the whole row: what follows is fetched ahead
  uint8_t* codes = nullptr;
  float* scales = nullptr;
  float* mins = nullptr;
  GroupedPlanes grouped;
};
struct Int8TileArgs {
  const uint8_t* codes = nullptr;
  const float* scales = nullptr;
  int64_t rows = 0;  // written ones
  int64_t blocks = 0;
  Int8Activations x;
  int64_t tokens = 0;
  const float* bias = nullptr;
  float* out = nullptr;
  int64_t out_stride = 0;
  Accumulate accumulate = Accumulate::kWhole;
  const float* mins = nullptr;  // null: none
};

// What a format has on an instruction set. Null entries mean the generic way: rows are decoded by formats/ and multiplied
// as float32.
struct FormatKernels {
  void (*decode)(const std::byte* row, int64_t count, float* values) = nullptr;
  void (*decode_bf16)(const std::byte* row, int64_t count, uint16_t* values) = nullptr;
  void (*float_dot)(const FloatDotArgs& args) = nullptr;
  // For at most kMaxDotTokens tokens. The activations in the order that int8_dot reads them in, when that is not as they are.
  void (*int8_spread)(const Int8Activations& x, int64_t tokens, int64_t blocks, std::byte* out) = nullptr;
  void (*int8_dot)(const Int8DotArgs& args) = nullptr;
  void (*int8_pack)(const Int8PackArgs& args) = nullptr;
  bool int8_halves = false;
  bool int8_mins = false;
};

// Paged attention of one layer. A page holds, per layer, keys as [kv_heads][head_dim][slots] and then values as
// [kv_heads][slots][value_dim], so that scores of neighbouring positions are computed without sums across a vector.
inline constexpr int64_t kSlotUnit = 16;  // slots are a multiple of it
enum class CacheElement : uint8_t { kF32, kF16 };
struct AttendArgs {
  const float* q = nullptr;
  int64_t q_stride = 0;
  const float* k = nullptr;
  int64_t k_stride = 0;
  const float* v = nullptr;
  int64_t v_stride = 0;
  float* output = nullptr;
  int64_t output_stride = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t value_dim = 0;
  float scale = 1;
  float softcap = 0;
  int64_t window = 0;
  bool causal = true;
  const float* query_scales = nullptr;  // [T]; null: ones
  const float* sinks = nullptr;         // [heads]: joins the softmax, mixes nothing; null: none
  const float* slopes =
      nullptr;  // [heads]: slope * (j - own position) is added to the scaled score; null: none

  std::byte* pool = nullptr;  // this layer's part of page 0
  int64_t page_bytes = 0;     // from page to page
  int64_t page_positions = 0;
  int64_t slots = 0;  // page_positions rounded up to kSlotUnit
  CacheElement element = CacheElement::kF32;
};
// Tokens of one sequence.
struct AttendSequence {
  const int32_t* pages = nullptr;
  int64_t first_token = 0;  // row of its first token in the step
  int64_t tokens = 0;
  int64_t past = 0;
};

// sequence_args.h
struct ConvArgs;
struct ShiftArgs;
struct WkvArgs;
struct SelectiveScanArgs;
struct HeadScanArgs;
struct DeltaArgs;
struct DeltaInputArgs;
struct BlockScoresArgs;
struct DeltaBlockArgs;
struct ScanBlockArgs;
struct LatentSoftmaxArgs;
struct LatentMixArgs;

struct KernelTable {
  const char* name = nullptr;         // as TESSERA_ISA spells it
  const char* description = nullptr;  // "AVX2 with FMA and F16C"

  void (*norm)(const NormArgs& args, int64_t first, int64_t last) = nullptr;
  void (*rope)(const RopeArgs& args, int64_t first, int64_t last) = nullptr;
  void (*activate)(const ActivateArgs& args, int64_t first, int64_t last) = nullptr;
  void (*clamp)(const ClampArgs& args, int64_t first, int64_t last) = nullptr;
  void (*sparsify)(const SparsifyArgs& args, int64_t first, int64_t last) = nullptr;
  void (*sigmoid_gate)(const SigmoidGateArgs& args, int64_t first, int64_t last) = nullptr;
  void (*combine)(const CombineArgs& args, int64_t first, int64_t last) = nullptr;
  void (*scale_logits)(const ScaleLogitsArgs& args, int64_t first, int64_t last) = nullptr;
  void (*scale)(float* values, int64_t count, float factor) = nullptr;
  void (*add)(float* values, const float* others, int64_t count) = nullptr;
  // values += factor * others
  void (*add_scaled)(float* values, const float* others, float factor, int64_t count) = nullptr;
  // gate = min(gate, limit), up = clamp(up, -limit, limit) + offset (limit 0: none); gate may be null
  void (*limit_gated)(float* gate, float* up, float limit, float offset, int64_t count) = nullptr;

  // Ops that walk along a sequence: channels, columns or heads [first, last) of one sequence (sequence_args.h).
  void (*causal_conv)(const ConvArgs& args, int64_t first, int64_t last) = nullptr;
  void (*token_shift)(const ShiftArgs& args, int64_t first, int64_t last) = nullptr;
  void (*wkv)(const WkvArgs& args, int64_t first, int64_t last) = nullptr;
  void (*selective_scan)(const SelectiveScanArgs& args, int64_t first, int64_t last) = nullptr;
  void (*head_scan)(const HeadScanArgs& args, int64_t first, int64_t last) = nullptr;
  void (*delta_inputs)(const DeltaInputArgs& args, int64_t first, int64_t last) = nullptr;  // tokens
  void (*delta_rule)(const DeltaArgs& args, int64_t first, int64_t last) = nullptr;  // columns of a head

  // The same by blocks of kBlockTokens tokens: scores inside a block first, then columns of a head, or heads.
  void (*block_scores)(const BlockScoresArgs& args) = nullptr;
  void (*delta_rule_blocked)(const DeltaArgs& args, const DeltaBlockArgs& block, int64_t first,
                             int64_t last) = nullptr;
  void (*head_scan_blocked)(const HeadScanArgs& args, const ScanBlockArgs& block, int64_t first,
                            int64_t last) = nullptr;

  // Latent attention: a step of the running softmax, and the mix that follows it.
  void (*latent_softmax)(const LatentSoftmaxArgs& args) = nullptr;
  void (*latent_mix)(const LatentMixArgs& args) = nullptr;

  // Writes keys and values of tokens [first, last) of the sequence, one kv head.
  void (*store_kv)(const AttendArgs& args, const AttendSequence& sequence, int64_t kv_head, int64_t first,
                   int64_t last) = nullptr;
  // Attention of tokens [first, last) of the sequence for the query heads of one kv head. scratch holds
  // attend_scratch(...) floats.
  void (*attend)(const AttendArgs& args, const AttendSequence& sequence, int64_t kv_head, int64_t first,
                 int64_t last, float* scratch) = nullptr;

  void (*quantise_int8)(const float* x, int64_t x_stride, int64_t columns, const Int8Activations& out,
                        int64_t first, int64_t last) = nullptr;
  int64_t tile_rows = 0;
  void (*int8_tile)(const Int8TileArgs& args) = nullptr;
  void (*int8_tile_halves)(const Int8TileArgs& args) = nullptr;  // for formats with int8_halves

  // Null without bfloat16 instructions.
  void (*to_bf16)(const float* x, int64_t count, uint16_t* out) = nullptr;
  void (*bf16_dot)(const Bf16DotArgs& args) = nullptr;

  FormatKernels plain[24];  // by DType
  FormatKernels block[64];  // by FormatKind

  [[nodiscard]] const FormatKernels& format(const Format& f) const {
    return f.is_plain() ? plain[static_cast<size_t>(f.element)] : block[static_cast<size_t>(f.kind)];
  }
};

// Floats of scratch that `attend` needs for `queries` = tokens * heads per kv head.
inline constexpr int64_t kKeyUnits = 4;  // slot units per step of the running softmax
[[nodiscard]] constexpr int64_t attend_scratch(int64_t queries, int64_t head_dim, int64_t value_dim) {
  return queries * (head_dim + value_dim + kKeyUnits * kSlotUnit + 3) + 64;
}

// Filled from outside: even a constructor compiled for a newer processor must not be linked into general code.
namespace portable {
void fill_kernel_table(KernelTable& table);
}
namespace baseline {
void fill_kernel_table(KernelTable& table);
}
namespace avx2 {
void fill_kernel_table(KernelTable& table);
}
namespace avx512 {
void fill_kernel_table(KernelTable& table);
}

}  // namespace tessera::cpu
