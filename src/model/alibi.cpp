#include "model/alibi.h"

#include <cmath>

namespace tessera {

std::vector<float> alibi_slopes(int64_t heads, double scale) {
  int64_t power = 1;
  while (power * 2 <= heads) power *= 2;
  std::vector<float> slopes;
  for (int64_t i = 1; i <= power; ++i)
    slopes.push_back(
        static_cast<float>(scale * std::exp2(-8.0 * static_cast<double>(i) / static_cast<double>(power))));
  for (int64_t i = 1; static_cast<int64_t>(slopes.size()) < heads; i += 2)
    slopes.push_back(
        static_cast<float>(scale * std::exp2(-4.0 * static_cast<double>(i) / static_cast<double>(power))));
  return slopes;
}

}  // namespace tessera
