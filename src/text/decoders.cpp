// See decoder.h.
#include "text/decoder.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "text/byte_level.h"
#include "text/component.h"
#include "text/pretokenizer.h"
#include "text/regex.h"
#include "text/unicode.h"

namespace tessera {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

// A stage that passes everything on unless it says otherwise.
class Stage : public DecoderStage {
 public:
  explicit Stage(DecoderStage* next) : next_(*next) {}
  void text(std::string_view part) override { next_.text(part); }
  void end_piece() override { next_.end_piece(); }
  void end() override { next_.end(); }

 protected:
  DecoderStage& next_;
};

// A stage that needs each piece as a whole.
class WholePieceStage : public Stage {
 public:
  using Stage::Stage;
  void text(std::string_view part) override { piece_ += part; }
  void end_piece() override {
    whole(piece_);
    piece_.clear();
  }

 protected:
  virtual void whole(std::string& piece) = 0;
  void emit(std::string_view piece) {
    next_.text(piece);
    next_.end_piece();
  }

 private:
  std::string piece_;
};

// No decoder: pieces with a space between them.
class JoinStage : public Stage {
 public:
  using Stage::Stage;
  void text(std::string_view part) override {
    if (!std::exchange(open_, true) && std::exchange(any_, true)) next_.text(" ");
    next_.text(part);
  }
  void end_piece() override {
    text({});
    open_ = false;
  }

 private:
  bool any_ = false;
  bool open_ = false;
};

// Pieces in the byte-level alphabet to bytes; a piece that is not in it stands for its own bytes. All pieces
// become one.
class ByteLevelStage : public WholePieceStage {
 public:
  using WholePieceStage::WholePieceStage;
  void end() override {
    if (!pending_.empty()) next_.text(kReplacement);
    next_.end_piece();
    next_.end();
  }

 protected:
  void whole(std::string& piece) override {
    const auto bytes = byte_level_decode(piece);
    pending_ += bytes.has_value() ? *bytes : piece;
    std::string out;
    size_t held = 0;
    unicode::append_replacing_invalid(out, pending_, &held);
    pending_.erase(0, pending_.size() - held);
    if (!out.empty()) next_.text(out);
  }

 private:
  std::string pending_;  // an incomplete character
};

// Runs of byte pieces ("<0xE4>") to the characters they spell. Ill-formed bytes become U+FFFD, one for each
// maximal subpart, so that characters that are complete can go out at once. (The HuggingFace library writes one
// for every byte of a run with a fault anywhere in it; runs without a fault are the same.)
class ByteFallbackStage : public WholePieceStage {
 public:
  using WholePieceStage::WholePieceStage;
  void end() override {
    end_run();
    next_.end();
  }

 protected:
  void whole(std::string& piece) override {
    const int byte = fallback_byte(piece);
    if (byte < 0) {
      end_run();
      emit(piece);
      return;
    }
    in_run_ = true;
    pending_ += static_cast<char>(byte);
    std::string out;
    size_t held = 0;
    unicode::append_replacing_invalid(out, pending_, &held);
    pending_.erase(0, pending_.size() - held);
    if (!out.empty()) next_.text(out);
  }

 private:
  void end_run() {
    if (!in_run_) return;
    if (!pending_.empty()) next_.text(kReplacement);
    pending_.clear();
    in_run_ = false;
    next_.end_piece();
  }
  std::string pending_;
  bool in_run_ = false;
};

// All pieces become one.
class FuseStage : public Stage {
 public:
  using Stage::Stage;
  void end_piece() override {}
  void end() override {
    next_.end_piece();
    next_.end();
  }
};

// Up to `start` leading and `stop` trailing copies of a character off every piece.
class StripStage : public Stage {
 public:
  StripStage(DecoderStage* next, char32_t content, int64_t start, int64_t stop)
      : Stage(next), content_(unicode::encode(content)), start_(start), stop_(stop) {}

  void text(std::string_view part) override {
    while (leading_ && skipped_ < start_ && part.starts_with(content_)) {
      part.remove_prefix(content_.size());
      ++skipped_;
    }
    if (part.empty()) return;
    leading_ = false;
    if (stop_ == 0) {
      next_.text(part);
      return;
    }
    size_t end = part.size();
    int64_t trailing = 0;
    while (trailing < stop_ && part.substr(0, end).ends_with(content_)) {
      end -= content_.size();
      ++trailing;
    }
    // What was held before this part is trailing no more, except as far as this part is nothing but the content.
    const int64_t kept = end == 0 ? std::min(held_, stop_ - trailing) : 0;
    for (; held_ > kept; --held_) next_.text(content_);
    if (end > 0) next_.text(part.substr(0, end));
    held_ += trailing;
  }
  void end_piece() override {
    leading_ = true;
    skipped_ = 0;
    held_ = 0;
    next_.end_piece();
  }

