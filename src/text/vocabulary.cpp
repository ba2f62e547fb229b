// See vocabulary.h.
#include "text/vocabulary.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

namespace tessera {
namespace {

constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15ull;

uint64_t mix(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t load(const char* from, size_t size) {
  uint64_t word = 0;
  std::memcpy(&word, from, size);
  return word;
}

}  // namespace

uint64_t hash_bytes(std::string_view bytes) {
  uint64_t hash = kMultiplier ^ bytes.size();
  const char* at = bytes.data();
  size_t left = bytes.size();
  while (left > 8) {
    hash = mix(hash ^ load(at, 8), kMultiplier);
    at += 8;
    left -= 8;
  }
  if (left >= 4)
    hash = mix(hash ^ (load(at, 4) | load(at + left - 4, 4) << 32), kMultiplier);
  else if (left > 0)
    hash =
        mix(hash ^ (load(at, 1) | load(at + left / 2, 1) << 8 | load(at + left - 1, 1) << 16), kMultiplier);
  return mix(hash, 0xd6e8feb86659fd93ull);
}

void Vocabulary::reserve(size_t pieces, size_t bytes) {
  bytes_.reserve(bytes);
  entries_.reserve(pieces);
  const size_t wanted = std::bit_ceil(pieces * 4 / 3 + 16);
  if (wanted > slots_.size()) grow(wanted);
}

void Vocabulary::grow(size_t slots) {
  std::vector<Slot> old = std::move(slots_);
  slots_.assign(slots, Slot{});
  const size_t mask = slots - 1;
  for (const Slot& slot : old) {
    if (slot.id == kNone) continue;
    const uint64_t hash = hash_bytes(std::string_view(bytes_).substr(slot.offset, slot.length));
    size_t at = hash & mask;
    while (slots_[at].id != kNone) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

Status Vocabulary::add(std::string_view piece, int64_t id) {
  if (id < 0 || id > kMaxId)
    return fail(ErrorCode::kBadData, "token \"{}\": expected an id in [0, {}], found {}", piece, kMaxId, id);
  if (piece.size() > std::numeric_limits<uint32_t>::max() / 2 ||
      bytes_.size() + piece.size() > std::numeric_limits<uint32_t>::max())
    return fail(ErrorCode::kResourceLimit, "the vocabulary holds more than 4 GiB of text");
  if ((size_ + 1) * 4 > slots_.size() * 3) grow(std::max<size_t>(slots_.size() * 2, 64));
  const auto index = static_cast<size_t>(id);
  if (index >= entries_.size()) entries_.resize(index + 1);
  const uint64_t hash = hash_bytes(piece);
  const auto tag = static_cast<uint32_t>(hash >> 32);
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  for (; slots_[at].id != kNone; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.tag == tag && std::string_view(bytes_).substr(slot.offset, slot.length) == piece) break;
  }
  Slot& slot = slots_[at];
  if (slot.id == kNone) {
    ++size_;
    slot.tag = tag;
    slot.offset = static_cast<uint32_t>(bytes_.size());
    slot.length = static_cast<uint32_t>(piece.size());
    bytes_.append(piece);
  }
  slot.id = static_cast<int32_t>(id);
  Entry& entry = entries_[index];
  entry.offset = slot.offset;
  entry.length = slot.length & 0x7fffffffu;
  entry.used = 1;
  return {};
}

int32_t Vocabulary::find(std::string_view piece) const {
  if (slots_.empty()) return kNone;
  const uint64_t hash = hash_bytes(piece);
  const auto tag = static_cast<uint32_t>(hash >> 32);
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask; slots_[at].id != kNone; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.tag == tag && slot.length == piece.size() &&
        std::memcmp(bytes_.data() + slot.offset, piece.data(), piece.size()) == 0)
      return slot.id;
  }
  return kNone;
}

std::string_view Vocabulary::piece(int32_t id) const {
  if (!contains(id)) return {};
  const Entry& entry = entries_[static_cast<size_t>(id)];
  return std::string_view(bytes_).substr(entry.offset, entry.length);
}

}  // namespace tessera
