// TokenModel: what turns one word into token ids. One class per kind: Bpe, Unigram, WordPiece, WordLevel.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/vocabulary.h"

namespace tessera {

// Whether control tokens may come out of plain text: in text that a user wrote they should not.
enum class ControlTokens { kAllowed, kAvoided };

// Ids, and for each the bytes of the word that it covers (filled only when `wants_ranges`).
struct TokenSink {
  struct Range {
    size_t begin = 0;
    size_t end = 0;
  };
  std::vector<int32_t> ids;
  std::vector<Range> ranges;
  bool wants_ranges = false;
  ControlTokens controls = ControlTokens::kAllowed;

  void add(int32_t id, size_t begin, size_t end) {
    ids.push_back(id);
    if (wants_ranges) ranges.push_back({begin, end});
  }
};

// Memory that a model needs while it works and caches between words; one per thread.
class ModelScratch {
 public:
  virtual ~ModelScratch() = default;
};

class TokenModel {
 public:
  virtual ~TokenModel() = default;

  [[nodiscard]] virtual std::unique_ptr<ModelScratch> make_scratch() const = 0;

  // Appends the tokens of `word` (valid UTF-8, not empty; for a model over bytes: any bytes). `scratch` comes from
  // make_scratch of this model. kBadData when the word has an unknown part and the model has no token for it.
  [[nodiscard]] virtual Status tokenize(std::string_view word, ModelScratch& scratch,
                                        TokenSink& sink) const = 0;

  [[nodiscard]] const Vocabulary& vocabulary() const { return vocabulary_; }

  // The token for what is not in the vocabulary, or Vocabulary::kNone.
  [[nodiscard]] virtual int32_t unknown_id() const = 0;

  // True when unknown text keeps its own spelling as the token's text (unigram).
  [[nodiscard]] virtual bool keeps_unknown_text() const { return false; }

  // The ids that ControlTokens::kAvoided keeps out.
  void set_control_ids(std::span<const int32_t> ids) {
    for (const int32_t id : ids) {
      if (id < 0) continue;
      if (static_cast<size_t>(id) >= control_.size()) control_.resize(static_cast<size_t>(id) + 1);
      control_[static_cast<size_t>(id)] = true;
    }
  }

 protected:
  [[nodiscard]] bool forbidden(int32_t id, const TokenSink& sink) const {
    return sink.controls == ControlTokens::kAvoided && id >= 0 && static_cast<size_t>(id) < control_.size() &&
           control_[static_cast<size_t>(id)];
  }

  Vocabulary vocabulary_;
  std::vector<bool> control_;
};

}  // namespace tessera