 private:
  std::string content_;
  int64_t start_;
  int64_t stop_;
  bool leading_ = true;
  int64_t skipped_ = 0;
  int64_t held_ = 0;  // copies at the end that are not passed on yet
};

class ReplaceTextStage : public Stage {
 public:
  ReplaceTextStage(DecoderStage* next, std::string_view from, std::string_view to)
      : Stage(next), from_(from), to_(to) {}

  void text(std::string_view part) override {
    buffer_ += part;
    std::string out;
    size_t done = 0;
    for (size_t at = buffer_.find(from_); at != std::string::npos; at = buffer_.find(from_, done)) {
      out.append(buffer_, done, at - done);
      out += to_;
      done = at + from_.size();
    }
    // Keep the longest end that the next part could complete.
    size_t keep = std::min(from_.size() - 1, buffer_.size() - done);
    while (keep > 0 &&
           !std::string_view(from_).starts_with(std::string_view(buffer_).substr(buffer_.size() - keep)))
      --keep;
    out.append(buffer_, done, buffer_.size() - keep - done);
    buffer_.erase(0, buffer_.size() - keep);
    if (!out.empty()) next_.text(out);
  }
  void end_piece() override {
    if (!buffer_.empty()) next_.text(buffer_);
    buffer_.clear();
    next_.end_piece();
  }

 private:
  std::string from_;
  std::string to_;
  std::string buffer_;
};

class ReplaceRegexStage : public WholePieceStage {
 public:
  ReplaceRegexStage(DecoderStage* next, const Regex& regex, std::string_view to)
      : WholePieceStage(next), regex_(regex), to_(to) {}

 protected:
  void whole(std::string& piece) override {
    std::string out;
    size_t last = 0;
    Regex::Cursor cursor = regex_.find_all(piece, scratch_);
    Regex::Match match;
    while (!piece.empty()) {
      const Result<bool> found = cursor.next(&match);
      if (!found || !*found) break;  // past the bound on effort the rest stays as it is
      out.append(piece, last, match.begin - last);
      out += to_;
      last = match.end;
    }
    out.append(piece, last);
    emit(out);
  }

 private:
  const Regex& regex_;
  RegexScratch scratch_;
  std::string to_;
};

// The replacement character to a space; in the first piece it goes away where one was put in front.
class MetaspaceStage : public Stage {
 public:
  MetaspaceStage(DecoderStage* next, char32_t replacement, PrependScheme scheme)
      : Stage(next),
        replacement_(unicode::encode(replacement)),
        strip_first_(scheme != PrependScheme::kNever) {}

  void text(std::string_view part) override {
    std::string out(part);
    replace_all(out, replacement_, first_ && strip_first_ ? "" : " ");
    next_.text(out);
  }
  void end_piece() override {
    first_ = false;
    next_.end_piece();
  }

 private:
  std::string replacement_;
  bool strip_first_;
  bool first_ = true;
};

void clean_up(std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRules) replace_all(text, from, to);
}

class WordPieceStage : public WholePieceStage {
 public:
  WordPieceStage(DecoderStage* next, std::string_view prefix, bool cleanup)
      : WholePieceStage(next), prefix_(prefix), cleanup_(cleanup) {}

 protected:
  void whole(std::string& piece) override {
    if (!std::exchange(first_, false)) {
      if (piece.starts_with(prefix_))
        piece.erase(0, prefix_.size());
      else
        piece.insert(0, " ");
    }
    if (cleanup_) clean_up(piece);
    emit(piece);
  }

 private:
  std::string prefix_;
  bool cleanup_;
  bool first_ = true;
};

// The suffix that ends a word to a space, except in the last piece: one piece is held back.
class SuffixStage : public WholePieceStage {
 public:
  SuffixStage(DecoderStage* next, std::string_view suffix) : WholePieceStage(next), suffix_(suffix) {}
  void end() override {
    release("");
    next_.end();
  }

 protected:
  void whole(std::string& piece) override {
    release(" ");
    held_ = piece;
  }

 private:
  void release(std::string_view replacement) {
    if (!held_.has_value()) return;
    replace_all(*held_, suffix_, replacement);
    emit(*held_);
    held_.reset();
  }
  std::string suffix_;
  std::optional<std::string> held_;
};

