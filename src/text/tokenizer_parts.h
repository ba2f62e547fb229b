// What a loader hands to Tokenizer::assemble.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "text/added_tokens.h"
#include "text/decoder.h"
#include "text/model.h"
#include "text/normalizer.h"
#include "text/postprocessor.h"
#include "text/pretokenizer.h"

namespace tessera {

enum class TruncationStrategy { kLongestFirst, kOnlyFirst, kOnlySecond };
enum class TruncationSide { kLeft, kRight };

struct TruncationRule {
  size_t max_length = 0;
  TruncationStrategy strategy = TruncationStrategy::kLongestFirst;
  TruncationSide side = TruncationSide::kRight;
};

struct TokenizerParts {
  std::string name;                            // for messages
  std::unique_ptr<Normalizer> normalizer;      // may be null
  std::unique_ptr<PreTokenizer> pretokenizer;  // may be null
  std::unique_ptr<TokenModel> model;
  std::unique_ptr<PostProcessor> postprocessor;  // may be null
  std::unique_ptr<Decoder> decoder;
  std::vector<AddedToken> added_tokens;  // ids given; spelling is worked out when the parts are put together
  std::optional<TruncationRule> truncation;
  std::optional<int32_t> bos_id;
  std::optional<int32_t> eos_id;
  std::optional<int32_t> unknown_id;
  std::optional<int32_t> pad_id;
  std::vector<int32_t> end_ids;  // besides eos
  std::vector<std::string> notes;
};

struct GgufVocabulary;

// A vocabulary of GGUF's or SentencePiece's kind as parts (tokenizer_gguf.cpp).
[[nodiscard]] Result<TokenizerParts> gguf_tokenizer_parts(const GgufVocabulary& vocabulary,
                                                          const std::string& name);

}  // namespace tessera
