// StreamDecoder: the text of tokens as they come. What it gives out, put together, is what Tokenizer::decode gives
// for all of the ids, however they are spread over calls; every part is complete characters.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "text/decoder.h"
#include "text/tokenizer.h"

namespace tessera {

class StreamDecoder {
 public:
  // The tokenizer must outlive the decoder.
  explicit StreamDecoder(const Tokenizer& tokenizer, DecodeSpecial special = DecodeSpecial::kSkip);

  // Takes tokens as read without giving out their text: those of a prompt, so that what follows is decoded as a
  // continuation (a leading space stays).
  void prime(std::span<const int32_t> ids);

  // The text that became certain with this token: empty while a character is incomplete.
  [[nodiscard]] std::string push(int32_t id);

  // The rest: one U+FFFD for an incomplete character. Nothing may follow.
  [[nodiscard]] std::string flush();

 private:
  const Tokenizer& tokenizer_;
  DecodeSpecial special_;
  DecoderRun run_;
};

}  // namespace tessera
