// A trie over bytes that maps strings to ids: the longest match of added tokens, and all the pieces that start
// at a position for the unigram model. Edges lie in one open-addressing table.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tessera {

class ByteTrie {
 public:
  static constexpr uint32_t kRoot = 0;
  static constexpr uint32_t kNoNode = 0xffffffffu;
  static constexpr int32_t kNoValue = -1;

  // An empty string is ignored. A string added twice keeps its last value.
  void add(std::string_view bytes, int32_t value);
  [[nodiscard]] bool empty() const { return values_.size() <= 1; }

  [[nodiscard]] uint32_t step(uint32_t node, unsigned char byte) const {
    if (node == kRoot) return root_[byte];
    const uint64_t key = static_cast<uint64_t>(node) << 8 | byte;
    for (size_t at = slot_of(key);; at = (at + 1) & mask_) {
      if (keys_[at] == key) return nodes_[at];
      if (keys_[at] == kFree) return kNoNode;
    }
  }
  [[nodiscard]] int32_t value(uint32_t node) const { return values_[node]; }

  // The longest string of the trie that `text` starts with, from `from`: its length (0: none) and value.
  struct Match {
    size_t length = 0;
    int32_t value = kNoValue;
  };
  [[nodiscard]] Match longest(std::string_view text, size_t from) const;

  ByteTrie();

 private:
  static constexpr uint64_t kFree = ~0ull;
  [[nodiscard]] size_t slot_of(uint64_t key) const { return (key * 0x9e3779b97f4a7c15ull >> shift_) & mask_; }
  void grow();
  std::vector<uint32_t> root_;
  std::vector<uint64_t> keys_;
  std::vector<uint32_t> nodes_;
  std::vector<int32_t> values_;  // per node
  size_t edges_ = 0;
  size_t mask_ = 0;
  int shift_ = 0;
};

}  // namespace tessera
