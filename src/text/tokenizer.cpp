// See tokenizer.h.
#include "text/tokenizer.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "text/tokenizer_parts.h"
#include "text/truncation.h"
#include "text/unicode.h"

namespace tessera {
namespace {

constexpr size_t kMaxInput = static_cast<size_t>(std::numeric_limits<int32_t>::max());

// What one call works with; kept between calls for its memory and its word cache.
struct Workspace {
  PreTokenizerScratch pretokenizer;
  std::unique_ptr<ModelScratch> model;
  PreTokenized text;
  AlignedText piece;
  std::vector<AddedTokens::Segment> segments;
  std::vector<AddedTokens::Segment> inner;
  TokenSink sink;
};

class WorkspacePool {
 public:
  std::unique_ptr<Workspace> take(const TokenModel& model) {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        std::unique_ptr<Workspace> workspace = std::move(free_.back());
        free_.pop_back();
        return workspace;
      }
    }
    auto workspace = std::make_unique<Workspace>();
    workspace->model = model.make_scratch();
    return workspace;
  }
  void give(std::unique_ptr<Workspace> workspace) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(workspace));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> free_;
};

enum class Details { kIdsOnly, kAll };

}  // namespace

struct Tokenizer::State {
  TokenizerParts parts;
  AddedTokens added;
  bool must_track = false;    // a pre-tokenizer asks where in the input a word starts
  std::vector<bool> skipped;  // ids that DecodeSpecial::kSkip leaves out
  mutable WorkspacePool pool;

  [[nodiscard]] Status pretokenize(std::string_view text, AddedTokenText mode, bool tracked,
                                   Workspace& work) const;
  [[nodiscard]] Result<Encoding> encode_one(std::string_view text, int32_t type_id,
                                            const EncodeOptions& options, Details details, OffsetUnit unit,
                                            Workspace& work) const;
  [[nodiscard]] Result<Encoding> encode(std::span<const std::string_view> inputs,
                                        const EncodeOptions& options, Details details, OffsetUnit unit) const;
  void add_details(const Word& word, size_t first, int32_t type_id, const Workspace& work,
                   Encoding& out) const;
  void drop_surplus_words(const std::vector<size_t>& ends, Workspace& work, Encoding& out) const;
  [[nodiscard]] std::string_view decoded_piece(int32_t id) const;
};

// The piece that decoding sees. An added token that is looked for in normalized text is written in its normalized
// spelling, and whether it is left out as special is decided by that spelling: so does the reference.
std::string_view Tokenizer::State::decoded_piece(int32_t id) const {
  if (const AddedToken* token = added.find(id)) return token->spelling;
  return parts.model->vocabulary().piece(id);
}

// Fills work.text with the words of `text`, which is valid UTF-8.
Status Tokenizer::State::pretokenize(std::string_view text, AddedTokenText mode, bool tracked,
                                     Workspace& work) const {
  PreTokenized& out = work.text;
  out.text.clear(0, tracked);
  out.words.clear();
  work.segments.clear();
  added.split(text, AddedTokens::Pass::kRaw, mode, work.segments);
  for (const AddedTokens::Segment& segment : work.segments) {
    const std::string_view part = text.substr(segment.begin, segment.end - segment.begin);
    const auto origin = static_cast<uint32_t>(segment.begin);
    const size_t begin = out.text.text().size();
    if (segment.token >= 0) {
      out.text.append_source(part, origin);
      out.words.push_back({begin, begin + part.size(), segment.token, origin});
      continue;
    }
    if (parts.normalizer == nullptr) {
      out.text.append_source(part, origin);
    } else {
      work.piece.clear(origin, tracked);
      work.piece.append_source(part, origin);
      TESSERA_TRY_STATUS(parts.normalizer->apply(work.piece, work.pretokenizer.regex));
      out.text.append_unchanged(work.piece, 0, work.piece.text().size());
    }
    const std::string_view normalized = out.text.text().substr(begin);
    work.inner.clear();
    added.split(normalized, AddedTokens::Pass::kNormalized, mode, work.inner);
    for (const AddedTokens::Segment& inner : work.inner) {
      const size_t at = begin + inner.begin;
      const uint32_t word_origin =
          tracked ? out.text.sources()[at].begin : origin + static_cast<uint32_t>(inner.begin);
      out.words.push_back({at, begin + inner.end, inner.token, word_origin});
    }
  }
  if (parts.pretokenizer != nullptr) return parts.pretokenizer->apply(out, work.pretokenizer);
  return {};
}

