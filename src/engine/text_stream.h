// TextStream: the text of one answer as it grows. Ids go in; what comes out are whole characters, without any
// part of a stop string, as soon as they are certain.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace tessera {

class Tokenizer;

enum class StopStrings : uint8_t { kLookedFor, kPassed };
enum class TextState : uint8_t { kOpen, kStopped };

class TextStream {
 public:
  // What follows `prompt` is decoded as its continuation. An empty stop string is an error. The tokenizer must
  // outlive the stream.
  [[nodiscard]] static Result<std::unique_ptr<TextStream>> create(const Tokenizer& tokenizer,
                                                                  std::span<const int32_t> prompt,
                                                                  const std::vector<std::string>& stops);
  ~TextStream();
  TextStream(const TextStream&) = delete;
  TextStream& operator=(const TextStream&) = delete;

  // Appends to `text` what has become certain. kStopped: a stop string is complete, nothing follows.
  TextState push(int32_t id, StopStrings stops, std::string& text);
  // The answer has ended: appends what was held back.
  void flush(std::string& text);

 private:
  struct Parts;
  explicit TextStream(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace tessera
