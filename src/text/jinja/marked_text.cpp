// See marked_text.h.
#include "text/jinja/marked_text.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>

#include "text/unicode.h"

namespace tessera::jinja {

MarkedText::MarkedText(std::string bytes, Origin origin) : bytes_(std::move(bytes)) {
  if (origin == Origin::kData && !bytes_.empty()) ranges_.push_back({0, bytes_.size()});
}

Origin MarkedText::origin_at(size_t position) const {
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), position,
                                      [](size_t at, const ByteRange& range) { return at < range.end; });
  return after != ranges_.end() && after->begin <= position ? Origin::kData : Origin::kTemplate;
}

void MarkedText::append(std::string_view bytes, Origin origin) {
  if (bytes.empty()) return;
  if (origin == Origin::kData) {
    const size_t begin = bytes_.size();
    if (!ranges_.empty() && ranges_.back().end == begin)
      ranges_.back().end += bytes.size();
    else
      ranges_.push_back({begin, begin + bytes.size()});
  }
  bytes_ += bytes;
  length_ = static_cast<size_t>(-1);
}

void MarkedText::append(const MarkedText& text) {
  append(text, 0, text.size());
}

void MarkedText::append(const MarkedText& text, size_t begin, size_t end) {
  if (begin >= end) return;
  const size_t start = bytes_.size();
  auto range = std::upper_bound(text.ranges_.begin(), text.ranges_.end(), begin,
                                [](size_t at, const ByteRange& r) { return at < r.end; });
  for (; range != text.ranges_.end() && range->begin < end; ++range) {
    const size_t from = start + std::max(range->begin, begin) - begin;
    const size_t to = start + std::min(range->end, end) - begin;
    if (!ranges_.empty() && ranges_.back().end == from)
      ranges_.back().end = to;
    else
      ranges_.push_back({from, to});
  }
  bytes_.append(text.bytes_, begin, end - begin);
  length_ = static_cast<size_t>(-1);
}

MarkedText MarkedText::part(size_t begin, size_t end) const {
  MarkedText out;
  out.append(*this, begin, std::min(end, size()));
  out.markup_ = markup_;
  return out;
}

size_t MarkedText::length() const {
  if (length_ == static_cast<size_t>(-1)) length_ = unicode::count_characters(bytes_);
  return length_;
}

size_t MarkedText::byte_of(size_t index) const {
  if (length() == bytes_.size()) return std::min(index, bytes_.size());
  size_t at = 0;
  while (index > 0 && at < bytes_.size()) {
    at += unicode::sequence_length(bytes_[at]);
    --index;
  }
  return std::min(at, bytes_.size());
}

bool is_python_space(char32_t code) {
  if (code < 0x80) return (code >= 0x09 && code <= 0x0d) || (code >= 0x1c && code <= 0x20);
  return code == 0x85 || code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) ||
         code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

bool is_line_break(char32_t code) {
  return (code >= 0x0a && code <= 0x0d) || (code >= 0x1c && code <= 0x1e) || code == 0x85 || code == 0x2028 ||
         code == 0x2029;
}

MarkedText strip(const MarkedText& text, StripSide side, const std::string* characters) {
  const std::string& bytes = text.bytes();
  const auto goes = [&](size_t at, unicode::Character c) {
    if (characters == nullptr) return is_python_space(c.code);
    return characters->find(bytes.substr(at, c.length)) != std::string::npos;
  };
  size_t begin = 0;
  size_t end = bytes.size();
  if (side != StripSide::kRight) {
    while (begin < end) {
      const unicode::Character c = unicode::decode(bytes, begin);
      if (!goes(begin, c)) break;
      begin += c.length;
    }
  }
  if (side != StripSide::kLeft) {
    while (end > begin) {
      const unicode::Character c = unicode::decode_before(bytes, end);
      if (!goes(end - c.length, c)) break;
      end -= c.length;
    }
  }
  return text.part(begin, end);
}

std::vector<MarkedText> split_lines(const MarkedText& text, bool keep_ends) {
  std::vector<MarkedText> lines;
  const std::string& bytes = text.bytes();
  size_t start = 0;
  for (size_t at = 0; at < bytes.size();) {
    const unicode::Character c = unicode::decode(bytes, at);
    if (!is_line_break(c.code)) {
      at += c.length;
      continue;
    }
    size_t next = at + c.length;
    if (c.code == '\r' && next < bytes.size() && bytes[next] == '\n') ++next;
    lines.push_back(text.part(start, keep_ends ? next : at));
    start = at = next;
  }
  if (start < bytes.size()) lines.push_back(text.part(start, bytes.size()));
  return lines;
}

