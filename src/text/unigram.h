// The unigram model of SentencePiece: of all ways to cut a word into pieces, the one with the highest sum of
// scores (Viterbi over byte positions). What no piece covers is an unknown character at min score - 10; unknown
// characters in a row are one token, or spelled in byte pieces.
#pragma once

#include <memory>
#include <vector>

#include "text/byte_trie.h"
#include "text/model.h"

namespace tessera {

class Unigram : public TokenModel {
 public:
  struct Options {
    int64_t unknown_id = Vocabulary::kNone;
    bool byte_fallback = false;
    std::vector<bool> usable;  // pieces that may come out of text; empty: all
  };
  // scores[id] for every id of the vocabulary.
  [[nodiscard]] static Result<std::unique_ptr<Unigram>> create(Vocabulary vocabulary,
                                                               std::vector<double> scores, Options options,
                                                               std::string_view where);
  [[nodiscard]] std::unique_ptr<ModelScratch> make_scratch() const override;
  [[nodiscard]] Status tokenize(std::string_view word, ModelScratch& scratch, TokenSink& sink) const override;
  [[nodiscard]] int32_t unknown_id() const override { return unknown_id_; }
  [[nodiscard]] bool keeps_unknown_text() const override { return true; }

 private:
  struct Scratch;
  Unigram() = default;
  [[nodiscard]] Status add_unknown(std::string_view text, size_t begin, TokenSink& sink) const;
  std::vector<double> scores_;
  ByteTrie trie_;
  std::vector<int32_t> byte_ids_;  // empty without byte fallback
  int32_t unknown_id_ = Vocabulary::kNone;
  double unknown_score_ = 0;
};

}  // namespace tessera
