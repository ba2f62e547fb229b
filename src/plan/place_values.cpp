// The arena: a value lives from the op that first writes it to the last that reads it; places are handed out
// first-fit, in units of floats per row, so that one layout serves every number of tokens. An op's outputs
// never lie on its inputs unless it works in place on the same value.
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/checked_math.h"
#include "plan/plan_builder.h"

namespace tessera {
namespace {

constexpr int64_t kAlignment = 16;  // floats: 64 bytes

struct Range {
  int64_t begin;
  int64_t end;
};

class Arena {
 public:
  int64_t take(int64_t width) {
    const auto size = static_cast<int64_t>(round_up(static_cast<uint64_t>(width), kAlignment));
    int64_t begin = 0;
    size_t position = 0;
    while (position < used_.size() && used_[position].begin - begin < size) begin = used_[position++].end;
    used_.insert(used_.begin() + static_cast<std::ptrdiff_t>(position), Range{begin, begin + size});
    high_water_ = std::max(high_water_, begin + size);
    return begin;
  }

  void give_back(int64_t begin) {
    const auto it =
        std::find_if(used_.begin(), used_.end(), [&](const Range& range) { return range.begin == begin; });
    CHECK(it != used_.end(), "nothing lies at {}", begin);
    used_.erase(it);
  }

  [[nodiscard]] int64_t high_water() const { return high_water_; }

 private:
  std::vector<Range> used_;  // sorted
  int64_t high_water_ = 0;
};

}  // namespace

void place_values(Plan& plan) {
  const auto count = plan.values.size();
  std::vector<int> first(count, -1);
  std::vector<int> last(count, -1);
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    const OpSlices slices = op_slices(plan.ops[i]);
    for (const Slice& slice : slices.writes) {
      auto& begin = first[static_cast<size_t>(slice.value)];
      if (begin < 0) begin = static_cast<int>(i);
      last[static_cast<size_t>(slice.value)] = static_cast<int>(i);
    }
    for (const Slice& slice : slices.reads) {
      CHECK(first[static_cast<size_t>(slice.value)] >= 0, "{} is read before it is written",
            plan.values[static_cast<size_t>(slice.value)].name);
      last[static_cast<size_t>(slice.value)] = static_cast<int>(i);
    }
  }
  const int end = static_cast<int>(plan.ops.size());
  last[static_cast<size_t>(plan.logits)] = end;
  for (const NamedValue& hidden : plan.hidden) last[static_cast<size_t>(hidden.value)] = end;

  Arena arenas[2];
  for (int i = 0; i < end; ++i) {
    for (size_t v = 0; v < count; ++v)
      if (first[v] == i)
        plan.values[v].offset = arenas[static_cast<size_t>(plan.values[v].rows)].take(plan.values[v].width);
    for (size_t v = 0; v < count; ++v)
      if (last[v] == i) arenas[static_cast<size_t>(plan.values[v].rows)].give_back(plan.values[v].offset);
  }
  plan.token_arena = arenas[static_cast<size_t>(RowSymbol::kTokens)].high_water();
  plan.output_arena = arenas[static_cast<size_t>(RowSymbol::kOutputs)].high_water();
}

}  // namespace tessera
