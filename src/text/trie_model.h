// The model of RWKV's vocabularies: at each place the longest piece that fits, over bytes.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/byte_trie.h"
#include "text/model.h"

namespace tessera {

class TrieModel : public TokenModel {
 public:
  struct Piece {
    int32_t id = 0;
    std::string bytes;
  };
  // The vocabulary spells pieces in the byte-level alphabet.
  [[nodiscard]] static Result<std::unique_ptr<TrieModel>> create(const std::vector<Piece>& pieces,
                                                                 std::string_view where);
  [[nodiscard]] std::unique_ptr<ModelScratch> make_scratch() const override;
  [[nodiscard]] Status tokenize(std::string_view word, ModelScratch& scratch, TokenSink& sink) const override;
  [[nodiscard]] int32_t unknown_id() const override { return Vocabulary::kNone; }

 private:
  ByteTrie trie_;
};

// "\n", "\xE4" and so on to bytes. kBadData for an escape that is not one.
[[nodiscard]] Result<std::string> unescape_bytes(std::string_view text);

}  // namespace tessera
