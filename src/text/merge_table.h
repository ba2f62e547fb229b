// MergeTable: (left id, right id) to the rank of the merge rule and the id of the result. Open addressing, 16
// bytes an entry, because encoding spends most of its time here.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera {

class MergeTable {
 public:
  static constexpr uint32_t kNoRank = 0xffffffffu;
  struct Rule {
    uint32_t rank = kNoRank;
    int32_t result = -1;
  };

  void reserve(size_t rules) {
    const size_t wanted = std::bit_ceil(rules * 4 / 3 + 16);
    if (wanted > entries_.size()) rehash(wanted);
  }

  // A pair given twice keeps its last rule.
  void add(int32_t left, int32_t right, Rule rule) {
    if ((size_ + 1) * 4 > entries_.size() * 3) rehash(entries_.size() * 2);
    const uint64_t key = key_of(left, right);
    size_t at = slot_of(key);
    while (entries_[at].key != kFree && entries_[at].key != key) at = (at + 1) & mask_;
    if (entries_[at].key == kFree) ++size_;
    entries_[at] = {key, rule};
  }

  [[nodiscard]] Rule find(int32_t left, int32_t right) const {
    const uint64_t key = key_of(left, right);
    for (size_t at = slot_of(key);; at = (at + 1) & mask_) {
      const Entry& entry = entries_[at];
      if (entry.key == key) return entry.rule;
      if (entry.key == kFree) return {};
    }
  }

  [[nodiscard]] size_t size() const { return size_; }
  MergeTable() { rehash(16); }

 private:
  static constexpr uint64_t kFree = ~0ull;
  struct Entry {
    uint64_t key = kFree;
    Rule rule;
  };
  static uint64_t key_of(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  [[nodiscard]] size_t slot_of(uint64_t key) const {
    key ^= key >> 32;
    return (key * 0x9e3779b97f4a7c15ull) >> shift_;
  }
  void rehash(size_t slots) {
    std::vector<Entry> old = std::move(entries_);
    entries_.assign(slots, Entry{});
    mask_ = slots - 1;
    shift_ = 64 - std::countr_zero(slots);
    for (const Entry& entry : old) {
      if (entry.key == kFree) continue;
      size_t at = slot_of(entry.key);
      while (entries_[at].key != kFree) at = (at + 1) & mask_;
      entries_[at] = entry;
    }
  }
  std::vector<Entry> entries_;
  size_t size_ = 0;
  size_t mask_ = 0;
  int shift_ = 0;
};

}  // namespace tessera
