// The angle is a float32 product, as in the reference implementation: at long positions its rounding is part of the result.
#include "backend/cpu/rope_tables.h"

#include <cmath>

namespace tessera::cpu {
namespace {

// Contiguous sections: the first s0 pairs belong to axis 0, the next s1 to axis 1, ...; interleaved: pair i to axis i mod 3
// while that axis has pairs left, to time otherwise.
int axis_of(const RopeSpec& spec, int64_t pair) {
  if (spec.sections.empty()) return 0;
  const int axes = static_cast<int>(spec.sections.size());
  if (spec.sections_interleaved) {
    for (int axis = 1; axis < axes; ++axis)
      if (pair % 3 == axis && pair < spec.sections[static_cast<size_t>(axis)] * 3) return axis;
    return 0;
  }
  int64_t end = 0;
  for (int axis = 0; axis < axes; ++axis) {
    end += spec.sections[static_cast<size_t>(axis)];
    if (pair < end) return axis;
  }
  return axes - 1;
}

}  // namespace

RopeTables::RopeTables(const Plan& plan, const CompileOptions& options) {
  for (const RopeSpec& spec : plan.ropes) {
    Table table;
    table.spec = &spec;
    for (int64_t pair = 0; pair < spec.dim / 2; ++pair) table.axes.push_back(axis_of(spec, pair));
    const auto values = static_cast<size_t>(options.max_tokens * (spec.dim / 2));
    table.cos.resize(values);
    table.sin.resize(values);
    tables_.push_back(std::move(table));
  }
}

void RopeTables::prepare(const StepInput& input, ThreadPool& pool) {
  const int64_t tokens = input.sequence_offsets.back();
  const bool has_axes = static_cast<int64_t>(input.positions.size()) == 3 * tokens;
  for (Table& table : tables_) {
    const RopeSpec& spec = *table.spec;
    const int64_t pairs = spec.dim / 2;
    for (size_t s = 0; s + 1 < input.sequence_offsets.size(); ++s) {
      const int64_t length = input.rope_lengths[s];
      const int64_t key = spec.table_key(length);
      if (key != table.key || table.frequencies.empty()) {
        table.frequencies = spec.inverse_frequencies(length);
        table.key = key;
      }
      const int64_t first = input.sequence_offsets[s];
      const int64_t count = input.sequence_offsets[s + 1] - first;
      const auto turn = [&](int64_t i) {
        const int64_t t = first + i;
        for (int64_t pair = 0; pair < pairs; ++pair) {
          const int64_t axis = has_axes ? table.axes[static_cast<size_t>(pair)] : 0;
          const float angle = static_cast<float>(input.positions[static_cast<size_t>(axis * tokens + t)]) *
                              table.frequencies[static_cast<size_t>(pair)];
          const auto at = static_cast<size_t>(t * pairs + pair);
          table.cos[at] = static_cast<float>(std::cos(static_cast<double>(angle)) * spec.amplitude);
          table.sin[at] = static_cast<float>(std::sin(static_cast<double>(angle)) * spec.amplitude);
        }
      };
      if (count * pairs < 1024) {
        for (int64_t i = 0; i < count; ++i) turn(i);
      } else {
        pool.run(count, [&turn](int64_t i, int) { turn(i); });
      }
    }
  }
}

}  // namespace tessera::cpu
