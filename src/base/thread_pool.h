// A persistent pool of threads for data-parallel loops. The caller is one of the workers, so a pool of one
// thread starts none. Work is split by index and never by timing, so that results do not depend on which
// thread ran what.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace tessera {

class ThreadPool {
 public:
  // threads >= 1. Workers spin for a short while between loops (decode runs hundreds of small loops a token),
  // then sleep.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int threads() const { return threads_; }

  // Runs body(index, thread) for every index in [0, count), each once, and returns when all are done. Indices
  // are taken from a shared counter (dynamic balance). Not reentrant: a body must not call run on the same
  // pool.
  void run(int64_t count, const std::function<void(int64_t index, int thread)>& body);

 private:
  struct Shared;
  void worker(int thread);
  int threads_;
  std::unique_ptr<Shared> shared_;
};

// What the process may use: the affinity mask and the container's CPU quota (cgroup v1 and v2), at least 1.
[[nodiscard]] int available_processors();

}  // namespace tessera