class CtcStage : public WholePieceStage {
 public:
  CtcStage(DecoderStage* next, std::string_view pad, std::string_view delimiter, bool cleanup)
      : WholePieceStage(next), pad_(pad), delimiter_(delimiter), cleanup_(cleanup) {}

 protected:
  void whole(std::string& piece) override {
    if (previous_ == piece) return;
    previous_ = piece;
    replace_all(piece, pad_, "");
    if (cleanup_) {
      clean_up(piece);
      replace_all(piece, delimiter_, " ");
    }
    if (!piece.empty()) emit(piece);
  }

 private:
  std::string pad_;
  std::string delimiter_;
  bool cleanup_;
  std::optional<std::string> previous_;
};

// A decoder of one stage: `make` builds it in front of the next.
template <class Make>
class Single : public Decoder {
 public:
  explicit Single(Make make) : make_(std::move(make)) {}
  DecoderStage* build(DecoderStage* next, std::vector<std::unique_ptr<DecoderStage>>& stages) const override {
    stages.push_back(make_(next));
    return stages.back().get();
  }

 private:
  Make make_;
};

template <class Make>
std::unique_ptr<Decoder> single(Make make) {
  return std::make_unique<Single<Make>>(std::move(make));
}

template <class StageType>
std::unique_ptr<Decoder> plain() {
  return single([](DecoderStage* next) { return std::make_unique<StageType>(next); });
}

std::unique_ptr<Decoder> replace_text(std::string from, std::string to) {
  return single([from = std::move(from), to = std::move(to)](DecoderStage* next) {
    return std::make_unique<ReplaceTextStage>(next, from, to);
  });
}

std::unique_ptr<Decoder> strip(char32_t content, int64_t start, int64_t stop) {
  return single([=](DecoderStage* next) { return std::make_unique<StripStage>(next, content, start, stop); });
}

class Sequence : public Decoder {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Decoder>> parts) : parts_(std::move(parts)) {}
  DecoderStage* build(DecoderStage* next, std::vector<std::unique_ptr<DecoderStage>>& stages) const override {
    for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) next = (*part)->build(next, stages);
    return next;
  }

 private:
  std::vector<std::unique_ptr<Decoder>> parts_;
};

using Made = Result<std::unique_ptr<Decoder>>;

Made read_sequence(const ComponentReader& reader) {
  TESSERA_TRY_STATUS(reader.only({"decoders"}));
  TESSERA_TRY(const Json* list, reader.array("decoders"));
  std::vector<std::unique_ptr<Decoder>> parts;
  for (const Json& item : *list) {
    const std::string where = fmt::format("{}.{}", reader.where(), parts.size());
    if (item.is_null()) return fail(ErrorCode::kBadData, "{}: expected object, found null", where);
    TESSERA_TRY(auto part, create_decoder(item, where));
    parts.push_back(std::move(part));
  }
  return std::make_unique<Sequence>(std::move(parts));
}

Made read_replace(const ComponentReader& reader) {
  TESSERA_TRY_STATUS(reader.only({"pattern", "content"}));
  TESSERA_TRY(TextPattern pattern, read_pattern(reader, "pattern"));
  TESSERA_TRY(std::string content, reader.text("content"));
  if (!pattern.is_regex && !pattern.text.empty())
    return replace_text(std::move(pattern.text), std::move(content));
  auto regex = Regex::compile(pattern.text);
  if (!regex) return with_context(regex.error(), reader.where());
  return single([regex = std::move(*regex), content = std::move(content)](DecoderStage* next) {
    return std::make_unique<ReplaceRegexStage>(next, regex, content);
  });
}

Made read_strip(const ComponentReader& reader) {
  TESSERA_TRY_STATUS(reader.only({"content", "start", "stop"}));
  TESSERA_TRY(const char32_t content, reader.character("content"));
  TESSERA_TRY(const int64_t start, reader.integer("start"));
  TESSERA_TRY(const int64_t stop, reader.integer("stop"));
  if (start < 0 || stop < 0) return reader.error("start and stop must not be negative");
  return strip(content, start, stop);
}

Made read_metaspace(const ComponentReader& reader) {
  TESSERA_TRY_STATUS(reader.only({"replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"}));
  TESSERA_TRY(const char32_t replacement, reader.character("replacement"));
  TESSERA_TRY(const PrependScheme scheme, read_prepend_scheme(reader));
  return single(
      [=](DecoderStage* next) { return std::make_unique<MetaspaceStage>(next, replacement, scheme); });
}

