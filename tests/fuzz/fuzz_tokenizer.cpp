// Any bytes as a tokenizer file. The first byte chooses the format, the rest is the file; what loads must encode some
// text, decode its own ids, and stream them to the same text.
#include <string>
#include <vector>

#include "base/check.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"
#include "text/tokenizer_files.h"
#include "text/unicode.h"

namespace {

using namespace tessera;

Result<Tokenizer> load(char format, std::string_view file) {
  switch (format) {
    case 's':
      return tokenizer_from_sentencepiece(file, "fuzz");
    case 'k':
      return tokenizer_from_tekken(file, "fuzz");
    case 't':
      return tokenizer_from_tiktoken(file, {R"(\p{L}+|\s+|[^\p{L}\s]+)", {{"<s>", 4000000}}}, "fuzz");
    case 'r':
      return tokenizer_from_rwkv(file, "fuzz");
    default:
      break;
  }
  TokenizerFiles files;
  files.tokenizer_json = file;
  return Tokenizer::from_json(files, "fuzz");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = load(file[0], file.substr(1));
  if (!tokenizer) return 0;
  for (const std::string_view text : {std::string_view("Hello  world's 123 <s> \n"),
                                      std::string_view("e\u0301\u00e9 你好 \xff▁"), file.substr(0, 64)}) {
    const auto encoding = tokenizer->encode_details(text);
    if (!encoding) continue;
    CHECK(encoding->offsets.size() == encoding->ids.size(), "offsets");
    const std::string decoded = tokenizer->decode(encoding->ids, DecodeSpecial::kSkip);
    StreamDecoder stream(*tokenizer);
    std::string joined;
    for (const int32_t id : encoding->ids) joined += stream.push(id);
    joined += stream.flush();
    CHECK(joined == decoded, "streamed text differs from decoded text");
    CHECK(unicode::is_valid_utf8(decoded), "decoded text is not UTF-8");
  }
  return 0;
}
