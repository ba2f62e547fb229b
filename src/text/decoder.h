// Decoders: from pieces back to text. A decoder is a chain of stages through which the pieces of a token sequence
// flow; every stage works as they come and holds back only what a later piece may still change, so that decoding a
// stream and decoding the whole are one thing. Text leaves the chain in complete characters.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace tessera {

// One stage at work. A piece arrives as one or more calls of text (whole characters) and one of end_piece.
class DecoderStage {
 public:
  virtual ~DecoderStage() = default;
  virtual void text(std::string_view part) = 0;
  virtual void end_piece() = 0;
  virtual void end() = 0;  // nothing comes after
};

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Builds the stages of this decoder in front of `next`, keeps them alive in `stages`, and returns the first.
  virtual DecoderStage* build(DecoderStage* next,
                              std::vector<std::unique_ptr<DecoderStage>>& stages) const = 0;
};

// A decoding under way.
class DecoderRun {
 public:
  explicit DecoderRun(const Decoder& decoder);
  ~DecoderRun();
  DecoderRun(DecoderRun&&) noexcept;
  DecoderRun& operator=(DecoderRun&&) noexcept;

  void piece(std::string_view piece);
  void end();
  // The text that became certain since the last call.
  [[nodiscard]] std::string take();

 private:
  class Collector;
  std::unique_ptr<Collector> out_;
  std::vector<std::unique_ptr<DecoderStage>> stages_;
  DecoderStage* first_ = nullptr;
};

// A component of tokenizer.json; `where` names it in messages. Null gives the decoder that joins the pieces with
// spaces, as the HuggingFace library does.
[[nodiscard]] Result<std::unique_ptr<Decoder>> create_decoder(const Json& value, const std::string& where);

// What other formats need.
[[nodiscard]] std::unique_ptr<Decoder> make_byte_level_decoder();
enum class LeadingSpace { kKeep, kStrip };
[[nodiscard]] std::unique_ptr<Decoder> make_sentencepiece_decoder(LeadingSpace leading_space);
[[nodiscard]] std::unique_ptr<Decoder> make_wordpiece_decoder();

}  // namespace tessera