Made read_wordpiece(const ComponentReader& reader) {
  TESSERA_TRY_STATUS(reader.only({"prefix", "cleanup"}));
  TESSERA_TRY(std::string prefix, reader.text("prefix"));
  TESSERA_TRY(const bool cleanup, reader.flag("cleanup"));
  return single([=](DecoderStage* next) { return std::make_unique<WordPieceStage>(next, prefix, cleanup); });
}

Made read_ctc(const ComponentReader& reader) {
  TESSERA_TRY_STATUS(reader.only({"pad_token", "word_delimiter_token", "cleanup"}));
  TESSERA_TRY(const std::string pad, reader.text("pad_token"));
  TESSERA_TRY(const std::string delimiter, reader.text("word_delimiter_token"));
  TESSERA_TRY(const bool cleanup, reader.flag("cleanup"));
  return single(
      [=](DecoderStage* next) { return std::make_unique<CtcStage>(next, pad, delimiter, cleanup); });
}

}  // namespace

// What leaves the chain. A vocabulary may hold pieces that are not UTF-8: a character whose bytes lie in several pieces
// is put together here, what is ill-formed becomes U+FFFD.
class DecoderRun::Collector : public DecoderStage {
 public:
  void text(std::string_view part) override {
    pending_ += part;
    size_t held = 0;
    unicode::append_replacing_invalid(out, pending_, &held);
    pending_.erase(0, pending_.size() - held);
  }
  void end_piece() override {}
  void end() override {
    if (!pending_.empty()) out += kReplacement;
    pending_.clear();
  }
  std::string out;

 private:
  std::string pending_;  // an incomplete character
};

DecoderRun::DecoderRun(const Decoder& decoder) : out_(std::make_unique<Collector>()) {
  first_ = decoder.build(out_.get(), stages_);
}
DecoderRun::~DecoderRun() = default;
DecoderRun::DecoderRun(DecoderRun&&) noexcept = default;
DecoderRun& DecoderRun::operator=(DecoderRun&&) noexcept = default;

void DecoderRun::piece(std::string_view piece) {
  first_->text(piece);
  first_->end_piece();
}
void DecoderRun::end() {
  first_->end();
}
std::string DecoderRun::take() {
  return std::exchange(out_->out, {});
}

std::unique_ptr<Decoder> make_byte_level_decoder() {
  return plain<ByteLevelStage>();
}

std::unique_ptr<Decoder> make_sentencepiece_decoder(LeadingSpace leading_space) {
  std::vector<std::unique_ptr<Decoder>> parts;
  parts.push_back(replace_text("\xE2\x96\x81", " "));
  parts.push_back(plain<ByteFallbackStage>());
  parts.push_back(plain<FuseStage>());
  if (leading_space == LeadingSpace::kStrip) parts.push_back(strip(U' ', 1, 0));
  return std::make_unique<Sequence>(std::move(parts));
}

std::unique_ptr<Decoder> make_wordpiece_decoder() {
  return single([](DecoderStage* next) { return std::make_unique<WordPieceStage>(next, "##", true); });
}

Result<std::unique_ptr<Decoder>> create_decoder(const Json& value, const std::string& where) {
  if (value.is_null()) return plain<JoinStage>();
  TESSERA_TRY(const std::string type, component_type(value, where));
  const ComponentReader reader(value, where);
  if (type == "Sequence") return read_sequence(reader);
  if (type == "Replace") return read_replace(reader);
  if (type == "Strip") return read_strip(reader);
  if (type == "Metaspace") return read_metaspace(reader);
  if (type == "WordPiece") return read_wordpiece(reader);
  if (type == "CTC") return read_ctc(reader);
  if (type == "BPEDecoder") {
    TESSERA_TRY_STATUS(reader.only({"suffix"}));
    TESSERA_TRY(std::string suffix, reader.text("suffix"));
    return single([=](DecoderStage* next) { return std::make_unique<SuffixStage>(next, suffix); });
  }
  if (type == "ByteLevel") {
    TESSERA_TRY_STATUS(reader.only({"add_prefix_space", "trim_offsets", "use_regex"}));
    return plain<ByteLevelStage>();
  }
  if (type != "ByteFallback" && type != "Fuse")
    return fail(ErrorCode::kUnsupported, "{}: unknown decoder \"{}\"", where, type);
  TESSERA_TRY_STATUS(reader.only({}));
  if (type == "Fuse") return plain<FuseStage>();
  return plain<ByteFallbackStage>();
}

}  // namespace tessera
