// SentencePiece's own normalizer, for vocabularies that come with SentencePiece's settings instead of a
// tokenizer.json: compiled rules by the longest match, white space folded and marked with U+2581, a mark in front.
#pragma once

#include <memory>
#include <optional>

#include "text/charsmap.h"
#include "text/normalizer.h"

namespace tessera {

struct SentencePieceRules {
  std::optional<Charsmap> charsmap;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = false;  // at the ends, and all but one of a run
  bool escape_whitespaces = true;
  bool whitespace_as_suffix = false;  // the mark goes behind instead of in front
};

[[nodiscard]] std::unique_ptr<Normalizer> make_sentencepiece_normalizer(SentencePieceRules rules);

}  // namespace tessera
