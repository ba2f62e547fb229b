// The vocabulary inside a GGUF file: the keys "tokenizer.ggml.*" as a plain struct.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"

namespace tessera {

enum class GgufTokenType : int32_t {
  kUndefined = 0,
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

struct GgufVocabulary {
  std::string model;  // "llama", "gpt2", "bert", "t5", "rwkv", ...
  std::string pre;    // the pre-tokenizer's name; empty when the file has none
  std::vector<std::string> tokens;
  std::vector<float> scores;         // empty, or one for each token
  std::vector<GgufTokenType> types;  // empty, or one for each token
  std::vector<std::string> merges;   // "left right", best first
  std::string precompiled_charsmap;
  std::optional<int32_t> bos_id;
  std::optional<int32_t> eos_id;
  std::optional<int32_t> eot_id;
  std::optional<int32_t> eom_id;
  std::optional<int32_t> unknown_id;
  std::optional<int32_t> separator_id;
  std::optional<int32_t> pad_id;
  std::optional<int32_t> cls_id;
  std::optional<bool> add_bos;
  std::optional<bool> add_eos;
  std::optional<bool> add_space_prefix;
  std::optional<bool> remove_extra_whitespaces;
  std::optional<bool> escape_whitespaces;    // SentencePiece files only
  std::optional<bool> whitespace_as_suffix;  // SentencePiece files only
  std::optional<bool> lowercase;
  std::optional<bool> strip_accents;

  [[nodiscard]] GgufTokenType type(size_t id) const {
    return types.empty() ? GgufTokenType::kNormal : types[id];
  }
};

// kNotFound when the file has no vocabulary; kBadData for a key of the wrong type or length, named.
[[nodiscard]] Result<GgufVocabulary> read_gguf_vocabulary(const GgufMetadata& metadata);

}  // namespace tessera
