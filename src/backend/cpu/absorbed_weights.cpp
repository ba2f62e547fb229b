#include "backend/cpu/absorbed_weights.h"

#include <algorithm>
#include <cstring>

#include "base/half.h"
#include "formats/format_info.h"

namespace tessera::cpu {
namespace {

// The element type of copies: that of the weights, when they have one.
DType copy_type(const BoundSlot& kv_b, const CompileOptions& options) {
  const Format& first = kv_b.parts.front().format;
  const bool same =
      std::ranges::all_of(kv_b.parts, [&first](const Weight& part) { return part.format == first; });
  if (same && first.is_plain()) return first.element;
  return options.activations == ActivationType::kExact ? DType::kF32 : DType::kBF16;
}

bool values_need_copies(const BoundSlot& kv_b, const KernelTable& kernels) {
  return std::ranges::any_of(kv_b.parts, [&kernels](const Weight& part) {
    return kernels.format(part.format).float_dot == nullptr;
  });
}

int64_t element_bytes(DType type) {
  return type == DType::kF32 ? 4 : 2;
}

struct CopySizes {
  uint64_t keys = 0;
  uint64_t values = 0;
};
CopySizes copy_sizes(const MlaAttendOp& op, const BoundSlot& kv_b, const CompileOptions& options,
                     const KernelTable& kernels) {
  if (options.latent_form == LatentForm::kExpanded) return {};
  const int64_t each = op.heads * op.latent.width * element_bytes(copy_type(kv_b, options));
  return {static_cast<uint64_t>(each * op.nope_dim),
          values_need_copies(kv_b, kernels) ? static_cast<uint64_t>(each * op.value_dim) : 0};
}

void put(DType type, std::byte* place, int64_t index, float value) {
  if (type == DType::kF32) {
    std::memcpy(place + 4 * index, &value, 4);
    return;
  }
  const uint16_t bits = type == DType::kF16 ? to_half(value).bits : to_bfloat16(value).bits;
  std::memcpy(place + 2 * index, &bits, 2);
}

void decode_rows(const BoundSlot& slot, int64_t first, int64_t count, float* out) {
  const Weight* part = slot.parts.data();
  for (int64_t row = 0; row < count; ++row, ++first) {
    while (first >= part->rows) first -= (part++)->rows;
    decode_row(*part, first, 0, part->columns, out + row * part->columns);
  }
}

}  // namespace

uint64_t AbsorbedWeights::bytes(const Plan& plan, const BoundWeights& weights, const CompileOptions& options,
                                const KernelTable& kernels) {
  uint64_t total = 0;
  for (const Op& op : plan.ops) {
    const auto* mla = std::get_if<MlaAttendOp>(&op);
    if (mla == nullptr) continue;
    const CopySizes sizes = copy_sizes(*mla, weights.at(mla->kv_b), options, kernels);
    total += sizes.keys + sizes.values;
  }
  return total;
}

AbsorbedWeights::AbsorbedWeights(const Plan& plan, const BoundWeights& weights, const CompileOptions& options,
                                 const KernelTable& kernels, ThreadPool& pool)
    : kernels_(kernels), layers_(plan.ops.size()) {
  if (options.latent_form == LatentForm::kExpanded) return;
  std::vector<std::vector<float>> rows(static_cast<size_t>(pool.threads()));
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    const auto* mla = std::get_if<MlaAttendOp>(&plan.ops[i]);
    if (mla == nullptr) continue;
    Layer& layer = layers_[i];
    layer.op = mla;
    layer.kv_b = &weights.at(mla->kv_b);
    layer.type = copy_type(*layer.kv_b, options);
    const CopySizes sizes = copy_sizes(*mla, *layer.kv_b, options, kernels);
    layer.keys = Buffer(sizes.keys);
    layer.values = Buffer(sizes.values);
    const auto task = [&](int64_t head, int thread) {
      std::vector<float>& scratch = rows[static_cast<size_t>(thread)];
      scratch.resize(static_cast<size_t>(std::max(mla->nope_dim, mla->value_dim) * mla->latent.width));
      fill(layer, head, scratch.data());
    };
    pool.run(mla->heads, [&task](int64_t head, int thread) { task(head, thread); });
  }
}

void AbsorbedWeights::fill(Layer& layer, int64_t head, float* rows) const {
  const MlaAttendOp& op = *layer.op;
  const int64_t lora = op.latent.width;
  const int64_t first = head * (op.nope_dim + op.value_dim);
  decode_rows(*layer.kv_b, first, op.nope_dim, rows);
  for (int64_t l = 0; l < lora; ++l)
    for (int64_t n = 0; n < op.nope_dim; ++n)
      put(layer.type, layer.keys.data(), (head * lora + l) * op.nope_dim + n, rows[n * lora + l]);
  if (layer.values.size() == 0) return;
  decode_rows(*layer.kv_b, first + op.nope_dim, op.value_dim, rows);
  for (int64_t i = 0; i < op.value_dim * lora; ++i)
    put(layer.type, layer.values.data(), head * op.value_dim * lora + i, rows[i]);
}

void AbsorbedWeights::absorb(size_t op, int64_t head, const float* x, int64_t x_stride, int64_t tokens,
                             float* out, int64_t out_stride) const {
  const Layer& layer = layers_[op];
  const int64_t row_bytes = layer.op->nope_dim * element_bytes(layer.type);
  const int64_t lora = layer.op->latent.width;
  FloatDotArgs args;
  args.weights = layer.keys.data() + head * lora * row_bytes;
  args.row_stride = row_bytes;
  args.rows = lora;
  args.columns = layer.op->nope_dim;
  args.x = x;
  args.x_stride = x_stride;
  args.tokens = tokens;
  args.out = out;
  args.out_stride = out_stride;
  kernels_.plain[static_cast<size_t>(layer.type)].float_dot(args);
}

void AbsorbedWeights::expand(size_t op, int64_t head, const float* x, int64_t x_stride, int64_t tokens,
                             float* out, int64_t out_stride) const {
  const Layer& layer = layers_[op];
  const int64_t lora = layer.op->latent.width;
  const int64_t rows = layer.op->value_dim;
  FloatDotArgs args;
  args.columns = lora;
  args.x = x;
  args.x_stride = x_stride;
  args.tokens = tokens;
  args.out_stride = out_stride;
  if (layer.values.size() > 0) {
    args.row_stride = lora * element_bytes(layer.type);
    args.weights = layer.values.data() + head * rows * args.row_stride;
    args.rows = rows;
    args.out = out;
    kernels_.plain[static_cast<size_t>(layer.type)].float_dot(args);
    return;
  }
  int64_t first = head * (layer.op->nope_dim + rows) + layer.op->nope_dim;
  const Weight* part = layer.kv_b->parts.data();
  for (int64_t done = 0; done < rows;) {
    while (first >= part->rows) first -= (part++)->rows;
    args.rows = std::min(rows - done, part->rows - first);
    args.weights = part->planes[0].row(first);
    args.row_stride = part->planes[0].row_stride;
    args.out = out + done;
    kernels_.format(part->format).float_dot(args);
    done += args.rows;
    first += args.rows;
  }
}

}  // namespace tessera::cpu
