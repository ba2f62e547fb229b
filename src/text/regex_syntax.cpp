// translate_regex: from Oniguruma's Ruby syntax to PCRE2's. The differences that tokenizer files meet:
//   \s \w \h and their negations (other sets of characters), inside and outside of brackets;
//   X{n,m}+ repeats X{n,m} (PCRE2 would make it possessive); {,n} is {0,n};
//   brackets inside brackets, and && between them;
//   long names of general categories (\p{Letter}), \p{Alnum} and the like;
//   (?m) lets the dot match newlines (PCRE2: (?s)).
// Everything else is passed on as it is.
#include <array>
#include <cctype>
#include <utility>
#include <vector>

#include "text/regex.h"

namespace tessera {
namespace {

// Bodies of bracket expressions. White_Space:
constexpr std::string_view kSpace =
    R"(\x09-\x0d\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view kNotSpace =
    R"(\x00-\x08\x0e-\x1f\x21-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";
// Letter | Mark | Decimal_Number | Connector_Punctuation, with Other_Alphabetic.
constexpr std::string_view kWord =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";
constexpr std::string_view kHex = "0-9A-Fa-f";
constexpr std::string_view kNotHex = R"(\x00-/:-@G-`g-\x{10ffff})";

constexpr std::array<std::pair<std::string_view, std::string_view>, 40> kPropertyNames = {{
    {"letter", "L"},
    {"lowercaseletter", "Ll"},
    {"uppercaseletter", "Lu"},
    {"titlecaseletter", "Lt"},
    {"modifierletter", "Lm"},
    {"otherletter", "Lo"},
    {"mark", "M"},
    {"nonspacingmark", "Mn"},
    {"spacingmark", "Mc"},
    {"enclosingmark", "Me"},
    {"number", "N"},
    {"decimalnumber", "Nd"},
    {"letternumber", "Nl"},
    {"othernumber", "No"},
    {"punctuation", "P"},
    {"connectorpunctuation", "Pc"},
    {"dashpunctuation", "Pd"},
    {"openpunctuation", "Ps"},
    {"closepunctuation", "Pe"},
    {"initialpunctuation", "Pi"},
    {"finalpunctuation", "Pf"},
    {"otherpunctuation", "Po"},
    {"symbol", "S"},
    {"mathsymbol", "Sm"},
    {"currencysymbol", "Sc"},
    {"modifiersymbol", "Sk"},
    {"othersymbol", "So"},
    {"separator", "Z"},
    {"spaceseparator", "Zs"},
    {"lineseparator", "Zl"},
    {"paragraphseparator", "Zp"},
    {"other", "C"},
    {"control", "Cc"},
    {"format", "Cf"},
    {"unassigned", "Cn"},
    {"privateuse", "Co"},
    {"surrogate", "Cs"},
    {"digit", "Nd"},
    {"punct", "P"},
    {"cntrl", "Cc"},
}};

class Translator {
 public:
  explicit Translator(std::string_view pattern) : in_(pattern) {}

  Result<std::string> run() {
    while (at_ < in_.size()) TESSERA_TRY_STATUS(element());
    return std::move(out_);
  }

 private:
  Failure bad(std::string_view why) const {
    return fail(ErrorCode::kBadData, "regex /{}/: {} at byte {}", in_, why, at_);
  }

  [[nodiscard]] bool starts(std::string_view text) const { return in_.substr(at_).starts_with(text); }

  void atom(std::string_view text) {
    atom_ = out_.size();
    out_ += text;
  }

