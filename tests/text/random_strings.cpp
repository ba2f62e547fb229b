// See random_strings.h.
#include "text/random_strings.h"

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/json.h"
#include "text/unicode.h"

namespace tessera {
namespace {

class Random {
 public:
  explicit Random(uint32_t seed) : state_(seed == 0 ? 1 : seed) {}
  uint32_t next(size_t bound) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 17;
    state_ ^= state_ << 5;
    return static_cast<uint32_t>((state_ >> 16) % bound);
  }

 private:
  uint32_t state_;
};

}  // namespace

RandomStrings::RandomStrings(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {
  const auto file = read_json_file("tests/text/data/strings.json");
  CHECK(file.has_value(), "{}", file.error().message);
  words_ = (*file)["words"].get<std::vector<std::string>>();
  ranges_ = (*file)["ranges"].get<std::vector<std::vector<std::pair<uint32_t, uint32_t>>>>();
}

std::string RandomStrings::make(uint32_t index) const {
  Random random(index * 2654435u + 12345u);
  std::string text;
  const uint32_t segments = random.next(10) + 1;
  for (uint32_t i = 0; i < segments; ++i) {
    const uint32_t kind = random.next(8);
    if (kind < 3) {
      text += words_[random.next(words_.size())];
    } else if (kind == 3 && !tokens_.empty()) {
      text += tokens_[random.next(tokens_.size())];
    } else {
      const auto& ranges = ranges_[random.next(ranges_.size())];
      const uint32_t count = random.next(5) + 1;
      for (uint32_t k = 0; k < count; ++k) {
        const auto [first, last] = ranges[random.next(ranges.size())];
        unicode::append(text, first + random.next(last - first + 1));
      }
    }
  }
  return text;
}

}  // namespace tessera
