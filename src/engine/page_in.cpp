#include "engine/page_in.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <span>
#include <vector>

namespace tessera {
namespace {

constexpr uint64_t kChunk = uint64_t{8} << 20;  // between two reports

uint64_t page_size() {
  return static_cast<uint64_t>(std::max(4096L, sysconf(_SC_PAGESIZE)));
}

// The address of the page that `data` lies in.
std::byte* page_start(const std::byte* data) {
  // mincore and madvise want a pointer to non-const and change nothing.
  auto* mutable_data = const_cast<std::byte*>(data);
  return mutable_data - reinterpret_cast<uintptr_t>(data) % page_size();
}

// Bytes that are not in memory now, as far as the system says.
uint64_t missing_bytes(std::span<const std::byte> memory) {
  std::byte* start = page_start(memory.data());
  const auto length = static_cast<uint64_t>(memory.data() + memory.size() - start);
  const uint64_t page = page_size();
  std::vector<unsigned char> resident((length + page - 1) / page);
  if (mincore(start, length, resident.data()) != 0) return 0;
  const auto missing =
      std::count_if(resident.begin(), resident.end(), [](unsigned char flags) { return (flags & 1u) == 0; });
  return static_cast<uint64_t>(missing) * page;
}

// The part of every file that holds tensors.
std::vector<std::span<const std::byte>> mapped_ranges(const Checkpoint& checkpoint) {
  std::map<int, std::span<const std::byte>> ranges;
  for (const TensorEntry& tensor : checkpoint.tensors()) {
    if (tensor.bytes.empty()) continue;
    auto& range = ranges.try_emplace(tensor.file, tensor.bytes).first->second;
    const std::byte* first = std::min(range.data(), tensor.bytes.data());
    const std::byte* last = std::max(range.data() + range.size(), tensor.bytes.data() + tensor.bytes.size());
    range = {first, static_cast<size_t>(last - first)};
  }
  std::vector<std::span<const std::byte>> result;
  for (const auto& [file, range] : ranges) result.push_back(range);
  return result;
}

}  // namespace

void page_in(const Checkpoint& checkpoint, const PageInProgress& progress) {
  const std::vector<std::span<const std::byte>> ranges = mapped_ranges(checkpoint);
  uint64_t total = 0;
  uint64_t missing = 0;
  for (const auto& range : ranges) {
    total += range.size();
    missing += missing_bytes(range);
  }
  if (missing < total / 64) return;  // the first step may as well fault on the rest
  uint64_t done = 0;
  const uint64_t page = page_size();
  for (const auto& range : ranges) {
    for (uint64_t offset = 0; offset < range.size(); offset += kChunk) {
      const uint64_t end = std::min<uint64_t>(range.size(), offset + kChunk);
      std::byte* start = page_start(range.data() + offset);
      // The next part as well, so that the disk reads while this one is touched.
      const uint64_t ahead = std::min<uint64_t>(range.size(), end + kChunk);
      (void)madvise(start, static_cast<size_t>(range.data() + ahead - start), MADV_WILLNEED);
      for (uint64_t at = offset; at < end; at += page) {
        const volatile std::byte* touched = range.data() + at;
        (void)*touched;
      }
      done += end - offset;
      progress(done, total);
    }
  }
}

}  // namespace tessera
