// See lexer.h.
#include "text/jinja/lexer.h"

#include <algorithm>
#include <array>

#include "text/jinja/marked_text.h"
#include "text/unicode.h"

namespace tessera::jinja {
namespace {

constexpr size_t kMaxSource = size_t{16} << 20;

// Line breaks become \n; one at the end goes.
std::string normalized(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// The longest first.
constexpr std::array<std::string_view, 26> kOperators = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                         "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                         ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

class Lexer {
 public:
  Lexer(std::string source, const std::string& name) : source_(std::move(source)), name_(name) {}

  Result<std::vector<Token>> run() {
    bool line_starting = true;
    while (at_ < source_.size()) {
      const size_t tag = find_tag(at_);
      if (tag == std::string::npos) {
        add_data(at_, source_.size());
        break;
      }
      TESSERA_TRY_STATUS(tag_at(tag, line_starting));
      line_starting = at_ > 0 && source_[at_ - 1] == '\n';
    }
    tokens_.push_back({TokenKind::kEnd, line_, ""});
    return std::move(tokens_);
  }

 private:
  [[nodiscard]] Failure error(const std::string& what) const {
    return fail(ErrorCode::kBadData, "{}: line {}: {}", name_, line_, what);
  }

  [[nodiscard]] bool looking_at(size_t position, std::string_view text) const {
    return std::string_view(source_).substr(std::min(position, source_.size())).starts_with(text);
  }

  [[nodiscard]] size_t find_tag(size_t from) const {
    for (size_t i = from; i + 1 < source_.size(); ++i)
      if (source_[i] == '{' && (source_[i + 1] == '{' || source_[i + 1] == '%' || source_[i + 1] == '#'))
        return i;
    return std::string::npos;
  }

  [[nodiscard]] size_t skip_space(size_t position) const {
    while (position < source_.size()) {
      const unicode::Character c = unicode::decode(source_, position);
      if (!is_python_space(c.code)) break;
      position += c.length;
    }
    return position;
  }

  void advance_to(size_t position) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<ptrdiff_t>(at_),
                                         source_.begin() + static_cast<ptrdiff_t>(position), '\n'));
    at_ = position;
  }

  void add_data(size_t begin, size_t end) {
    if (end > begin) tokens_.push_back({TokenKind::kData, line_, source_.substr(begin, end - begin)});
  }

  // The text [at_, tag) before a tag with the sign of white space behind its opening.
  void add_data_before(size_t tag, char sign, bool is_variable, bool line_starting) {
    size_t end = tag;
    if (sign == '-') {
      while (end > at_) {
        const unicode::Character c = unicode::decode_before(source_, end);
        if (!is_python_space(c.code)) break;
        end -= c.length;
      }
    } else if (sign != '+' && !is_variable) {
      const size_t newline = tag > at_ ? source_.rfind('\n', tag - 1) : std::string::npos;
      const bool has_line = newline != std::string::npos && newline >= at_;
      const size_t line_start = has_line ? newline + 1 : at_;
      if ((has_line || line_starting) && line_start < tag && skip_space(line_start) >= tag) end = line_start;
    }
    add_data(at_, end);
  }

  // Where a block or a comment ends: position behind it with the white space that goes with it.
  [[nodiscard]] size_t end_of_close(size_t close, char sign) const {
    size_t end = close + 2;
    if (sign == '-') return skip_space(end);
    if (sign != '+' && end < source_.size() && source_[end] == '\n') ++end;
    return end;
  }

  Status tag_at(size_t tag, bool line_starting) {
    const char kind = source_[tag + 1];
    size_t inside = tag + 2;
    char sign = ' ';
    if (inside < source_.size() && (source_[inside] == '-' || source_[inside] == '+'))
      sign = source_[inside++];
    if (kind == '%') {
      const size_t raw = raw_begin(inside);
      if (raw != std::string::npos) {
        add_data_before(tag, sign, false, line_starting);
        advance_to(raw);
        return raw_text();
      }
    }
    add_data_before(tag, sign, kind == '{', line_starting);
    advance_to(tag);
    if (kind == '#') return comment(inside);
    tokens_.push_back({kind == '{' ? TokenKind::kVariableBegin : TokenKind::kBlockBegin, line_, ""});
    advance_to(inside);
    return code(kind == '{');
  }

