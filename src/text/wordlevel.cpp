// See wordlevel.h.
#include "text/wordlevel.h"

#include "text/unicode.h"

namespace tessera {
namespace {

Failure no_unknown() {
  return fail(ErrorCode::kBadData,
              "the text holds a word that is not in the vocabulary, which has no unknown token");
}

struct Scratch : ModelScratch {
  std::string spelled;
};

}  // namespace

WordLevel::WordLevel(Vocabulary vocabulary, const std::string& unknown) {
  vocabulary_ = std::move(vocabulary);
  unknown_id_ = vocabulary_.find(unknown);
}

std::unique_ptr<ModelScratch> WordLevel::make_scratch() const {
  return std::make_unique<Scratch>();
}

Status WordLevel::tokenize(std::string_view word, ModelScratch&, TokenSink& sink) const {
  int32_t id = vocabulary_.find(word);
  if (id == Vocabulary::kNone || forbidden(id, sink)) id = unknown_id_;
  if (id == Vocabulary::kNone) return no_unknown();
  sink.add(id, 0, word.size());
  return {};
}

WordPiece::WordPiece(Vocabulary vocabulary, Options options) : options_(std::move(options)) {
  vocabulary_ = std::move(vocabulary);
  unknown_id_ = vocabulary_.find(options_.unknown);
}

std::unique_ptr<ModelScratch> WordPiece::make_scratch() const {
  return std::make_unique<Scratch>();
}

Status WordPiece::tokenize(std::string_view word, ModelScratch& model_scratch, TokenSink& sink) const {
  auto& spelled = static_cast<Scratch&>(model_scratch).spelled;
  const size_t ids_before = sink.ids.size();
  const size_t ranges_before = sink.ranges.size();
  bool known = unicode::count_characters(word) <= static_cast<size_t>(options_.max_characters);
  for (size_t begin = 0; known && begin < word.size();) {
    size_t end = word.size();
    int32_t id = Vocabulary::kNone;
    for (; end > begin; end -= unicode::decode_before(word, end).length) {
      spelled.clear();
      if (begin > 0) spelled = options_.prefix;
      spelled += word.substr(begin, end - begin);
      id = vocabulary_.find(spelled);
      if (id != Vocabulary::kNone && !forbidden(id, sink)) break;
      id = Vocabulary::kNone;
    }
    if (id == Vocabulary::kNone) {
      known = false;
      break;
    }
    sink.add(id, begin, end);
    begin = end;
  }
  if (known) return {};
  if (unknown_id_ == Vocabulary::kNone) return no_unknown();
  sink.ids.resize(ids_before);
  sink.ranges.resize(ranges_before);
  sink.add(unknown_id_, 0, word.size());
  return {};
}

}  // namespace tessera
