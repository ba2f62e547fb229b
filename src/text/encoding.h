// Encoding: the tokens of a text with what is known about each. Only `ids` is filled unless details were asked for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/aligned_text.h"

namespace tessera {

enum class OffsetUnit { kBytes, kCharacters };

struct Encoding {
  std::vector<int32_t> ids;
  std::vector<SourceRange>
      offsets;  // the part of the input that the token stands for; {0, 0} for special tokens
  std::vector<int32_t> type_ids;    // 0 or 1: which of two inputs (some models count otherwise)
  std::vector<uint8_t> special;     // 1: put in by the post-processor
  std::vector<std::string> pieces;  // the token's text in the vocabulary's spelling

  OffsetUnit unit = OffsetUnit::kBytes;
  bool detailed = false;  // the lists above are filled

  [[nodiscard]] size_t size() const { return ids.size(); }
  void append(Encoding&& other);
};

// The same offsets in code points, as the HuggingFace library's Python and JavaScript interfaces give them.
[[nodiscard]] std::vector<SourceRange> character_offsets(std::string_view text,
                                                         const std::vector<SourceRange>& offsets);

}  // namespace tessera