// Offsets, pieces and so on for the tokens of `word`, which are those from `first` on.
void Tokenizer::State::add_details(const Word& word, size_t first, int32_t type_id, const Workspace& work,
                                   Encoding& out) const {
  const auto sources = work.text.text.sources();
  const std::string_view text = work.text.text.text().substr(word.begin, word.end - word.begin);
  for (size_t i = first; i < work.sink.ids.size(); ++i) {
    const int32_t id = work.sink.ids[i];
    const TokenSink::Range range = work.sink.ranges[i];
    SourceRange source;
    if (range.begin < range.end && range.end <= text.size())
      source = {sources[word.begin + range.begin].begin, sources[word.begin + range.end - 1].end};
    else  // a token longer than its word (a fallback byte of a prefix): its own range, as in the reference
      source = {static_cast<uint32_t>(range.begin), static_cast<uint32_t>(range.end)};
    out.offsets.push_back(source);
    out.type_ids.push_back(type_id);
    out.special.push_back(0);
    const bool own_text =
        word.token >= 0 || (parts.model->keeps_unknown_text() && id == parts.model->unknown_id());
    out.pieces.emplace_back(own_text ? text.substr(range.begin, range.end - range.begin)
                                     : parts.model->vocabulary().piece(id));
  }
}

// The words that the reference still encodes when the result is to be cut to a length: from the side that is kept, up
// to the one that reaches it. (How many tokens there were before cutting decides how two texts share the room.)
void Tokenizer::State::drop_surplus_words(const std::vector<size_t>& ends, Workspace& work,
                                          Encoding& out) const {
  const TruncationRule& rule = *parts.truncation;
  const size_t total = work.sink.ids.size();
  size_t begin = 0;
  size_t end = total;
  const std::vector<Word>& words = work.text.words;
  if (rule.side == TruncationSide::kRight) {
    for (size_t i = 0; i < words.size() && end == total; ++i)
      if (words[i].token < 0 && ends[i] >= rule.max_length) end = ends[i];
  } else {
    for (size_t i = words.size(); i > 0 && begin == 0; --i) {
      const size_t first = i > 1 ? ends[i - 2] : 0;
      if (words[i - 1].token < 0 && total - first >= rule.max_length) begin = first;
    }
  }
  const auto keep = [&](auto& list) {
    if (list.empty()) return;
    list.erase(list.begin() + static_cast<ptrdiff_t>(end), list.end());
    list.erase(list.begin(), list.begin() + static_cast<ptrdiff_t>(begin));
  };
  keep(work.sink.ids);
  keep(out.offsets);
  keep(out.type_ids);
  keep(out.special);
  keep(out.pieces);
}