  // Behind "{% raw %}" when that stands at `inside`.
  [[nodiscard]] size_t raw_begin(size_t inside) const {
    size_t i = skip_space(inside);
    if (!looking_at(i, "raw")) return std::string::npos;
    i = skip_space(i + 3);
    if (looking_at(i, "-%}")) return skip_space(i + 3);
    if (looking_at(i, "%}")) return i + 2;
    return std::string::npos;
  }

  Status raw_text() {
    const bool line_starting = source_[at_ - 1] == '\n';
    for (size_t i = at_; i + 1 < source_.size(); ++i) {
      if (!looking_at(i, "{%")) continue;
      size_t inside = i + 2;
      char sign = ' ';
      if (inside < source_.size() && (source_[inside] == '-' || source_[inside] == '+'))
        sign = source_[inside++];
      inside = skip_space(inside);
      if (!looking_at(inside, "endraw")) continue;
      inside = skip_space(inside + 6);
      char close_sign = ' ';
      if (inside < source_.size() && (source_[inside] == '-' || source_[inside] == '+'))
        close_sign = source_[inside++];
      if (!looking_at(inside, "%}")) continue;
      add_data_before(i, sign, false, line_starting);
      advance_to(end_of_close(inside, close_sign));
      return {};
    }
    return error("a raw block without endraw");
  }

  Status comment(size_t inside) {
    // "{#-" has its sign taken already; "{#-#}" closes at once.
    for (size_t i = inside; i + 1 < source_.size(); ++i) {
      if (!looking_at(i, "#}")) continue;
      const char sign = i > inside ? source_[i - 1] : ' ';
      advance_to(end_of_close(i, sign));
      return {};
    }
    return error("a comment without its end");
  }

  Status code(bool is_variable) {
    std::string open;  // brackets that wait for their other half
    while (true) {
      advance_to(skip_space(at_));
      if (at_ >= source_.size())
        return error(is_variable ? "a '{{' without its '}}'" : "a '{%' without its '%}'");
      if (open.empty()) {
        const std::string_view close = is_variable ? "}}" : "%}";
        char sign = ' ';
        size_t position = at_;
        if (source_[at_] == '-' || (source_[at_] == '+' && !is_variable)) sign = source_[position++];
        if (looking_at(position, close)) {
          tokens_.push_back({is_variable ? TokenKind::kVariableEnd : TokenKind::kBlockEnd, line_, ""});
          size_t end = position + 2;
          if (sign == '-')
            end = skip_space(end);
          else if (!is_variable)
            end = end_of_close(position, sign);
          advance_to(end);
          return {};
        }
      }
      const char c = source_[at_];
      if (c == '"' || c == '\'') {
        TESSERA_TRY_STATUS(string(c));
      } else if (is_digit(c)) {
        TESSERA_TRY_STATUS(number());
      } else if (is_name_byte(c)) {
        size_t end = at_;
        while (end < source_.size() && is_name_byte(source_[end])) ++end;
        add(TokenKind::kName, end);
      } else {
        TESSERA_TRY_STATUS(operator_token(open));
      }
    }
  }

  void add(TokenKind kind, size_t end) {
    tokens_.push_back({kind, line_, source_.substr(at_, end - at_)});
    advance_to(end);
  }

