// Generation counter + atomic index: a loop is published by bumping the generation, workers grab indices
// until none is left.
#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"

namespace tessera {
namespace {

constexpr int kSpins = 4000;  // about 20 to 100 microseconds of pause instructions

inline void pause_instruction() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int quota_processors() {
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (v2 >> quota >> period) {
    if (quota == "max" || period <= 0) return 0;
    return std::max(1, static_cast<int>(std::floor(std::strtod(quota.c_str(), nullptr) / period)));
  }
  std::ifstream v1_quota("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream v1_period("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double microseconds = 0;
  if (v1_quota >> microseconds && v1_period >> period && microseconds > 0 && period > 0)
    return std::max(1, static_cast<int>(std::floor(microseconds / period)));
  return 0;
}

}  // namespace

struct ThreadPool::Shared {
  std::mutex mutex;
  std::condition_variable wake;
  std::atomic<uint64_t> generation{0};
  std::atomic<int64_t> next{0};
  std::atomic<int> running{0};
  std::atomic<bool> stop{false};
  int64_t count = 0;
  const std::function<void(int64_t, int)>* body = nullptr;
  std::vector<std::thread> workers;
};

ThreadPool::ThreadPool(int threads) : threads_(threads), shared_(std::make_unique<Shared>()) {
  CHECK(threads >= 1, "{} threads", threads);
  for (int thread = 1; thread < threads; ++thread)
    shared_->workers.emplace_back([this, thread] { worker(thread); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stop.store(true);
    shared_->generation.fetch_add(1);
  }
  shared_->wake.notify_all();
  for (auto& thread : shared_->workers) thread.join();
}

void ThreadPool::worker(int thread) {
  Shared& shared = *shared_;
  uint64_t seen = 0;
  while (true) {
    for (int spin = 0; spin < kSpins && shared.generation.load(std::memory_order_acquire) == seen; ++spin)
      pause_instruction();
    if (shared.generation.load(std::memory_order_acquire) == seen) {
      std::unique_lock lock(shared.mutex);
      shared.wake.wait(lock, [&] { return shared.generation.load(std::memory_order_acquire) != seen; });
    }
    seen = shared.generation.load(std::memory_order_acquire);
    if (shared.stop.load()) return;
    for (int64_t i = shared.next.fetch_add(1); i < shared.count; i = shared.next.fetch_add(1))
      (*shared.body)(i, thread);
    shared.running.fetch_sub(1, std::memory_order_acq_rel);
  }
}

void ThreadPool::run(int64_t count, const std::function<void(int64_t, int)>& body) {
  if (count <= 0) return;
  if (threads_ == 1 || count == 1) {
    for (int64_t i = 0; i < count; ++i) body(i, 0);
    return;
  }
  Shared& shared = *shared_;
  {
    const std::lock_guard lock(shared.mutex);
    shared.count = count;
    shared.body = &body;
    shared.next.store(0);
    shared.running.store(threads_ - 1);
    shared.generation.fetch_add(1, std::memory_order_release);
  }
  shared.wake.notify_all();
  for (int64_t i = shared.next.fetch_add(1); i < count; i = shared.next.fetch_add(1)) body(i, 0);
  while (shared.running.load(std::memory_order_acquire) != 0) pause_instruction();
}

int available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int processors = 0;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) processors = CPU_COUNT(&set);
  if (processors <= 0) processors = static_cast<int>(std::thread::hardware_concurrency());
  const int quota = quota_processors();
  if (quota > 0) processors = std::min(processors, quota);
  return std::max(1, processors);
}

}  // namespace tessera