Result<Encoding> Tokenizer::State::encode_one(std::string_view text, int32_t type_id,
                                              const EncodeOptions& options, Details details, OffsetUnit unit,
                                              Workspace& work) const {
  const bool all = details == Details::kAll;
  TESSERA_TRY_STATUS(pretokenize(text, options.added_tokens, all || must_track, work));
  TokenSink& sink = work.sink;
  sink.ids.clear();
  sink.ranges.clear();
  sink.wants_ranges = all;
  sink.controls =
      options.added_tokens == AddedTokenText::kParse ? ControlTokens::kAllowed : ControlTokens::kAvoided;
  Encoding out;
  const bool cuts = options.truncation == Truncation::kAsFileSays && parts.truncation.has_value() &&
                    (parts.truncation->strategy != TruncationStrategy::kOnlySecond || type_id != 0);
  std::vector<size_t> ends;  // tokens up to each word's end
  const std::string_view whole = work.text.text.text();
  for (const Word& word : work.text.words) {
    const size_t first = sink.ids.size();
    if (word.token >= 0)
      sink.add(word.token, 0, word.end - word.begin);
    else
      TESSERA_TRY_STATUS(
          parts.model->tokenize(whole.substr(word.begin, word.end - word.begin), *work.model, sink));
    if (all) add_details(word, first, type_id, work, out);
    if (cuts) ends.push_back(sink.ids.size());
  }
  if (cuts) drop_surplus_words(ends, work, out);
  if (all && unit == OffsetUnit::kCharacters) out.offsets = character_offsets(text, out.offsets);
  out.unit = unit;
  out.detailed = all;
  out.ids.assign(sink.ids.begin(), sink.ids.end());
  return out;
}

Result<Encoding> Tokenizer::State::encode(std::span<const std::string_view> inputs,
                                          const EncodeOptions& options, Details details,
                                          OffsetUnit unit) const {
  std::vector<Encoding> encodings;
  std::unique_ptr<Workspace> work = pool.take(*parts.model);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].size() > kMaxInput)
      return fail(ErrorCode::kResourceLimit, "{}: a text of {} bytes; at most {} can be encoded at once",
                  parts.name, inputs[i].size(), kMaxInput);
    std::string repaired;
    std::string_view text = inputs[i];
    if (!unicode::is_valid_utf8(text)) {
      repaired = unicode::replace_invalid_utf8(text);
      text = repaired;
    }
    auto encoding = encode_one(text, static_cast<int32_t>(i), options, details, unit, *work);
    if (!encoding) return with_context(encoding.error(), parts.name);
    encodings.push_back(std::move(*encoding));
  }
  pool.give(std::move(work));
  if (options.truncation == Truncation::kAsFileSays && parts.truncation.has_value()) {
    const size_t added_count = options.specials == SpecialTokens::kAdd && parts.postprocessor != nullptr
                                   ? parts.postprocessor->added_tokens(inputs.size())
                                   : 0;
    if (auto status = truncate(encodings, *parts.truncation, added_count); !status)
      return with_context(status.error(), parts.name);
  }
  if (parts.postprocessor != nullptr) parts.postprocessor->apply(encodings, options.specials);
  Encoding out = std::move(encodings.front());
  for (size_t i = 1; i < encodings.size(); ++i) out.append(std::move(encodings[i]));
  return out;
}

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::assemble(TokenizerParts parts) {
  CHECK(parts.model != nullptr && parts.decoder != nullptr, "a tokenizer needs a model and a decoder");
  auto state = std::make_unique<State>();
  RegexScratch scratch;
  std::vector<int32_t> controls;
  for (AddedToken& token : parts.added_tokens) {
    token.spelling = token.content;
    if (token.normalized && parts.normalizer != nullptr) {
      AlignedText text(token.content, 0, false);
      TESSERA_TRY_STATUS(parts.normalizer->apply(text, scratch));
      token.spelling = text.text();
    }
    if (token.special) controls.push_back(token.id);
  }
  parts.model->set_control_ids(controls);
  state->added = AddedTokens(std::move(parts.added_tokens));
  if (parts.pretokenizer != nullptr)
    state->must_track = parts.pretokenizer->needs_alignment() ||
                        (parts.normalizer != nullptr && parts.pretokenizer->needs_origin());
  state->parts = std::move(parts);
  const auto is_special_spelling = [&](std::string_view piece) {
    const AddedToken* token = state->added.find(piece);
    return token != nullptr && token->special;
  };
  const int32_t end = std::max(state->parts.model->vocabulary().end_id(), [&] {
    int32_t last = 0;
    for (const AddedToken& token : state->added.all()) last = std::max(last, token.id + 1);
    return last;
  }());
  state->skipped.resize(static_cast<size_t>(end));
  for (const AddedToken& token : state->added.all())
    state->skipped[static_cast<size_t>(token.id)] = is_special_spelling(state->decoded_piece(token.id));
  return Tokenizer(std::move(state));
}

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  TESSERA_TRY(Encoding encoding,
              state_->encode(std::span(&text, 1), options, Details::kIdsOnly, OffsetUnit::kBytes));
  return std::move(encoding.ids);
}

