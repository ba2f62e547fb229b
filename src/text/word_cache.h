// WordCache: the tokens of words seen before. Bounded: when it is full it starts over, so that a long-running
// server neither grows nor keeps yesterday's words.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace tessera {

class WordCache {
 public:
  struct Token {
    int32_t id = 0;
    uint32_t length = 0;  // bytes of the word
  };
  static constexpr size_t kMaxWord = 64;  // longer words seldom come twice

  WordCache() : slots_(kSlots) {}

  // The tokens of the word, or an empty span.
  [[nodiscard]] std::span<const Token> find(std::string_view word, uint64_t hash) const {
    for (size_t at = hash & kMask;; at = (at + 1) & kMask) {
      const Slot& slot = slots_[at];
      if (slot.count == 0) return {};
      if (slot.tag == static_cast<uint32_t>(hash >> 32) && slot.length == word.size() &&
          std::memcmp(text_.data() + slot.text, word.data(), word.size()) == 0)
        return {tokens_.data() + slot.tokens, slot.count};
    }
  }

  // The word must not be in the cache; `tokens` is not empty.
  void add(std::string_view word, uint64_t hash, std::span<const Token> tokens) {
    if (word.size() > kMaxWord || tokens.empty()) return;
    if (used_ >= kSlots / 2) clear();
    size_t at = hash & kMask;
    while (slots_[at].count != 0) at = (at + 1) & kMask;
    slots_[at] = {static_cast<uint32_t>(hash >> 32), static_cast<uint32_t>(text_.size()),
                  static_cast<uint32_t>(tokens_.size()), static_cast<uint16_t>(word.size()),
                  static_cast<uint16_t>(tokens.size())};
    text_.insert(text_.end(), word.begin(), word.end());
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    ++used_;
  }

 private:
  static constexpr size_t kSlots = 1 << 17;
  static constexpr size_t kMask = kSlots - 1;
  struct Slot {
    uint32_t tag = 0;
    uint32_t text = 0;
    uint32_t tokens = 0;
    uint16_t length = 0;
    uint16_t count = 0;  // 0: free
  };
  void clear() {
    std::fill(slots_.begin(), slots_.end(), Slot{});
    text_.clear();
    tokens_.clear();
    used_ = 0;
  }
  std::vector<Slot> slots_;
  std::vector<char> text_;
  std::vector<Token> tokens_;
  size_t used_ = 0;
};

}  // namespace tessera
