// What a process may still take: the machine's available memory, and the container's limit (cgroup v2 and
// v1).
#include <algorithm>
#include <fstream>
#include <string>

#include "engine/state_pool.h"

namespace tessera {
namespace {

// A file that holds one number; 0 when it does not ("max", or no such file).
uint64_t read_number(const char* path) {
  std::ifstream file(path);
  uint64_t value = 0;
  return file >> value ? value : 0;
}

// The value of a "key value" line. Files that are only cached count as used in a container, but can be
// dropped.
uint64_t read_statistic(const char* path, const char* wanted) {
  std::ifstream file(path);
  std::string key;
  uint64_t value = 0;
  while (file >> key >> value)
    if (key == wanted) return value;
  return 0;
}

}  // namespace

uint64_t available_memory() {
  uint64_t available = 0;
  std::ifstream information("/proc/meminfo");
  std::string key;
  uint64_t kilobytes = 0;
  std::string rest;
  while (information >> key >> kilobytes && std::getline(information, rest)) {
    if (key == "MemAvailable:") {
      available = kilobytes * 1024;
      break;
    }
  }
  const auto limit_by = [&available](uint64_t limit, uint64_t used, uint64_t cached) {
    if (limit == 0 || limit >= uint64_t{1} << 60) return;  // version 1 writes a huge number for "none"
    used -= std::min(used, cached);
    const uint64_t left = limit > used ? limit - used : 0;
    available = available == 0 ? left : std::min(available, left);
  };
  limit_by(read_number("/sys/fs/cgroup/memory.max"), read_number("/sys/fs/cgroup/memory.current"),
           read_statistic("/sys/fs/cgroup/memory.stat", "inactive_file"));
  limit_by(read_number("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
           read_number("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
           read_statistic("/sys/fs/cgroup/memory/memory.stat", "total_inactive_file"));
  return available;
}

}  // namespace tessera
