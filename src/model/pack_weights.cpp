#include "model/pack_weights.h"

#include <algorithm>
#include <mutex>

#include "base/checked_math.h"
#include "formats/format_info.h"

namespace tessera {
namespace {

constexpr int64_t kValuesPerTask = 1 << 16;

struct Piece {
  const Weight* part;
  int64_t first;  // row of the part
  int64_t rows;
  int64_t out_row;
};

std::vector<Piece> cut(std::span<const Weight> parts) {
  std::vector<Piece> pieces;
  int64_t row = 0;
  for (const Weight& part : parts) {
    const int64_t step = std::max<int64_t>(1, kValuesPerTask / std::max<int64_t>(1, part.columns));
    for (int64_t first = 0; first < part.rows; first += step)
      pieces.push_back({&part, first, std::min(step, part.rows - first), row + first});
    row += part.rows;
  }
  return pieces;
}

int64_t values_in(const BoundSlot& slot) {
  int64_t count = 0;
  for (const Weight& part : slot.parts) count += part.rows * part.columns;
  return count;
}

Status check_unpacked(const BoundSlot& slot, const Format& format) {
  for (const Weight& part : slot.parts)
    if (part.format != format && !part.format.is_plain())
      return fail(ErrorCode::kInvalidArgument,
                  "precision: {} is {} in the file: only unquantised weights are packed while loading, to {}",
                  slot.source, format_name(part.format), format_name(format));
  return {};
}

}  // namespace

Status encode_matrices(std::span<const Weight> parts, const Format& format, const float* importance,
                       ThreadPool& threads, const Checkpoint* from, std::byte* out) {
  if (parts.empty()) return {};
  const int64_t columns = parts[0].columns;
  const int64_t row_bytes = format_row_bytes(format, columns);
  const std::vector<Piece> pieces = cut(parts);
  std::vector<std::vector<float>> rows(static_cast<size_t>(threads.threads()));
  std::mutex mutex;
  Status status;
  threads.run(static_cast<int64_t>(pieces.size()), [&](int64_t index, int thread) {
    const Piece& piece = pieces[static_cast<size_t>(index)];
    std::vector<float>& values = rows[static_cast<size_t>(thread)];
    values.resize(
        static_cast<size_t>(std::max<int64_t>(piece.rows * columns, static_cast<int64_t>(values.size()))));
    for (int64_t r = 0; r < piece.rows; ++r)
      decode_row(*piece.part, piece.first + r, 0, columns, values.data() + r * columns);
    Status encoded =
        encode_rows(format, values.data(), piece.rows, columns, out + piece.out_row * row_bytes, importance);
    if (!encoded) {
      const std::lock_guard lock(mutex);
      if (status) status = with_context(encoded.error(), fmt::format("rows from {}", piece.out_row));
    }
    if (from == nullptr) return;
    const Plane& plane = piece.part->planes[0];
    from->release({plane.row(piece.first), static_cast<size_t>(piece.rows * plane.row_stride)});
  });
  return status;
}

Status pack_weights(const ModelSpec& spec, const PrecisionPolicy& policy, ThreadPool& threads,
                    const Checkpoint* from, const PackProgress& progress, BoundWeights& weights) {
  std::vector<Slot> slots;
  for (const BoundSlot& bound : weights.slots()) slots.push_back(bound.slot);
  TESSERA_TRY_STATUS(policy.check(spec, slots));
  std::vector<std::pair<int, Format>> work;
  uint64_t total = 0;
  for (size_t i = 0; i < slots.size(); ++i) {
    const BoundSlot& bound = weights.at(static_cast<int>(i));
    TESSERA_TRY(const std::optional<Format> format, policy.format_of(slots[i], spec));
    if (!format) continue;
    TESSERA_TRY_STATUS(check_unpacked(bound, *format));
    const bool done = std::all_of(bound.parts.begin(), bound.parts.end(),
                                  [&](const Weight& part) { return part.format == *format; });
    if (done) continue;
    work.emplace_back(static_cast<int>(i), *format);
    total += static_cast<uint64_t>(values_in(bound));
  }
  uint64_t done = 0;
  for (const auto& [index, format] : work) {
    const BoundSlot& bound = weights.at(index);
    const int64_t row_bytes = format_row_bytes(format, bound.columns());
    const int64_t values = values_in(bound);
    Buffer buffer(static_cast<size_t>(values / std::max<int64_t>(1, bound.columns()) * row_bytes));
    if (Status status = encode_matrices(bound.parts, format, nullptr, threads, from, buffer.data()); !status)
      return with_context(status.error(), fmt::format("precision: {}", bound.source));
    std::vector<Weight> packed;
    int64_t row = 0;
    for (const Weight& part : bound.parts) {
      packed.push_back(
          {format, part.rows, part.columns, {Plane{buffer.data() + row * row_bytes, row_bytes}}});
      row += part.rows;
    }
    weights.replace_parts(index, std::move(packed));
    weights.own(std::move(buffer));
    done += static_cast<uint64_t>(values);
    if (progress) progress(done, total);
  }
  return {};
}

}  // namespace tessera
