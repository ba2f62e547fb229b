// Nearest points of the lattice formats' tables, for their encoders. The space of magnitudes is cut into cells, one per
// combination of levels; for each cell the points nearest to its middle are listed once, and only those are tried.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tessera {

class LatticeSearch {
 public:
  static constexpr int kMostDims = 8;

  // Points of `dims` (4 or 8) coordinates, packed `bits` bits each into `codes`; `levels` are the values of the level numbers, rising.
  LatticeSearch(std::span<const uint16_t> codes, int dims, int bits, std::span<const float> levels);

  [[nodiscard]] int dims() const { return dims_; }
  [[nodiscard]] float smallest_level() const { return levels_.front(); }
  [[nodiscard]] float largest_level() const { return levels_.back(); }
  // The coordinates of a point.
  [[nodiscard]] const float* point(int index) const { return &points_[static_cast<size_t>(index * dims_)]; }

  struct Nearest {
    int point;
    float error;
  };
  // The point that makes sum of weights[i] * (values[i] - scale * point[i])^2 smallest; scale > 0. Values may be negative:
  // coordinates are not.
  [[nodiscard]] Nearest nearest(const float* values, const float* weights, float scale) const;

 private:
  template <int quads>
  [[nodiscard]] Nearest nearest_of(const uint16_t* list, const float* values, const float* weights,
                                   float scale) const;
  [[nodiscard]] int cell_of(const float* values, float inverse_scale) const;

  int dims_;
  std::vector<float> levels_;
  std::vector<float> points_;
  std::vector<uint16_t> lists_;  // kListed points per cell
};

}  // namespace tessera
