// AlignedText: text that changes on its way through normalizers and pre-tokenizers, and, where offsets are
// wanted, the range of the original input that each of its bytes stands for. The rules are those of the
// HuggingFace tokenizers library, whose offsets are the reference: a replaced character keeps the range of the
// one it replaces, an inserted character takes the range of the one before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera {

struct SourceRange {
  uint32_t begin = 0;  // bytes of the original input
  uint32_t end = 0;
  bool operator==(const SourceRange&) const = default;
};

// One character of the text after a transformation. change = 0: it replaces the next character; > 0: it is
// inserted; -n: it replaces the next character and the n after that one are removed.
struct CharacterChange {
  char32_t code = 0;
  int32_t change = 0;
};

class AlignedText {
 public:
  AlignedText() = default;
  // `origin` is where `text` starts in the original input.
  AlignedText(std::string_view text, uint32_t origin, bool tracked);

  // Appends `text`, which stands unchanged in the original input from `origin` on.
  void append_source(std::string_view text, uint32_t origin);

  [[nodiscard]] std::string_view text() const { return text_; }
  [[nodiscard]] bool empty() const { return text_.empty(); }
  [[nodiscard]] uint32_t origin() const { return origin_; }
  [[nodiscard]] bool tracked() const { return tracked_; }
  [[nodiscard]] std::span<const SourceRange> sources() const { return sources_; }  // empty when not tracked

  void clear(uint32_t origin, bool tracked);

  // Appends to this text what becomes of bytes [begin, end) of `from` when its first `skipped` characters are
  // removed and `changes` is applied to the rest. `piece_origin` is the source position that characters inserted
  // before everything else point to.
  void append_changed(const AlignedText& from, size_t begin, size_t end,
                      std::span<const CharacterChange> changes, size_t skipped, uint32_t piece_origin);

  // Appends bytes [begin, end) of `from` unchanged.
  void append_unchanged(const AlignedText& from, size_t begin, size_t end);

  // Appends `inserted`, every byte of it standing for `source`.
  void append_inserted(std::string_view inserted, SourceRange source);

  // transform(changes, skipped) of the whole text in place.
  void transform(std::span<const CharacterChange> changes, size_t skipped);

  // Takes another text as a whole; only for a text that is not tracked.
  void replace_untracked(std::string text) { text_ = std::move(text); }

  // Puts `prefix` in front (nothing happens to an empty text).
  void prepend(std::string_view prefix);

  // Replaces the ranges (ascending, not overlapping) by `content`.
  struct Range {
    size_t begin = 0;
    size_t end = 0;
  };
  void replace(std::span<const Range> ranges, std::string_view content);

 private:
  std::string text_;
  std::vector<SourceRange> sources_;
  uint32_t origin_ = 0;
  bool tracked_ = false;
};

}  // namespace tessera