namespace {

// The sigma at `at` is final when a cased letter stands before it and none behind it, leaving out what case ignores
// (Unicode 15, section 3.13).
bool is_final_sigma(const std::string& bytes, size_t at, size_t length) {
  const auto ignored = [](char32_t code) {
    const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
    return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_ME ||
           category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_LM ||
           category == UTF8PROC_CATEGORY_SK || code == '\'' || code == '.' || code == ':' || code == 0xb7 ||
           code == 0x2019;
  };
  const auto cased = [](char32_t code) {
    const auto c = static_cast<utf8proc_int32_t>(code);
    return utf8proc_toupper(c) != c || utf8proc_tolower(c) != c;
  };
  bool before = false;
  for (size_t i = at; i > 0;) {
    const unicode::Character c = unicode::decode_before(bytes, i);
    i -= c.length;
    if (ignored(c.code)) continue;
    before = cased(c.code);
    break;
  }
  if (!before) return false;
  for (size_t i = at + length; i < bytes.size();) {
    const unicode::Character c = unicode::decode(bytes, i);
    i += c.length;
    if (ignored(c.code)) continue;
    return !cased(c.code);
  }
  return true;
}

void append_lower(std::string& out, const std::string& bytes, size_t at, unicode::Character c) {
  if (c.code == 0x3a3) {
    unicode::append(out, is_final_sigma(bytes, at, c.length) ? 0x3c2 : 0x3c3);
    return;
  }
  char32_t codes[2];
  const int count = unicode::lower(c.code, codes);
  for (int i = 0; i < count; ++i) unicode::append(out, codes[i]);
}

// Upper case of one character where it is more than one (SpecialCasing.txt, unconditional).
struct LongUpper {
  char32_t code;
  const char* upper;
  const char* title;
};
constexpr LongUpper kLongUpper[] = {
    {0xdf, "SS", "Ss"},
    {0xfb00, "FF", "Ff"},
    {0xfb01, "FI", "Fi"},
    {0xfb02, "FL", "Fl"},
    {0xfb03, "FFI", "Ffi"},
    {0xfb04, "FFL", "Ffl"},
    {0xfb05, "ST", "St"},
    {0xfb06, "ST", "St"},
    {0x149, "\u02bcN", "\u02bcN"},
    {0x1f0, "J\u030c", "J\u030c"},
    {0x390, "\u0399\u0308\u0301", "\u0399\u0308\u0301"},
    {0x3b0, "\u03a5\u0308\u0301", "\u03a5\u0308\u0301"},
    {0x587, "\u0535\u0552", "\u0535\u0582"},
    {0x1e96, "H\u0331", "H\u0331"},
    {0x1e97, "T\u0308", "T\u0308"},
    {0x1e98, "W\u030a", "W\u030a"},
    {0x1e99, "Y\u030a", "Y\u030a"},
    {0x1e9a, "A\u02be", "A\u02be"},
};

void append_upper(std::string& out, char32_t code, bool title) {
  for (const LongUpper& row : kLongUpper) {
    if (row.code != code) continue;
    out += title ? row.title : row.upper;
    return;
  }
  const auto c = static_cast<utf8proc_int32_t>(code);
  unicode::append(out, static_cast<char32_t>(title ? utf8proc_totitle(c) : utf8proc_toupper(c)));
}

}  // namespace

MarkedText change_case(const MarkedText& text, LetterCase to) {
  MarkedText out;
  const std::string& bytes = text.bytes();
  bool in_word = false;
  std::string piece;
  for (size_t at = 0; at < bytes.size();) {
    const unicode::Character c = unicode::decode(bytes, at);
    const auto code = static_cast<utf8proc_int32_t>(c.code);
    piece.clear();
    switch (to) {
      case LetterCase::kUpper:
        append_upper(piece, c.code, false);
        break;
      case LetterCase::kLower:
        append_lower(piece, bytes, at, c);
        break;
      case LetterCase::kFold:
        if (c.code == 0xdf)
          piece = "ss";
        else if (c.code == 0x3c2)
          unicode::append(piece, 0x3c3);
        else
          append_lower(piece, "", 0, c);
        break;
      case LetterCase::kCapitalize:
        if (at == 0)
          append_upper(piece, c.code, true);
        else
          append_lower(piece, bytes, at, c);
        break;
      case LetterCase::kTitle:
        if (in_word)
          append_lower(piece, bytes, at, c);
        else
          append_upper(piece, c.code, true);
        break;
      case LetterCase::kSwap:
        if (utf8proc_tolower(code) != code)
          append_lower(piece, bytes, at, c);
        else
          append_upper(piece, c.code, false);
        break;
    }
    in_word = utf8proc_toupper(code) != code || utf8proc_tolower(code) != code;
    out.append(piece, text.origin_at(at));
    at += c.length;
  }
  out.set_markup(text.is_markup());
  return out;
}