  Status element() {
    const char c = in_[at_];
    switch (c) {
      case '\\':
        return escape_outside();
      case '[': {
        TESSERA_TRY(const std::string set, bracket(0));
        atom(set);
        return {};
      }
      case '(':
        return group();
      case ')': {
        if (groups_.empty()) return bad("unmatched )");
        const size_t start = groups_.back();
        groups_.pop_back();
        out_ += ')';
        ++at_;
        atom_ = start;
        return {};
      }
      case '{':
        return repeat();
      case '*':
      case '+':
      case '?':
        out_ += c;  // the quantified atom stays the atom of a mark that follows
        ++at_;
        return {};
      case '#':
      case '^':
      case '$':
      case '|':
      case '.':
      default:
        atom(in_.substr(at_, 1));
        ++at_;
        // Continuation bytes belong to the same atom.
        while (at_ < in_.size() && (static_cast<unsigned char>(in_[at_]) & 0xc0) == 0x80) out_ += in_[at_++];
        return {};
    }
  }

  Status group() {
    groups_.push_back(out_.size());
    if (groups_.size() > 100) return bad("groups nested deeper than 100");
    ++at_;
    out_ += '(';
    if (!starts("?")) return {};
    // Flags: (?imx-imx) and (?imx-imx:subexp); m is PCRE2's s.
    size_t end = at_ + 1;
    while (end < in_.size() && (std::isalpha(static_cast<unsigned char>(in_[end])) != 0 || in_[end] == '-'))
      ++end;
    if (end > at_ + 1 && end < in_.size() && (in_[end] == ':' || in_[end] == ')')) {
      for (size_t i = at_; i < end; ++i) {
        const char flag = in_[i];
        if (std::string_view("?imx-").find(flag) == std::string_view::npos)
          return fail(ErrorCode::kUnsupported, "regex /{}/: option {} at byte {}", in_, flag, i);
        out_ += flag == 'm' ? 's' : flag;
      }
      at_ = end;
      if (in_[at_] == ':') {
        out_ += ':';
        ++at_;
      }
    }
    return {};
  }

  // {n}, {n,}, {n,m}, {,m}: an interval when it looks like one, a plain brace otherwise.
  Status repeat() {
    size_t i = at_ + 1;
    const auto digits = [&] {
      const size_t from = i;
      while (i < in_.size() && std::isdigit(static_cast<unsigned char>(in_[i])) != 0) ++i;
      return in_.substr(from, i - from);
    };
    const std::string_view low = digits();
    std::string interval = "{" + (low.empty() ? std::string("0") : std::string(low));
    bool has_comma = false;
    std::string_view high;
    if (i < in_.size() && in_[i] == ',') {
      has_comma = true;
      ++i;
      high = digits();
    }
    if (i >= in_.size() || in_[i] != '}' || (low.empty() && high.empty())) {
      atom("\\{");
      ++at_;
      return {};
    }
    if (has_comma) interval += "," + std::string(high);
    interval += '}';
    at_ = i + 1;
    if (starts("+")) {  // no possessive intervals in this dialect: the interval itself repeats
      out_.insert(atom_, "(?:");
      out_ += interval + ")+";
      ++at_;
      return {};
    }
    out_ += interval;
    return {};
  }

  // Reads \p{...} or \P{...}; the position is behind the p.
  Result<std::string> property(bool negated) {
    if (!starts("{")) return bad("expected { behind \\p");
    const size_t close = in_.find('}', at_);
    if (close == std::string_view::npos) return bad("missing } behind \\p{");
    std::string_view name = in_.substr(at_ + 1, close - at_ - 1);
    at_ = close + 1;
    if (name.starts_with('^')) {
      negated = !negated;
      name.remove_prefix(1);
    }
    std::string plain;
    for (const char c : name)
      if (c != ' ' && c != '_' && c != '-')
        plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const auto set = [&](std::string_view body) { return fmt::format("[{}{}]", negated ? "^" : "", body); };
    if (plain == "space" || plain == "whitespace") return set(kSpace);
    if (plain == "word") return set(kWord);
    if (plain == "alnum") return set(R"(\p{L}\p{M}\p{Nd}\p{Nl})");
    if (plain == "xdigit" || plain == "hexdigit") return set(kHex);
    for (const auto& [long_name, short_name] : kPropertyNames)
      if (plain == long_name) return fmt::format("\\{}{{{}}}", negated ? 'P' : 'p', short_name);
    return fmt::format("\\{}{{{}}}", negated ? 'P' : 'p', name);
  }

