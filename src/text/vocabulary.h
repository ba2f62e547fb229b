// Vocabulary: pieces (strings) to ids and back. All pieces lie one after another in one buffer, and the hash
// table holds ids, so that a quarter of a million pieces load in a few milliseconds. Ids may have holes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tessera {

// A fast hash of bytes for the tables of the text layer; not for anything an attacker could aim at (tables that
// hold what a request sends are bounded).
[[nodiscard]] uint64_t hash_bytes(std::string_view bytes);

class Vocabulary {
 public:
  static constexpr int32_t kNone = -1;
  static constexpr int32_t kMaxId =
      (1 << 22) - 1;  // a bound on memory: published vocabularies end below 2^19

  void reserve(size_t pieces, size_t bytes);

  // A piece given twice keeps its last id, as a JSON object would. kBadData for an id outside [0, kMaxId].
  [[nodiscard]] Status add(std::string_view piece, int64_t id);

  [[nodiscard]] int32_t find(std::string_view piece) const;  // kNone when absent
  [[nodiscard]] bool contains(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < entries_.size() && entries_[static_cast<size_t>(id)].used;
  }
  // Valid until the next add. Empty for an id that is not there.
  [[nodiscard]] std::string_view piece(int32_t id) const;

  [[nodiscard]] size_t size() const { return size_; }                                     // pieces
  [[nodiscard]] int32_t end_id() const { return static_cast<int32_t>(entries_.size()); }  // largest id + 1

 private:
  struct Entry {
    uint32_t offset = 0;
    uint32_t length : 31 = 0;
    uint32_t used : 1 = 0;
  };
  struct Slot {
    uint32_t tag = 0;  // upper half of the hash
    int32_t id = kNone;
    uint32_t offset = 0;  // the piece's own text: two pieces may share an id
    uint32_t length = 0;
  };
  void grow(size_t slots);
  std::string bytes_;
  std::vector<Entry> entries_;
  std::vector<Slot> slots_;  // open addressing, a power of two
  size_t size_ = 0;
};

}  // namespace tessera
