// See byte_trie.h.
#include "text/byte_trie.h"

#include <bit>

namespace tessera {

ByteTrie::ByteTrie() : root_(256, kNoNode), values_(1, kNoValue) {
  grow();
}

void ByteTrie::grow() {
  const size_t size = keys_.empty() ? 64 : keys_.size() * 2;
  std::vector<uint64_t> keys(size, kFree);
  std::vector<uint32_t> nodes(size, kNoNode);
  mask_ = size - 1;
  shift_ = 64 - std::countr_zero(size);
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (keys_[i] == kFree) continue;
    size_t at = slot_of(keys_[i]);
    while (keys[at] != kFree) at = (at + 1) & mask_;
    keys[at] = keys_[i];
    nodes[at] = nodes_[i];
  }
  keys_ = std::move(keys);
  nodes_ = std::move(nodes);
}

void ByteTrie::add(std::string_view bytes, int32_t value) {
  if (bytes.empty()) return;
  uint32_t node = kRoot;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    uint32_t next = step(node, byte);
    if (next == kNoNode) {
      next = static_cast<uint32_t>(values_.size());
      values_.push_back(kNoValue);
      if (node == kRoot) {
        root_[byte] = next;
      } else {
        if ((edges_ + 1) * 2 > keys_.size()) grow();
        const uint64_t key = static_cast<uint64_t>(node) << 8 | byte;
        size_t at = slot_of(key);
        while (keys_[at] != kFree) at = (at + 1) & mask_;
        keys_[at] = key;
        nodes_[at] = next;
        ++edges_;
      }
    }
    node = next;
  }
  values_[node] = value;
}

ByteTrie::Match ByteTrie::longest(std::string_view text, size_t from) const {
  Match best;
  uint32_t node = kRoot;
  for (size_t i = from; i < text.size(); ++i) {
    node = step(node, static_cast<unsigned char>(text[i]));
    if (node == kNoNode) break;
    if (values_[node] != kNoValue) best = {i + 1 - from, values_[node]};
  }
  return best;
}

}  // namespace tessera
