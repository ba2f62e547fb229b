// See stop_matcher.h.
#include "text/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace tessera {

StopMatcher::StopMatcher(std::vector<std::string> stops) {
  for (std::string& stop : stops) {
    if (stop.empty()) continue;
    Pattern pattern;
    pattern.text = std::move(stop);
    pattern.fallback.resize(pattern.text.size() + 1);
    size_t border = 0;
    for (size_t i = 1; i < pattern.text.size(); ++i) {
      while (border > 0 && pattern.text[i] != pattern.text[border]) border = pattern.fallback[border];
      if (pattern.text[i] == pattern.text[border]) ++border;
      pattern.fallback[i + 1] = border;
    }
    patterns_.push_back(std::move(pattern));
  }
}

std::string StopMatcher::push(std::string_view part) {
  if (stopped()) return {};
  size_t longest = 0;
  for (size_t i = 0; i < part.size(); ++i) {
    held_ += part[i];
    longest = 0;
    const Pattern* found = nullptr;
    for (Pattern& pattern : patterns_) {
      while (pattern.matched > 0 && pattern.text[pattern.matched] != part[i])
        pattern.matched = pattern.fallback[pattern.matched];
      if (pattern.text[pattern.matched] == part[i]) ++pattern.matched;
      longest = std::max(longest, pattern.matched);
      if (pattern.matched == pattern.text.size() &&
          (found == nullptr || pattern.text.size() > found->text.size()))
        found = &pattern;
    }
    if (found != nullptr) {
      stop_ = &found->text;
      held_.resize(held_.size() - found->text.size());
      return std::exchange(held_, {});
    }
  }
  if (part.empty()) return {};
  // Characters are given out whole, also where a stop string begins inside of one.
  size_t shown = held_.size() - longest;
  while (shown > 0 && shown < held_.size() && (static_cast<unsigned char>(held_[shown]) & 0xc0) == 0x80)
    --shown;
  std::string out = held_.substr(0, shown);
  held_.erase(0, shown);
  return out;
}

std::string StopMatcher::flush() {
  return std::exchange(held_, {});
}

}  // namespace tessera