  Status operator_token(std::string& open) {
    const auto found = std::find_if(kOperators.begin(), kOperators.end(),
                                    [&](std::string_view text) { return looking_at(at_, text); });
    if (found == kOperators.end())
      return error(fmt::format("unexpected character '{}'",
                               source_.substr(at_, unicode::sequence_length(source_[at_]))));
    const char c = (*found)[0];
    if (c == '(' || c == '[' || c == '{') {
      open += c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c) return error(fmt::format("unexpected '{}'", c));
      open.pop_back();
    }
    add(TokenKind::kOperator, at_ + found->size());
    return {};
  }

  // Digits with single underscores between them, from `i` on.
  [[nodiscard]] size_t digits_end(size_t i) const {
    while (i < source_.size() &&
           (is_digit(source_[i]) || (source_[i] == '_' && i + 1 < source_.size() &&
                                     is_digit(source_[i + 1]) && is_digit(source_[i - 1]))))
      ++i;
    return i;
  }

  Status number() {
    const bool after_dot = !tokens_.empty() && tokens_.back().kind == TokenKind::kOperator &&
                           tokens_.back().text == "." && source_[at_ - 1] == '.';
    const auto letter = at_ + 1 < source_.size() ? static_cast<char>(source_[at_ + 1] | 0x20) : ' ';
    if (source_[at_] == '0' && (letter == 'x' || letter == 'o' || letter == 'b')) {
      size_t end = at_ + 2;
      while (end < source_.size() && is_name_byte(source_[end])) ++end;
      add(TokenKind::kInteger, end);
      return {};
    }
    size_t end = digits_end(at_);
    TokenKind kind = TokenKind::kInteger;
    if (!after_dot) {
      if (end + 1 < source_.size() && source_[end] == '.' && is_digit(source_[end + 1])) {
        end = digits_end(end + 1);
        kind = TokenKind::kFloat;
      }
      if (end < source_.size() && (source_[end] | 0x20) == 'e') {
        size_t exponent = end + 1;
        if (exponent < source_.size() && (source_[exponent] == '+' || source_[exponent] == '-')) ++exponent;
        if (exponent < source_.size() && is_digit(source_[exponent])) {
          end = digits_end(exponent);
          kind = TokenKind::kFloat;
        }
      }
    }
    if (end < source_.size() && is_name_byte(source_[end]))
      return error(fmt::format("'{}' is no number", source_.substr(at_, end + 1 - at_)));
    add(kind, end);
    return {};
  }

  // Four or eight hexadecimal digits, two, or up to three octal ones: a code point.
  Status escaped_code(size_t& i, size_t digits, unsigned base, std::string& out) const {
    uint32_t code = 0;
    size_t count = 0;
    for (; count < digits && i < source_.size(); ++count, ++i) {
      const char c = source_[i];
      const auto lower = static_cast<char>(c | 0x20);
      uint32_t digit = 99;
      if (is_digit(c)) digit = static_cast<uint32_t>(c - '0');
      if (lower >= 'a' && lower <= 'f') digit = static_cast<uint32_t>(lower - 'a') + 10;
      if (digit >= base) break;
      code = code * base + digit;
    }
    if ((base == 16 && count < digits) || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
      return error("a string holds an escape that is no character");
    unicode::append(out, code);
    return {};
  }

  Status string(char quote) {
    std::string value;
    size_t i = at_ + 1;
    while (true) {
      if (i >= source_.size()) return error("a string without its end");
      const char c = source_[i];
      if (c == quote) break;
      if (c != '\\' || i + 1 >= source_.size()) {
        value += c;
        ++i;
        continue;
      }
      const char escape = source_[i + 1];
      i += 2;
      switch (escape) {
        case '\n':
          break;
        case '\\':
        case '\'':
        case '"':
          value += escape;
          break;
        case 'a':
          value += '\a';
          break;
        case 'b':
          value += '\b';
          break;
        case 'f':
          value += '\f';
          break;
        case 'n':
          value += '\n';
          break;
        case 'r':
          value += '\r';
          break;
        case 't':
          value += '\t';
          break;
        case 'v':
          value += '\v';
          break;
        case 'x':
          TESSERA_TRY_STATUS(escaped_code(i, 2, 16, value));
          break;
        case 'u':
          TESSERA_TRY_STATUS(escaped_code(i, 4, 16, value));
          break;
        case 'U':
          TESSERA_TRY_STATUS(escaped_code(i, 8, 16, value));
          break;
        case 'N':
          return fail(ErrorCode::kUnsupported, "{}: line {}: the escape \\N{{name}} is not supported", name_,
                      line_);
        default:
          if (escape >= '0' && escape <= '7') {
            --i;
            TESSERA_TRY_STATUS(escaped_code(i, 3, 8, value));
          } else {
            value += '\\';
            value += escape;
          }
      }
    }
    const int line = line_;
    advance_to(i + 1);
    tokens_.push_back({TokenKind::kString, line, std::move(value)});
    return {};
  }

  std::string source_;
  const std::string& name_;
  size_t at_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view source, const std::string& name) {
  if (source.size() > kMaxSource)
    return fail(ErrorCode::kResourceLimit, "{}: a template of {} bytes; at most {} are read", name,
                source.size(), kMaxSource);
  if (!unicode::is_valid_utf8(source)) return fail(ErrorCode::kBadData, "{}: not valid UTF-8", name);
  return Lexer(normalized(source), name).run();
}

}  // namespace tessera::jinja
