// See trie_model.h.
#include "text/trie_model.h"

#include <charconv>

#include "text/byte_level.h"

namespace tessera {

Result<std::unique_ptr<TrieModel>> TrieModel::create(const std::vector<Piece>& pieces,
                                                     std::string_view where) {
  auto model = std::make_unique<TrieModel>();
  for (const Piece& piece : pieces) {
    if (auto status = model->vocabulary_.add(byte_level_encode(piece.bytes), piece.id); !status)
      return with_context(status.error(), where);
    model->trie_.add(piece.bytes, piece.id);
  }
  return model;
}

std::unique_ptr<ModelScratch> TrieModel::make_scratch() const {
  return std::make_unique<ModelScratch>();
}

Status TrieModel::tokenize(std::string_view word, ModelScratch&, TokenSink& sink) const {
  for (size_t at = 0; at < word.size();) {
    const ByteTrie::Match match = trie_.longest(word, at);
    if (match.length == 0)
      return fail(ErrorCode::kBadData, "the vocabulary has no piece for byte 0x{:02X}",
                  static_cast<unsigned>(static_cast<unsigned char>(word[at])));
    sink.add(match.value, at, at + match.length);
    at += match.length;
  }
  return {};
}

Result<std::string> unescape_bytes(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    const auto bad = [&] { return fail(ErrorCode::kBadData, "\"{}\": bad escape at byte {}", text, i); };
    if (++i == text.size()) return bad();
    switch (text[i]) {
      case 'n':
        out += '\n';
        break;
      case 'r':
        out += '\r';
        break;
      case 't':
        out += '\t';
        break;
      case '\\':
      case '\'':
      case '"':
        out += text[i];
        break;
      case 'x': {
        unsigned value = 0;
        if (i + 2 >= text.size()) return bad();
        const char* first = text.data() + i + 1;
        if (std::from_chars(first, first + 2, value, 16).ptr != first + 2) return bad();
        out += static_cast<char>(value);
        i += 2;
        break;
      }
      default:
        return bad();
    }
  }
  return out;
}

}  // namespace tessera