  Status escape_outside() {
    if (at_ + 1 >= in_.size()) return bad("\\ at the end");
    const char c = in_[at_ + 1];
    const auto set = [&](std::string_view body, bool negated) {
      atom(fmt::format("[{}{}]", negated ? "^" : "", body));
      at_ += 2;
    };
    switch (c) {
      case 's':
        set(kSpace, false);
        return {};
      case 'S':
        set(kSpace, true);
        return {};
      case 'w':
        set(kWord, false);
        return {};
      case 'W':
        set(kWord, true);
        return {};
      case 'h':
        set(kHex, false);
        return {};
      case 'H':
        set(kHex, true);
        return {};
      case 'p':
      case 'P': {
        at_ += 2;
        TESSERA_TRY(const std::string text, property(c == 'P'));
        atom(text);
        return {};
      }
      case 'u':
        return code_point();
      case 'C':
      case 'M':
      case 'y':
      case 'Y':
        return fail(ErrorCode::kUnsupported, "regex /{}/: \\{} at byte {}", in_, c, at_);
      default:
        return copy_escape();
    }
  }

  // \uHHHH
  Status code_point() {
    size_t i = at_ + 2;
    std::string digits;
    while (i < in_.size() && digits.size() < 4 && std::isxdigit(static_cast<unsigned char>(in_[i])) != 0)
      digits += in_[i++];
    if (digits.size() != 4) return bad("expected four hexadecimal digits behind \\u");
    atom("\\x{" + digits + "}");
    at_ = i;
    return {};
  }

  // An escape that both dialects read alike: the character behind the backslash and what belongs to it.
  Status copy_escape() {
    atom_ = out_.size();
    const char c = in_[at_ + 1];
    out_ += in_.substr(at_, 2);
    at_ += 2;
    while (at_ < in_.size() && (static_cast<unsigned char>(in_[at_]) & 0xc0) == 0x80) out_ += in_[at_++];
    if ((c == 'x' || c == 'o' || c == 'k' || c == 'g') && at_ < in_.size() &&
        (in_[at_] == '{' || in_[at_] == '<')) {
      const size_t close = in_.find(in_[at_] == '{' ? '}' : '>', at_);
      if (close == std::string_view::npos) return bad("unfinished escape");
      out_ += in_.substr(at_, close + 1 - at_);
      at_ = close + 1;
    } else if (c == 'x') {
      for (int i = 0; i < 2 && at_ < in_.size() && std::isxdigit(static_cast<unsigned char>(in_[at_])) != 0;
           ++i)
        out_ += in_[at_++];
    }
    return {};
  }

  // [...], from the opening bracket on; the result is a PCRE2 expression that matches one character. Parts that
  // cannot stand inside PCRE2's brackets become alternatives, intersections become lookaheads.
  Result<std::string> bracket(int depth) {
    if (depth > 20) return bad("brackets nested deeper than 20");
    ++at_;
    bool negated = false;
    if (starts("^")) {
      negated = true;
      ++at_;
    }
    std::vector<std::string> parts;  // joined by &&
    std::string body;
    std::vector<std::string> alternatives;
    const auto finish_part = [&] {
      std::string part = body.empty() ? std::string() : "[" + body + "]";
      if (!alternatives.empty()) {
        for (const std::string& other : alternatives) part += (part.empty() ? "" : "|") + other;
        part = "(?:" + part + ")";
      }
      parts.push_back(part.empty() ? "(?!)" : part);
      body.clear();
      alternatives.clear();
    };
    bool first = true;
    while (true) {
      if (at_ >= in_.size()) return bad("missing ]");
      if (in_[at_] == ']' && !first) {
        ++at_;
        break;
      }
      if (starts("&&")) {
        finish_part();
        at_ += 2;
      } else if (starts("[:")) {
        TESSERA_TRY_STATUS(posix_class(&body, &alternatives));
      } else if (in_[at_] == '[') {
        TESSERA_TRY(const std::string inner, bracket(depth + 1));
        if (inner.starts_with('[') && !inner.starts_with("[^"))
          body += inner.substr(1, inner.size() - 2);
        else
          alternatives.push_back(inner);
      } else if (in_[at_] == '\\') {
        TESSERA_TRY_STATUS(escape_inside(&body, &alternatives));
      } else {
        if (in_[at_] == ']') body += '\\';  // a ] right behind the bracket is a character
        body += in_[at_++];
      }
      first = false;
    }
    if (parts.empty() && alternatives.empty() && !body.empty())
      return fmt::format("[{}{}]", negated ? "^" : "", body);
    finish_part();
    std::string all = parts.back();
    for (size_t i = 0; i + 1 < parts.size(); ++i) all = "(?=" + parts[i] + ")" + all;
    if (negated) return "(?:(?!" + all + ")(?s:.))";
    return "(?:" + all + ")";
  }

