#include "tools/copy_bandwidth.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "tensor/weight.h"

namespace tessera {

double copy_bandwidth(ThreadPool& threads) {
  constexpr size_t kPerBuffer = size_t{256} << 20;
  constexpr int kPasses = 8;
  Buffer from(kPerBuffer);
  Buffer to(kPerBuffer);
  const auto count = static_cast<size_t>(threads.threads());
  const size_t part = kPerBuffer / count / 64 * 64;
  // Every thread touches its own part first, so that pages lie near it and no pass pays for making them.
  threads.run(threads.threads(), [&](int64_t index, int) {
    std::memset(from.data() + static_cast<size_t>(index) * part, 1, part);
    std::memset(to.data() + static_cast<size_t>(index) * part, 2, part);
  });
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    threads.run(threads.threads(), [&](int64_t index, int) {
      const size_t offset = static_cast<size_t>(index) * part;
      std::memcpy(to.data() + offset, from.data() + offset, part);
    });
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, 2.0 * static_cast<double>(part * count) / seconds);
  }
  return best;
}

}  // namespace tessera
