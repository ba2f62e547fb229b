// Tokenizers that come in other files than tokenizer.json: SentencePiece models, tiktoken ranks, tekken.json and the
// RWKV World vocabulary. Each function reads the contents of one file; `name` is used in messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/gguf_vocabulary.h"
#include "text/tokenizer.h"

namespace tessera {

// A SentencePiece model (protocol buffer): its pieces and settings as a GGUF file would hold them; BPE and unigram.
// kBadData where the buffer is not one; kUnsupported for the word and character models.
[[nodiscard]] Result<GgufVocabulary> read_sentencepiece_model(std::string_view file);
[[nodiscard]] Result<Tokenizer> tokenizer_from_sentencepiece(std::string_view file, const std::string& name);

// tiktoken: lines of a piece in base64 and its rank, which is its id. The cutting pattern and the special tokens are
// not in the file.
struct TiktokenOptions {
  std::string pattern;  // in tokenizer.json's dialect
  std::vector<std::pair<std::string, int32_t>> special_tokens;
};
[[nodiscard]] Result<Tokenizer> tokenizer_from_tiktoken(std::string_view file, const TiktokenOptions& options,
                                                        const std::string& name);

// Mistral's tekken.json: pattern, ranks and special tokens in one. Special tokens have the first ids.
[[nodiscard]] Result<Tokenizer> tokenizer_from_tekken(std::string_view file, const std::string& name);

// RWKV World: lines of an id, the piece as a Python literal, and its length in bytes.
[[nodiscard]] Result<Tokenizer> tokenizer_from_rwkv(std::string_view file, const std::string& name);

}  // namespace tessera