  Status posix_class(std::string* body, std::vector<std::string>* alternatives) {
    const size_t close = in_.find(":]", at_ + 2);
    if (close == std::string_view::npos) return bad("missing :]");
    std::string_view name = in_.substr(at_ + 2, close - at_ - 2);
    const bool negated = name.starts_with('^');
    if (negated) name.remove_prefix(1);
    std::string_view set;
    if (name == "space")
      set = kSpace;
    else if (name == "word")
      set = kWord;
    else if (name == "alnum")
      set = R"(\p{L}\p{M}\p{Nd}\p{Nl})";
    else if (name == "alpha")
      set = R"(\p{L}\p{M}\p{Nl})";
    else if (name == "xdigit")
      set = kHex;
    else if (name == "digit")
      set = R"(\p{Nd})";
    else if (name == "upper")
      set = R"(\p{Lu})";
    else if (name == "lower")
      set = R"(\p{Ll})";
    else if (name == "punct")
      set = R"(\p{P}$+<=>^`|~)";
    else if (name == "cntrl")
      set = R"(\p{Cc})";
    else
      return fail(ErrorCode::kUnsupported, "regex /{}/: [:{}:] at byte {}", in_, name, at_);
    at_ = close + 2;
    if (negated)
      alternatives->push_back(fmt::format("[^{}]", set));
    else
      *body += set;
    return {};
  }

  Status escape_inside(std::string* body, std::vector<std::string>* alternatives) {
    if (at_ + 1 >= in_.size()) return bad("\\ at the end");
    const char c = in_[at_ + 1];
    const auto add = [&](std::string_view text) {
      *body += text;
      at_ += 2;
    };
    switch (c) {
      case 's':
        add(kSpace);
        return {};
      case 'S':
        add(kNotSpace);
        return {};
      case 'w':
        add(kWord);
        return {};
      case 'W':
        alternatives->push_back(fmt::format("[^{}]", kWord));
        at_ += 2;
        return {};
      case 'h':
        add(kHex);
        return {};
      case 'H':
        add(kNotHex);
        return {};
      case 'p':
      case 'P': {
        at_ += 2;
        TESSERA_TRY(const std::string text, property(c == 'P'));
        if (!text.starts_with('['))
          *body += text;
        else if (!text.starts_with("[^"))
          *body += text.substr(1, text.size() - 2);
        else
          alternatives->push_back(text);
        return {};
      }
      default: {
        // copy_escape and code_point write to out_: borrow it.
        std::string saved = std::move(out_);
        const size_t saved_atom = atom_;
        out_.clear();
        const Status status = c == 'u' ? code_point() : copy_escape();
        *body += out_;
        out_ = std::move(saved);
        atom_ = saved_atom;
        return status;
      }
    }
  }

  std::string_view in_;
  size_t at_ = 0;
  std::string out_;
  size_t atom_ = 0;             // where the last atom starts in out_
  std::vector<size_t> groups_;  // where the open groups start in out_
};

}  // namespace

Result<std::string> translate_regex(std::string_view pattern) {
  return Translator(pattern).run();
}

}  // namespace tessera
