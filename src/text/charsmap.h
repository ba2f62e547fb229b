// The rules inside a "precompiled_charsmap" of SentencePiece; see precompiled.cpp for the format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tessera {

class Charsmap {
 public:
  [[nodiscard]] static Result<Charsmap> parse(std::string_view bytes, std::string_view where);

  struct Rule {
    size_t length = 0;  // bytes of the text that the rule replaces
    std::string_view replacement;
  };
  // The replacement of the shortest or longest source string that `text` starts with.
  [[nodiscard]] std::optional<std::string_view> shortest(std::string_view text) const;
  [[nodiscard]] std::optional<Rule> longest(std::string_view text) const;

 private:
  template <class Visit>
  void walk(std::string_view text, Visit visit) const;
  [[nodiscard]] std::optional<std::string_view> replacement(uint32_t at) const;
  std::vector<uint32_t> units_;
  std::string pool_;
};

}  // namespace tessera
