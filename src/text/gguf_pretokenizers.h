// The table of pre-tokenizers that tokenizer.ggml.pre of a GGUF file names.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/normalizer.h"
#include "text/pretokenizer.h"

namespace tessera {

struct GgufPreTokenizer {
  std::unique_ptr<Normalizer> normalizer;      // may be null
  std::unique_ptr<PreTokenizer> pretokenizer;  // may be null
  bool pieces_are_text = false;                // SentencePiece's spelling instead of the byte-level alphabet
  bool words_are_spelled = false;              // the pre-tokenizer leaves words in the byte-level alphabet
  bool ignore_merges = false;
  bool ranks_are_ids = false;  // there may be no merges: a piece's id is its rank
  bool add_bos = false;        // where the file does not say
};

// kUnsupported for a name that is not in the table, and for no name.
[[nodiscard]] Result<GgufPreTokenizer> gguf_pretokenizer(std::string_view name);

// All names of the table.
[[nodiscard]] std::vector<std::string_view> gguf_pretokenizer_names();

}  // namespace tessera
