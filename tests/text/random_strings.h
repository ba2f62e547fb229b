// The random strings of the differential test, the same as tests/text/tools/random_strings.mjs makes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

class RandomStrings {
 public:
  // Reads tests/text/data/strings.json. `tokens` are strings that the tokenizer treats specially.
  explicit RandomStrings(std::vector<std::string> tokens);
  [[nodiscard]] std::string make(uint32_t index) const;

 private:
  std::vector<std::string> words_;
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> ranges_;
  std::vector<std::string> tokens_;
};

}  // namespace tessera