MarkedText replace(const MarkedText& text, std::string_view from, const MarkedText& to, int64_t count) {
  MarkedText out;
  const std::string& bytes = text.bytes();
  size_t at = 0;
  if (from.empty()) {  // between all characters, and at both ends
    while (count != 0) {
      out.append(to);
      if (count > 0) --count;
      if (at >= bytes.size()) break;
      const size_t length = unicode::sequence_length(bytes[at]);
      out.append(text, at, at + length);
      at += length;
    }
  } else {
    while (count != 0) {
      const size_t found = bytes.find(from, at);
      if (found == std::string::npos) break;
      out.append(text, at, found);
      out.append(to);
      at = found + from.size();
      if (count > 0) --count;
    }
  }
  out.append(text, at, bytes.size());
  out.set_markup(text.is_markup());
  return out;
}

MarkedText escape_html(const MarkedText& text) {
  if (text.is_markup()) return text;
  MarkedText out;
  size_t done = 0;
  const std::string& bytes = text.bytes();
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char* entity = nullptr;
    switch (bytes[i]) {
      case '&':
        entity = "&amp;";
        break;
      case '<':
        entity = "&lt;";
        break;
      case '>':
        entity = "&gt;";
        break;
      case '\'':
        entity = "&#39;";
        break;
      case '"':
        entity = "&#34;";
        break;
      default:
        continue;
    }
    out.append(text, done, i);
    out.append(entity, text.origin_at(i));
    done = i + 1;
  }
  out.append(text, done, bytes.size());
  out.set_markup(true);
  return out;
}

MarkedText quoted(const MarkedText& text) {
  const std::string& bytes = text.bytes();
  const bool doubled = bytes.find('\'') != std::string::npos && bytes.find('"') == std::string::npos;
  const char quote = doubled ? '"' : '\'';
  MarkedText out(std::string(1, quote));
  for (size_t at = 0; at < bytes.size();) {
    const unicode::Character c = unicode::decode(bytes, at);
    const Origin origin = text.origin_at(at);
    std::string escaped;
    if (c.code == '\\' || c.code == static_cast<char32_t>(quote)) {
      escaped = std::string("\\") + static_cast<char>(c.code);
    } else if (c.code == '\n') {
      escaped = "\\n";
    } else if (c.code == '\r') {
      escaped = "\\r";
    } else if (c.code == '\t') {
      escaped = "\\t";
    } else if (c.code < 0x20 || c.code == 0x7f) {
      escaped = fmt::format("\\x{:02x}", static_cast<uint32_t>(c.code));
    } else if (c.code >= 0x80) {
      switch (utf8proc_category(static_cast<utf8proc_int32_t>(c.code))) {
        case UTF8PROC_CATEGORY_CC:
        case UTF8PROC_CATEGORY_CF:
        case UTF8PROC_CATEGORY_CS:
        case UTF8PROC_CATEGORY_CO:
        case UTF8PROC_CATEGORY_CN:
        case UTF8PROC_CATEGORY_ZL:
        case UTF8PROC_CATEGORY_ZP:
        case UTF8PROC_CATEGORY_ZS: {
          const auto code = static_cast<uint32_t>(c.code);
          escaped = code < 0x100     ? fmt::format("\\x{:02x}", code)
                    : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                                     : fmt::format("\\U{:08x}", code);
          break;
        }
        default:
          break;
      }
    }
    if (escaped.empty())
      out.append(text, at, at + c.length);
    else
      out.append(escaped, origin);
    at += c.length;
  }
  out.append(std::string_view(&quote, 1), Origin::kTemplate);
  return out;
}

}  // namespace tessera::jinja
