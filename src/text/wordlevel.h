// The two models that only look words up: WordLevel (the word as it is) and WordPiece (its longest known
// beginnings, one after another, as BERT does).
#pragma once

#include <memory>
#include <string>

#include "text/model.h"

namespace tessera {

class WordLevel : public TokenModel {
 public:
  WordLevel(Vocabulary vocabulary, const std::string& unknown);
  [[nodiscard]] std::unique_ptr<ModelScratch> make_scratch() const override;
  [[nodiscard]] Status tokenize(std::string_view word, ModelScratch& scratch, TokenSink& sink) const override;
  [[nodiscard]] int32_t unknown_id() const override { return unknown_id_; }

 private:
  int32_t unknown_id_;
};

class WordPiece : public TokenModel {
 public:
  struct Options {
    std::string unknown = "[UNK]";
    std::string prefix = "##";     // in front of every piece but the first of a word
    int64_t max_characters = 100;  // longer words are unknown
  };
  WordPiece(Vocabulary vocabulary, Options options);
  [[nodiscard]] std::unique_ptr<ModelScratch> make_scratch() const override;
  [[nodiscard]] Status tokenize(std::string_view word, ModelScratch& scratch, TokenSink& sink) const override;
  [[nodiscard]] int32_t unknown_id() const override { return unknown_id_; }

 private:
  Options options_;
  int32_t unknown_id_;
};

}  // namespace tessera
