// See aligned_text.h.
#include "text/aligned_text.h"

#include <algorithm>

#include "text/unicode.h"

namespace tessera {

AlignedText::AlignedText(std::string_view text, uint32_t origin, bool tracked)
    : origin_(origin), tracked_(tracked) {
  append_source(text, origin);
}

void AlignedText::clear(uint32_t origin, bool tracked) {
  text_.clear();
  sources_.clear();
  origin_ = origin;
  tracked_ = tracked;
}

void AlignedText::append_source(std::string_view text, uint32_t origin) {
  text_.append(text);
  if (!tracked_) return;
  sources_.reserve(sources_.size() + text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t length = std::min(unicode::sequence_length(text[i]), text.size() - i);
    const auto begin = origin + static_cast<uint32_t>(i);
    sources_.insert(sources_.end(), length, SourceRange{begin, begin + static_cast<uint32_t>(length)});
    i += length;
  }
}

void AlignedText::append_unchanged(const AlignedText& from, size_t begin, size_t end) {
  text_.append(from.text_, begin, end - begin);
  if (!tracked_) return;
  const auto first = from.sources_.begin();
  sources_.insert(sources_.end(), first + static_cast<ptrdiff_t>(begin), first + static_cast<ptrdiff_t>(end));
}

void AlignedText::append_inserted(std::string_view inserted, SourceRange source) {
  text_.append(inserted);
  if (tracked_) sources_.insert(sources_.end(), inserted.size(), source);
}

void AlignedText::append_changed(const AlignedText& from, size_t begin, size_t end,
                                 std::span<const CharacterChange> changes, size_t skipped,
                                 uint32_t piece_origin) {
  if (!tracked_) {
    for (const CharacterChange& change : changes) unicode::append(text_, change.code);
    return;
  }
  const std::string_view old = from.text_;
  size_t at = begin;
  const auto step = [&] {
    if (at < end) at += unicode::sequence_length(old[at]);
  };
  for (size_t i = 0; i < skipped; ++i) step();
  for (const CharacterChange& change : changes) {
    SourceRange source{piece_origin, piece_origin};
    if (change.change > 0) {
      if (at > begin) source = from.sources_[at - 1];
    } else {
      if (at < end) source = from.sources_[at];
      for (int32_t removed = change.change; removed <= 0; ++removed) step();
    }
    const size_t before = text_.size();
    unicode::append(text_, change.code);
    sources_.insert(sources_.end(), text_.size() - before, source);
  }
}

void AlignedText::transform(std::span<const CharacterChange> changes, size_t skipped) {
  AlignedText out;
  out.clear(origin_, tracked_);
  out.text_.reserve(text_.size() + text_.size() / 4);
  out.append_changed(*this, 0, text_.size(), changes, skipped, origin_);
  *this = std::move(out);
}

void AlignedText::prepend(std::string_view prefix) {
  if (text_.empty()) return;
  if (tracked_) {
    // The first inserted character replaces the first one, which is inserted again behind it: all of them stand
    // for the range of the first character.
    sources_.insert(sources_.begin(), prefix.size(), sources_.front());
  }
  text_.insert(0, prefix);
}

void AlignedText::replace(std::span<const Range> ranges, std::string_view content) {
  if (ranges.empty()) return;
  AlignedText out;
  out.clear(origin_, tracked_);
  out.text_.reserve(text_.size() + ranges.size() * content.size());
  size_t last = 0;
  for (const Range& range : ranges) {
    out.append_unchanged(*this, last, range.begin);
    SourceRange source{origin_, origin_};
    if (tracked_ && range.end > 0) source = sources_[range.end - 1];
    out.append_inserted(content, source);
    last = range.end;
  }
  out.append_unchanged(*this, last, text_.size());
  *this = std::move(out);
}

}  // namespace tessera