Result<Encoding> Tokenizer::encode_details(std::string_view text, const EncodeOptions& options,
                                           OffsetUnit unit) const {
  return state_->encode(std::span(&text, 1), options, Details::kAll, unit);
}

Result<Encoding> Tokenizer::encode_pair(std::string_view first, std::string_view second,
                                        const EncodeOptions& options, OffsetUnit unit) const {
  const std::string_view inputs[] = {first, second};
  return state_->encode(inputs, options, Details::kAll, unit);
}

DecoderRun Tokenizer::start_decoding() const {
  return DecoderRun(*state_->parts.decoder);
}

void Tokenizer::decode_one(DecoderRun& run, int32_t id, DecodeSpecial special) const {
  if (!has_token(id)) return;
  if (special == DecodeSpecial::kSkip && state_->skipped[static_cast<size_t>(id)]) return;
  run.piece(state_->decoded_piece(id));
}

std::string Tokenizer::decode(std::span<const int32_t> ids, DecodeSpecial special) const {
  DecoderRun run = start_decoding();
  for (const int32_t id : ids) decode_one(run, id, special);
  run.end();
  return run.take();
}

std::optional<int32_t> Tokenizer::token_to_id(std::string_view piece) const {
  if (const AddedToken* token = state_->added.find(piece)) return token->id;
  const int32_t id = state_->parts.model->vocabulary().find(piece);
  return id == Vocabulary::kNone ? std::nullopt : std::optional(id);
}

std::string Tokenizer::id_to_token(int32_t id) const {
  if (const AddedToken* token = state_->added.find(id)) return token->content;
  return std::string(state_->parts.model->vocabulary().piece(id));
}

bool Tokenizer::has_token(int32_t id) const {
  return state_->added.find(id) != nullptr || state_->parts.model->vocabulary().contains(id);
}

bool Tokenizer::is_special(int32_t id) const {
  const AddedToken* token = state_->added.find(id);
  return token != nullptr && token->special;
}

int32_t Tokenizer::vocabulary_size() const {
  return static_cast<int32_t>(state_->skipped.size());
}

size_t Tokenizer::token_count() const {
  const Vocabulary& vocabulary = state_->parts.model->vocabulary();
  size_t count = vocabulary.size();
  for (const AddedToken& token : state_->added.all())
    if (vocabulary.find(token.content) == Vocabulary::kNone) ++count;
  return count;
}

const std::vector<AddedToken>& Tokenizer::added_tokens() const {
  return state_->added.all();
}
std::optional<int32_t> Tokenizer::bos_id() const {
  return state_->parts.bos_id;
}
std::optional<int32_t> Tokenizer::eos_id() const {
  return state_->parts.eos_id;
}
std::optional<int32_t> Tokenizer::pad_id() const {
  return state_->parts.pad_id;
}

std::optional<int32_t> Tokenizer::unknown_id() const {
  if (state_->parts.unknown_id.has_value()) return state_->parts.unknown_id;
  const int32_t id = state_->parts.model->unknown_id();
  return id == Vocabulary::kNone ? std::nullopt : std::optional(id);
}

std::vector<int32_t> Tokenizer::end_ids() const {
  std::vector<int32_t> ids = state_->parts.end_ids;
  if (eos_id().has_value()) ids.insert(ids.begin(), *eos_id());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

std::vector<int32_t> Tokenizer::template_ids() const {
  return state_->parts.postprocessor == nullptr ? std::vector<int32_t>()
                                                : state_->parts.postprocessor->special_ids();
}

const std::vector<std::string>& Tokenizer::notes() const {
  return state_->parts.notes;
}

}  // namespace tessera
