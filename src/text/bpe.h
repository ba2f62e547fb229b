// Byte-pair encoding. A word starts as its characters (or bytes); while two neighbours have a merge rule, the pair
// of the best rank is joined, the leftmost first. Three flavours share the work: pieces of characters with merge
// rules (tokenizer.json), pieces of bytes (the byte-level alphabet, handled as bytes so that nothing is spelled
// out), and SentencePiece's, where any two neighbours that make up a piece may join, the piece of the highest
// score first. Effort is O(n log n) in the word and the stack is constant.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/merge_table.h"
#include "text/model.h"

namespace tessera {

class Bpe : public TokenModel {
 public:
  enum class Alphabet {
    kCharacters,
    kBytes,  // words are bytes; pieces are spelled in the byte-level alphabet
  };
  struct Options {
    Alphabet alphabet = Alphabet::kCharacters;
    std::optional<std::string>
        unknown;         // the piece for what is not in the vocabulary; without it that is dropped
    std::string prefix;  // in front of every symbol but the first of a word
    std::string suffix;  // behind the last symbol of a word
    bool fuse_unknown = false;
    bool byte_fallback = false;
    bool ignore_merges = false;  // a word that is a piece is that piece, whatever the merges say
  };

  // `merges` pairs of pieces, best first.
  using Merge = std::pair<std::string_view, std::string_view>;
  [[nodiscard]] static Result<std::unique_ptr<Bpe>> create(Vocabulary vocabulary,
                                                           const std::vector<Merge>& merges, Options options,
                                                           std::string_view where);

  // SentencePiece: scores[id]; mergeable[id] says which pieces may come out of joining (control, unknown and byte
  // pieces may not). Byte fallback happens after joining; without byte pieces, what is left over is `unknown`.
  [[nodiscard]] static Result<std::unique_ptr<Bpe>> create_from_scores(Vocabulary vocabulary,
                                                                       std::span<const float> scores,
                                                                       const std::vector<bool>& mergeable,
                                                                       Options options,
                                                                       std::string_view where);

  // tiktoken: pieces (spelled in the byte-level alphabet) have ranks instead of merges; two neighbours that make up a
  // piece may join, the piece of the lowest rank first.
  [[nodiscard]] static Result<std::unique_ptr<Bpe>> create_from_ranks(Vocabulary vocabulary,
                                                                      const std::vector<bool>& mergeable,
                                                                      Options options,
                                                                      std::string_view where);

  [[nodiscard]] std::unique_ptr<ModelScratch> make_scratch() const override;
  [[nodiscard]] Status tokenize(std::string_view word, ModelScratch& scratch, TokenSink& sink) const override;
  [[nodiscard]] int32_t unknown_id() const override { return unknown_id_; }

 private:
  struct Scratch;
  struct Symbol;
  static constexpr int32_t kUnmergeable =
      -2;  // a character without a piece, to be spelled in bytes at the end

  Bpe() = default;
  [[nodiscard]] Status prepare();
  [[nodiscard]] Status add_merges(const std::vector<Merge>& merges, std::string_view where);
  void add_score_merges(std::span<const float> scores, const std::vector<bool>& mergeable);
  [[nodiscard]] int32_t extra_symbol(std::string_view character);

  // False when the word needs the unknown token and the vocabulary does not have it.
  [[nodiscard]] bool start_symbols(std::string_view word, Scratch& scratch) const;
  [[nodiscard]] bool start_characters(std::string_view word, Scratch& scratch) const;
  [[nodiscard]] int32_t character_id(std::string_view character) const;
  void merge_symbols(Scratch& scratch) const;
  void merge_few(std::vector<Symbol>& symbols) const;
  void merge_many(Scratch& scratch) const;
  void finish_symbols(std::string_view word, Scratch& scratch) const;

  Options options_;
  MergeTable merges_;
  int32_t unknown_id_ = Vocabulary::kNone;
  bool late_fallback_ = false;           // SentencePiece's order of things
  std::array<int32_t, 256> byte_ids_{};  // kBytes: the piece of one byte; else the fallback piece
  std::vector<int32_t> character_ids_;   // pieces of the characters below kDirectCharacters
  Vocabulary extra_characters_;          // characters that are no piece but part of one (SentencePiece)
  Vocabulary words_;                     // kBytes with ignore_merges: pieces as bytes
};

}  // namespace tessera
