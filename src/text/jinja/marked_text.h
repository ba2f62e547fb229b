// MarkedText: the string of the template engine: UTF-8 bytes and the ranges of them that came from request data.
// Every filter, method and operator carries the ranges along, so that a rendered prompt says which of its bytes the
// template wrote and which somebody sent. Lengths and positions of Python's string operations are characters; the
// functions here that take bytes say so.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::jinja {

struct ByteRange {
  size_t begin = 0;
  size_t end = 0;
  bool operator==(const ByteRange&) const = default;
};

enum class Origin : uint8_t {
  kTemplate,  // written by the template or by the engine for it
  kData,      // came with the request
};

class MarkedText {
 public:
  MarkedText() = default;
  explicit MarkedText(std::string bytes, Origin origin = Origin::kTemplate);

  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  // Ascending, not overlapping, not touching, none empty.
  [[nodiscard]] const std::vector<ByteRange>& data_ranges() const { return ranges_; }
  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  [[nodiscard]] size_t size() const { return bytes_.size(); }
  // Whether the byte at `position` came from data.
  [[nodiscard]] Origin origin_at(size_t position) const;
  [[nodiscard]] bool any_data() const { return !ranges_.empty(); }

  void append(std::string_view bytes, Origin origin);
  void append(const MarkedText& text);
  // Bytes [begin, end) of `text`.
  void append(const MarkedText& text, size_t begin, size_t end);
  // Bytes [begin, end).
  [[nodiscard]] MarkedText part(size_t begin, size_t end) const;

  // HTML-safe, as Python's markupsafe marks strings: joining it with another string escapes that one.
  [[nodiscard]] bool is_markup() const { return markup_; }
  void set_markup(bool markup) { markup_ = markup; }

  // Characters, counted once.
  [[nodiscard]] size_t length() const;
  // The byte where character `index` (up to length()) starts.
  [[nodiscard]] size_t byte_of(size_t index) const;

 private:
  std::string bytes_;
  std::vector<ByteRange> ranges_;
  bool markup_ = false;
  mutable size_t length_ = static_cast<size_t>(-1);
};

// White space as Python's str.isspace has it.
[[nodiscard]] bool is_python_space(char32_t code);
// Where Python's str.splitlines breaks.
[[nodiscard]] bool is_line_break(char32_t code);

enum class StripSide : uint8_t { kLeft, kRight, kBoth };
// Python's strip: of white space, or of the characters of `characters`.
[[nodiscard]] MarkedText strip(const MarkedText& text, StripSide side,
                               const std::string* characters = nullptr);

// The lines without their ends.
[[nodiscard]] std::vector<MarkedText> split_lines(const MarkedText& text, bool keep_ends = false);

// Python's upper, lower and so on, character by character; what comes of a data character is data.
enum class LetterCase : uint8_t { kUpper, kLower, kCapitalize, kTitle, kSwap, kFold };
[[nodiscard]] MarkedText change_case(const MarkedText& text, LetterCase to);

// Replaces up to `count` (negative: all) of `from`.
[[nodiscard]] MarkedText replace(const MarkedText& text, std::string_view from, const MarkedText& to,
                                 int64_t count = -1);

// & < > ' " as HTML entities, the result marked as HTML-safe; a text that is so already stays.
[[nodiscard]] MarkedText escape_html(const MarkedText& text);

// Python's repr of a string: quotes and escapes.
[[nodiscard]] MarkedText quoted(const MarkedText& text);

}  // namespace tessera::jinja
