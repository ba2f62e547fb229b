// How pre-tokenizers cut and rewrite words: segments of a word, matching a delimiter or not, become words as the behavior
// of the HuggingFace library's SplitDelimiterBehavior says.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/pretokenizer.h"
#include "text/unicode.h"

namespace tessera {

enum class Behavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// Receives the segments of one word in order, matching the delimiter or not, and cuts as the behavior says.
class Cutter {
 public:
  Cutter(const PreTokenized& text, const Word& word, Behavior behavior, std::vector<Word>& out)
      : text_(text), word_(word), behavior_(behavior), out_(out) {}

  // Offsets are relative to the word.
  void segment(size_t begin, size_t end, bool match) {
    bool joins = false;  // the segment continues the one before it
    switch (behavior_) {
      case Behavior::kRemoved:
        if (match) {
          previous_match_ = match;
          return;
        }
        break;
      case Behavior::kIsolated:
        break;
      case Behavior::kContiguous:
        joins = match == previous_match_;
        break;
      case Behavior::kMergedWithPrevious:
        joins = match && !previous_match_;
        break;
      case Behavior::kMergedWithNext:
        joins = !match && previous_match_;
        break;
    }
    previous_match_ = match;
    if (joins && open_) {
      end_ = end;
      return;
    }
    flush();
    open_ = true;
    begin_ = begin;
    end_ = end;
  }

  void flush() {
    if (open_ && end_ > begin_) {
      const size_t begin = word_.begin + begin_;
      const auto sources = text_.text.sources();
      const uint32_t origin =
          sources.empty() ? word_.origin + static_cast<uint32_t>(begin_) : sources[begin].begin;
      out_.push_back({begin, word_.begin + end_, -1, origin});
    }
    open_ = false;
  }

 private:
  const PreTokenized& text_;
  const Word& word_;
  Behavior behavior_;
  std::vector<Word>& out_;
  bool previous_match_ = false;
  bool open_ = false;
  size_t begin_ = 0;
  size_t end_ = 0;
};

// Cuts every word that is not an added token: find(word text, emit(begin, end, match)) -> Status.
template <class Find>
Status cut_words(PreTokenized& text, PreTokenizerScratch& scratch, Behavior behavior, Find find) {
  std::vector<Word>& out = scratch.words;
  out.clear();
  const std::string_view all = text.text.text();
  for (const Word& word : text.words) {
    if (word.token >= 0) {
      out.push_back(word);
      continue;
    }
    Cutter cutter(text, word, behavior, out);
    TESSERA_TRY_STATUS(
        find(all.substr(word.begin, word.end - word.begin),
             [&](size_t begin, size_t end, bool match) { cutter.segment(begin, end, match); }));
    cutter.flush();
  }
  text.words.swap(out);
  return {};
}

// Segments of a regex: its matches and what lies between them.
template <class Emit>
Status regex_segments(const Regex& regex, std::string_view word, RegexScratch& scratch, bool invert,
                      Emit emit) {
  Regex::Cursor cursor = regex.find_all(word, scratch);
  Regex::Match match;
  size_t last = 0;
  while (true) {
    TESSERA_TRY(const bool found, cursor.next(&match));
    if (!found) break;
    if (last != match.begin) emit(last, match.begin, invert);
    emit(match.begin, match.end, !invert);
    last = match.end;
  }
  if (last != word.size()) emit(last, word.size(), invert);
  return {};
}

// Segments of a set of characters: each one that is in it alone, the others together.
template <class InSet, class Emit>
void character_segments(std::string_view word, InSet in_set, Emit emit) {
  size_t last = 0;
  for (size_t i = 0; i < word.size();) {
    const unicode::Character c = unicode::decode(word, i);
    if (in_set(c.code)) {
      if (last < i) emit(last, i, false);
      emit(i, i + c.length, true);
      last = i + c.length;
    }
    i += c.length;
  }
  if (last < word.size()) emit(last, word.size(), false);
}

template <class InSet>
Status cut_characters(PreTokenized& text, PreTokenizerScratch& scratch, Behavior behavior, InSet in_set) {
  return cut_words(text, scratch, behavior, [&](std::string_view word, auto emit) -> Status {
    character_segments(word, in_set, emit);
    return {};
  });
}

// Writes the text anew: rewrite(word, out) appends what becomes of a word.
template <class Rewrite>
void rewrite_words(PreTokenized& text, Rewrite rewrite) {
  AlignedText out;
  out.clear(text.text.origin(), text.text.tracked());
  for (Word& word : text.words) {
    const size_t begin = out.text().size();
    if (word.token >= 0)
      out.append_unchanged(text.text, word.begin, word.end);
    else
      rewrite(word, out);
    word.begin = begin;
    word.end = out.text().size();
  }
  text.text = std::move(out);
}

inline std::string_view view(const PreTokenized& text, const Word& word) {
  return text.text.text().substr(word.begin, word.end - word.begin);
}

// What an inserted first character of the word stands for: the range of the character that it goes before.
inline SourceRange first_source(const PreTokenized& text, const Word& word) {
  const auto sources = text.text.sources();
  return sources.empty() ? SourceRange{} : sources[word.begin];
}

}  // namespace tessera
