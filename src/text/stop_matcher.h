// StopMatcher: ends a stream of text at the first of several stop strings, wherever token borders fall. It holds
// back only an end of the text that could still become a stop string.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera {

class StopMatcher {
 public:
  // Empty strings are ignored. Where two stop strings end at the same place, the longer one, which starts earlier,
  // counts.
  explicit StopMatcher(std::vector<std::string> stops);

  // The text that may be shown after `part`. Once stopped(), nothing more.
  [[nodiscard]] std::string push(std::string_view part);

  // The stream is over: what was held back.
  [[nodiscard]] std::string flush();

  [[nodiscard]] bool stopped() const { return stop_ != nullptr; }
  // The stop string that was found; it is not part of the text given out. Only when stopped().
  [[nodiscard]] const std::string& stop() const { return *stop_; }

 private:
  // For each stop string, the Knuth-Morris-Pratt table: how much of the string is still matched after a mismatch.
  struct Pattern {
    std::string text;
    std::vector<size_t> fallback;
    size_t matched = 0;
  };
  std::vector<Pattern> patterns_;
  std::string held_;
  const std::string* stop_ = nullptr;
};

}  // namespace tessera
