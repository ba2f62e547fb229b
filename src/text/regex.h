// Regular expressions of tokenizer files. They are written in the Oniguruma dialect (Ruby's syntax, every line a
// line for ^ and $); regex_syntax.cpp rewrites what PCRE2 reads otherwise and refuses what it cannot, and PCRE2
// (UTF, Unicode properties, JIT) runs them with bounded effort and constant stack.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tessera {

// The pattern in PCRE2's syntax. kBadData for a pattern that is not well formed, kUnsupported for a construct
// that has no equivalent.
[[nodiscard]] Result<std::string> translate_regex(std::string_view pattern);

// What one thread needs to run any number of patterns, one after another.
class RegexScratch {
 public:
  RegexScratch();
  ~RegexScratch();
  RegexScratch(const RegexScratch&) = delete;
  RegexScratch& operator=(const RegexScratch&) = delete;

 private:
  friend class Regex;
  struct State;
  std::unique_ptr<State> state_;
};

class Regex {
 public:
  struct Match {
    size_t begin = 0;
    size_t end = 0;
  };

  // Compiles a pattern in the Oniguruma dialect.
  [[nodiscard]] static Result<Regex> compile(std::string_view pattern);

  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  // Walks over all matches in `text` (valid UTF-8), left to right, as Oniguruma's callers do: an empty match
  // right behind the match before it is passed over.
  class Cursor {
   public:
    // True with the next match, false at the end; kResourceLimit when the bound on effort is reached.
    [[nodiscard]] Result<bool> next(Match* match);

   private:
    friend class Regex;
    Cursor(const Regex& regex, RegexScratch& scratch, std::string_view text)
        : regex_(&regex), scratch_(&scratch), text_(text) {}
    const Regex* regex_;
    RegexScratch* scratch_;
    std::string_view text_;
    size_t from_ = 0;
    size_t last_end_ = static_cast<size_t>(-1);
  };
  [[nodiscard]] Cursor find_all(std::string_view text, RegexScratch& scratch) const {
    return {*this, scratch, text};
  }

  [[nodiscard]] const std::string& pattern() const { return pattern_; }

 private:
  Regex() = default;
  std::string pattern_;
  void* code_ = nullptr;  // pcre2_code
};

}  // namespace tessera
