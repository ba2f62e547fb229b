#include "formats/lattice_search.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "formats/lattice_points.h"

namespace tessera {
namespace {
constexpr size_t kListed = 16;
constexpr int kNumberBits = 12;
using Quad = float __attribute__((vector_size(16)));
}  // namespace

LatticeSearch::LatticeSearch(std::span<const uint16_t> codes, int dims, int bits,
                             std::span<const float> levels)
    : dims_(dims), levels_(levels.begin(), levels.end()) {
  for (const uint16_t code : codes)
    for (int i = 0; i < dims; ++i) points_.push_back(levels[point_level(code, i, bits)]);

  size_t cells = 1;
  for (int i = 0; i < dims; ++i) cells *= levels.size();
  lists_.reserve(cells * kListed);
  std::vector<uint32_t> order(
      codes.size());  // squared distance and number of a point: levels are small integers
  for (size_t cell = 0; cell < cells; ++cell) {
    float middle[kMostDims];
    for (size_t i = 0, rest = cell; i < static_cast<size_t>(dims); ++i, rest /= levels.size())
      middle[i] = levels[rest % levels.size()];
    for (size_t p = 0; p < codes.size(); ++p) {
      const float* coordinates = point(static_cast<int>(p));
      float distance = 0;
      for (int i = 0; i < dims; ++i) distance += (coordinates[i] - middle[i]) * (coordinates[i] - middle[i]);
      order[p] = static_cast<uint32_t>(distance) << kNumberBits | static_cast<uint32_t>(p);
    }
    std::nth_element(order.begin(), order.begin() + kListed, order.end());
    for (size_t k = 0; k < kListed; ++k)
      lists_.push_back(static_cast<uint16_t>(order[k] & ((1U << kNumberBits) - 1)));
  }
}

int LatticeSearch::cell_of(const float* values, float inverse_scale) const {
  int cell = 0;
  for (int i = dims_ - 1; i >= 0; --i) {
    const float value = values[i] * inverse_scale;
    int level = 0;
    for (size_t next = 1; next < levels_.size(); ++next)
      level += 2 * value > levels_[next - 1] + levels_[next] ? 1 : 0;
    cell = cell * static_cast<int>(levels_.size()) + level;
  }
  return cell;
}

LatticeSearch::Nearest LatticeSearch::nearest(const float* values, const float* weights, float scale) const {
  const uint16_t* list = &lists_[static_cast<size_t>(cell_of(values, 1 / scale)) * kListed];
  return dims_ == 4 ? nearest_of<1>(list, values, weights, scale)
                    : nearest_of<2>(list, values, weights, scale);
}

// Points of 4 * quads coordinates, four at a time.
template <int quads>
LatticeSearch::Nearest LatticeSearch::nearest_of(const uint16_t* list, const float* values,
                                                 const float* weights, float scale) const {
  Quad value[quads];
  Quad weight[quads];
  std::memcpy(value, values, sizeof(value));
  std::memcpy(weight, weights, sizeof(weight));
  Nearest best{list[0], std::numeric_limits<float>::infinity()};
  for (size_t k = 0; k < kListed; ++k) {
    const float* coordinates = point(list[k]);
    Quad sum = {0, 0, 0, 0};
    for (int q = 0; q < quads; ++q) {
      Quad coordinate;
      std::memcpy(&coordinate, coordinates + 4 * q, sizeof(coordinate));
      const Quad difference = value[q] - scale * coordinate;
      sum += weight[q] * difference * difference;
    }
    const float error = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    if (error < best.error) best = {list[k], error};
  }
  return best;
}

}  // namespace tessera
