#include "engine/text_stream.h"

#include "text/stop_matcher.h"
#include "text/stream_decoder.h"

namespace tessera {

struct TextStream::Parts {
  StreamDecoder decoder;
  StopMatcher matcher;
};

TextStream::TextStream(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
TextStream::~TextStream() = default;

Result<std::unique_ptr<TextStream>> TextStream::create(const Tokenizer& tokenizer,
                                                       std::span<const int32_t> prompt,
                                                       const std::vector<std::string>& stops) {
  for (const std::string& stop : stops)
    if (stop.empty()) return fail(ErrorCode::kInvalidArgument, "stop: expected a text, found an empty one");
  std::unique_ptr<Parts> parts(new Parts{StreamDecoder(tokenizer), StopMatcher(stops)});
  parts->decoder.prime(prompt);
  return std::unique_ptr<TextStream>(new TextStream(std::move(parts)));
}

TextState TextStream::push(int32_t id, StopStrings stops, std::string& text) {
  const std::string part = parts_->decoder.push(id);
  if (stops == StopStrings::kPassed) {
    text += part;
    return TextState::kOpen;
  }
  text += parts_->matcher.push(part);
  return parts_->matcher.stopped() ? TextState::kStopped : TextState::kOpen;
}

void TextStream::flush(std::string& text) {
  if (parts_->matcher.stopped()) return;
  text += parts_->matcher.push(parts_->decoder.flush());
  if (!parts_->matcher.stopped()) text += parts_->matcher.flush();
}

}  // namespace tessera
