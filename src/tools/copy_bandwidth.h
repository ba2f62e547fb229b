// The speed at which this machine copies memory: the measure of what a decode step, which reads every weight once,
// can reach.
#pragma once

#include "base/thread_pool.h"

namespace tessera {

// Bytes read plus bytes written per second (as the STREAM benchmark counts a copy), the best of several passes
// over buffers far larger than the caches, with all threads of the pool.
[[nodiscard]] double copy_bandwidth(ThreadPool& threads);

}  // namespace tessera
