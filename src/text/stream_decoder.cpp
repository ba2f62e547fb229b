// See stream_decoder.h.
#include "text/stream_decoder.h"

namespace tessera {

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, DecodeSpecial special)
    : tokenizer_(tokenizer), special_(special), run_(tokenizer.start_decoding()) {}

void StreamDecoder::prime(std::span<const int32_t> ids) {
  for (const int32_t id : ids) tokenizer_.decode_one(run_, id, special_);
  (void)run_.take();
}

std::string StreamDecoder::push(int32_t id) {
  tokenizer_.decode_one(run_, id, special_);
  return run_.take();
}

std::string StreamDecoder::flush() {
  run_.end();
  return run_.take();
}

}  // namespace tessera
