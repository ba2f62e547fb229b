#include "tools/verify_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/checked_math.h"
#include "formats/format_info.h"

namespace tessera {
namespace {

struct Count {
  int64_t nan = 0;
  int64_t infinite = 0;
  int64_t first = std::numeric_limits<int64_t>::max();  // row * columns + column

  void look(const float* values, int64_t count, int64_t at) {
    for (int64_t i = 0; i < count; ++i) {
      if (std::isfinite(values[i])) continue;
      ++(std::isnan(values[i]) ? nan : infinite);
      first = std::min(first, at + i);
    }
  }
  void add(const Count& other) {
    nan += other.nan;
    infinite += other.infinite;
    first = std::min(first, other.first);
  }
};

Count look_at_matrix(const Weight& weight, int64_t first_row, ThreadPool& threads) {
  constexpr int64_t kRowsPerTask = 64;
  const int64_t tasks = ceil_divide(weight.rows, kRowsPerTask);
  std::vector<Count> counts(static_cast<size_t>(tasks));
  std::vector<std::vector<float>> rows(static_cast<size_t>(threads.threads()),
                                       std::vector<float>(static_cast<size_t>(weight.columns)));
  threads.run(tasks, [&](int64_t task, int thread) {
    float* values = rows[static_cast<size_t>(thread)].data();
    const int64_t end = std::min(weight.rows, (task + 1) * kRowsPerTask);
    for (int64_t row = task * kRowsPerTask; row < end; ++row) {
      decode_row(weight, row, 0, weight.columns, values);
      counts[static_cast<size_t>(task)].look(values, weight.columns, (first_row + row) * weight.columns);
    }
  });
  Count sum;
  for (const Count& count : counts) sum.add(count);
  return sum;
}

}  // namespace

WeightCheck verify_weights(const BoundWeights& weights, ThreadPool& threads,
                           const std::function<void(uint64_t done, uint64_t total)>& progress) {
  WeightCheck check;
  uint64_t done = 0;
  for (const BoundSlot& slot : weights.slots()) {
    Count count;
    int64_t row = 0;
    for (const Weight& weight : slot.parts) {
      count.add(look_at_matrix(weight, row, threads));
      row += weight.rows;
    }
    count.look(slot.values.data(), static_cast<int64_t>(slot.values.size()), 0);
    check.values += slot.parts.empty() ? static_cast<int64_t>(slot.values.size()) : row * slot.columns();
    if (count.nan + count.infinite > 0) {
      const int64_t columns = std::max<int64_t>(1, slot.columns());
      check.faults.push_back({slot.slot.name, slot.source, count.nan, count.infinite, count.first / columns,
                              count.first % columns});
    }
    progress(++done, weights.slots().size());
  }
  return check;
}

}  // namespace tessera
