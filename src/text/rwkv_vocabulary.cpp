// The RWKV World vocabulary: "257 '\t\t' 2", "300 b'\xe4\xb8' 2". The piece is a Python literal, of text or of
// bytes: in text \x80 is the character U+0080, in bytes it is the byte.
#include <algorithm>
#include <charconv>

#include "text/decoder.h"
#include "text/tokenizer_files.h"
#include "text/tokenizer_parts.h"
#include "text/trie_model.h"
#include "text/unicode.h"

namespace tessera {
namespace {

// Reads a Python string or bytes literal; nullopt when it is none.
std::optional<std::string> python_literal(std::string_view text) {
  const bool is_bytes = text.starts_with('b');
  if (is_bytes) text.remove_prefix(1);
  if (text.size() < 2 || (text[0] != '\'' && text[0] != '"') || text.back() != text[0]) return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    if (++i == text.size()) return std::nullopt;
    size_t digits = 0;
    switch (text[i]) {
      case 'n':
        out += '\n';
        continue;
      case 'r':
        out += '\r';
        continue;
      case 't':
        out += '\t';
        continue;
      case '\\':
      case '\'':
      case '"':
        out += text[i];
        continue;
      case 'x':
        digits = 2;
        break;
      case 'u':
        digits = 4;
        break;
      case 'U':
        digits = 8;
        break;
      default:
        return std::nullopt;
    }
    if (i + digits >= text.size()) return std::nullopt;
    uint32_t value = 0;
    const char* first = text.data() + i + 1;
    if (std::from_chars(first, first + digits, value, 16).ptr != first + digits) return std::nullopt;
    if (value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return std::nullopt;
    if (is_bytes)
      out += static_cast<char>(value);
    else
      unicode::append(out, value);
    i += digits;
  }
  return out;
}

}  // namespace

Result<Tokenizer> tokenizer_from_rwkv(std::string_view file, const std::string& name) {
  std::vector<TrieModel::Piece> pieces;
  size_t line_number = 0;
  while (!file.empty()) {
    ++line_number;
    const size_t end = std::min(file.find('\n'), file.size());
    std::string_view line = file.substr(0, end);
    file.remove_prefix(std::min(end + 1, file.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const size_t first = line.find(' ');
    const size_t last = line.rfind(' ');
    const auto bad = [&] {
      return fail(ErrorCode::kBadData, "{}: line {}: expected an id, a piece and its length", name,
                  line_number);
    };
    if (first == std::string_view::npos || last <= first) return bad();
    TrieModel::Piece piece;
    size_t length = 0;
    const char* line_end = line.data() + line.size();
    if (std::from_chars(line.data(), line.data() + first, piece.id).ptr != line.data() + first) return bad();
    if (std::from_chars(line.data() + last + 1, line_end, length).ptr != line_end) return bad();
    auto bytes = python_literal(line.substr(first + 1, last - first - 1));
    if (!bytes.has_value() || bytes->size() != length || bytes->empty()) return bad();
    piece.bytes = std::move(*bytes);
    pieces.push_back(std::move(piece));
  }
  TokenizerParts parts;
  parts.name = name;
  TESSERA_TRY(parts.model, TrieModel::create(pieces, name));
  parts.decoder = make_byte_level_decoder();
  parts.eos_id = 0;  // the id that no piece has: the end of a document
  AddedToken end;
  end.id = 0;
  end.content = "<|endoftext|>";
  end.normalized = false;
  end.special = true;
  parts.added_tokens.push_back(std::move(end));
  return Tokenizer::assemble(std::move(parts));
}

}  // namespace tessera
