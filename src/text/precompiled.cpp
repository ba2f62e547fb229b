// SentencePiece's compiled normalization rules, "precompiled_charsmap": a double-array trie (Darts, 32-bit units)
// from source strings to offsets into a pool of zero-terminated replacements. Applied as the HuggingFace library
// applies them: to whole grapheme clusters below six bytes, else character by character, by the shortest rule
// that the cluster or character starts with.
#include <utf8proc.h>

#include <bit>
#include <cstring>
#include <optional>
#include <vector>

#include "text/charsmap.h"
#include "text/normalizer.h"
#include "text/unicode.h"

namespace tessera {

Result<Charsmap> Charsmap::parse(std::string_view bytes, std::string_view where) {
  static_assert(std::endian::native == std::endian::little, "the trie is read as it lies in the file");
  uint32_t trie_bytes = 0;
  if (bytes.size() < 4) return fail(ErrorCode::kBadData, "{}: charsmap of {} bytes", where, bytes.size());
  std::memcpy(&trie_bytes, bytes.data(), 4);
  if (trie_bytes % 4 != 0 || trie_bytes == 0 || trie_bytes > bytes.size() - 4)
    return fail(ErrorCode::kBadData, "{}: charsmap: a trie of {} bytes in {} bytes", where, trie_bytes,
                bytes.size());
  Charsmap map;
  map.units_.resize(trie_bytes / 4);
  std::memcpy(map.units_.data(), bytes.data() + 4, trie_bytes);
  map.pool_ = bytes.substr(4 + trie_bytes);
  if (!unicode::is_valid_utf8(map.pool_)) return fail(ErrorCode::kBadData, "{}: charsmap: not UTF-8", where);
  return map;
}

template <class Visit>
void Charsmap::walk(std::string_view text, Visit visit) const {
  // Layout of a unit: bits 0-7 label, bit 8 has a leaf, bits 10-30 offset, shifted by 8 where bit 9 is set.
  const auto offset = [](uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); };
  size_t node = offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == 0) return;
    node ^= byte;
    if (node >= units_.size()) return;
    const uint32_t unit = units_[node];
    if ((unit & (1u << 31 | 0xff)) != byte) return;
    node ^= offset(unit);
    if (node >= units_.size()) return;
    if ((unit >> 8 & 1) != 0 && !visit(i + 1, units_[node] & 0x7fffffffu)) return;
  }
}

std::optional<std::string_view> Charsmap::replacement(uint32_t at) const {
  if (at >= pool_.size() || unicode::is_continuation(pool_[at])) return std::nullopt;
  const std::string_view rest = std::string_view(pool_).substr(at);
  return rest.substr(0, rest.find('\0'));
}

std::optional<std::string_view> Charsmap::shortest(std::string_view text) const {
  std::optional<std::string_view> found;
  walk(text, [&](size_t, uint32_t at) {
    found = replacement(at);
    return false;
  });
  return found;
}

std::optional<Charsmap::Rule> Charsmap::longest(std::string_view text) const {
  std::optional<Rule> found;
  walk(text, [&](size_t length, uint32_t at) {
    if (const auto text_at = replacement(at)) found = Rule{length, *text_at};
    return true;
  });
  return found;
}

namespace {

class Precompiled : public Normalizer {
 public:
  explicit Precompiled(Charsmap map) : map_(std::move(map)) {}

  Status apply(AlignedText& text, RegexScratch&) const override {
    const std::string_view all = text.text();
    std::vector<CharacterChange> changes;
    bool modified = false;
    for (size_t i = 0; i < all.size();) {
      const size_t end = cluster_end(all, i);
      const std::string_view cluster = all.substr(i, end - i);
      i = end;
      if (cluster.size() < 6) {
        if (const auto rule = map_.shortest(cluster)) {
          replace(changes, cluster, *rule);
          modified = true;
          continue;
        }
      }
      for (size_t at = 0; at < cluster.size();) {
        const unicode::Character c = unicode::decode(cluster, at);
        const std::string_view part = cluster.substr(at, c.length);
        at += c.length;
        if (const auto rule = map_.shortest(part)) {
          replace(changes, part, *rule);
          modified = true;
        } else {
          changes.push_back({c.code, 0});
        }
      }
    }
    if (modified) text.transform(changes, 0);
    return {};
  }

 private:
  static size_t cluster_end(std::string_view text, size_t start) {
    unicode::Character c = unicode::decode(text, start);
    size_t end = start + c.length;
    utf8proc_int32_t state = 0;
    while (end < text.size()) {
      const unicode::Character next = unicode::decode(text, end);
      if (c.code < 0x80 && next.code < 0x80 && !(c.code == '\r' && next.code == '\n')) break;
      if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(c.code),
                                           static_cast<utf8proc_int32_t>(next.code), &state))
        break;
      end += next.length;
      c = next;
    }
    return end;
  }

  static void replace(std::vector<CharacterChange>& changes, std::string_view from, std::string_view to) {
    const auto old_count = static_cast<int32_t>(unicode::count_characters(from));
    const auto new_count = static_cast<int32_t>(unicode::count_characters(to));
    for (size_t i = 0; i < to.size();) {
      const unicode::Character c = unicode::decode(to, i);
      changes.push_back({c.code, 0});
      i += c.length;
    }
    if (new_count > old_count) {
      for (int32_t k = 0; k < new_count - old_count; ++k)
        changes[changes.size() - 1 - static_cast<size_t>(k)].change = 1;
    } else if (new_count < old_count && !changes.empty()) {
      changes.back().change += new_count - old_count;
    }
  }

  Charsmap map_;
};

}  // namespace

Result<std::unique_ptr<Normalizer>> make_precompiled(std::string charsmap, std::string_view where) {
  TESSERA_TRY(Charsmap map, Charsmap::parse(charsmap, where));
  return std::make_unique<Precompiled>(std::move(map));
}

}  // namespace tessera
