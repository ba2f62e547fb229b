// See unigram.h.
#include "text/unigram.h"

#include <algorithm>
#include <limits>

#include "text/byte_level.h"
#include "text/unicode.h"

namespace tessera {
namespace {

constexpr double kUnknownPenalty = 10.0;  // as SentencePiece has it

struct Node {
  double score = 0;
  int64_t begin = -1;  // of the last piece of the best path that ends here; -1: not reached
  int32_t id = Vocabulary::kNone;
};

struct Piece {
  size_t begin = 0;
  size_t end = 0;
  int32_t id = Vocabulary::kNone;
};

}  // namespace

struct Unigram::Scratch : ModelScratch {
  std::vector<Node> nodes;
  std::vector<Piece> pieces;
};

Result<std::unique_ptr<Unigram>> Unigram::create(Vocabulary vocabulary, std::vector<double> scores,
                                                 Options options, std::string_view where) {
  std::unique_ptr<Unigram> model(new Unigram());
  model->vocabulary_ = std::move(vocabulary);
  model->scores_ = std::move(scores);
  const Vocabulary& pieces = model->vocabulary_;
  if (model->scores_.size() < static_cast<size_t>(pieces.end_id()))
    return fail(ErrorCode::kBadData, "{}: expected {} scores, found {}", where, pieces.end_id(),
                model->scores_.size());
  if (options.unknown_id != Vocabulary::kNone && !pieces.contains(static_cast<int32_t>(options.unknown_id)))
    return fail(ErrorCode::kBadData, "{}: unk_id {} is not in the vocabulary", where, options.unknown_id);
  model->unknown_id_ = static_cast<int32_t>(options.unknown_id);
  double lowest = std::numeric_limits<double>::infinity();
  for (int32_t id = 0; id < pieces.end_id(); ++id) {
    const auto index = static_cast<size_t>(id);
    if (!pieces.contains(id) || (!options.usable.empty() && !options.usable[index])) continue;
    const double score = model->scores_[index];
    if (!(score > -std::numeric_limits<double>::infinity() &&
          score < std::numeric_limits<double>::infinity()))
      return fail(ErrorCode::kBadData, "{}: the score of token {} is not finite", where, id);
    lowest = std::min(lowest, score);
    model->trie_.add(pieces.piece(id), pieces.find(pieces.piece(id)));
  }
  model->unknown_score_ = lowest - kUnknownPenalty;
  if (options.byte_fallback)
    for (int byte = 0; byte < 256; ++byte)
      model->byte_ids_.push_back(pieces.find(fallback_piece(static_cast<unsigned char>(byte))));
  return model;
}

std::unique_ptr<ModelScratch> Unigram::make_scratch() const {
  return std::make_unique<Scratch>();
}

Status Unigram::tokenize(std::string_view word, ModelScratch& model_scratch, TokenSink& sink) const {
  auto& scratch = static_cast<Scratch&>(model_scratch);
  auto& nodes = scratch.nodes;
  auto& pieces = scratch.pieces;
  nodes.assign(word.size() + 1, Node{});
  for (size_t begin = 0; begin < word.size();) {
    const size_t length = unicode::sequence_length(word[begin]);
    const double score = nodes[begin].score;
    bool single = false;  // some piece is exactly this character
    const auto offer = [&](size_t end, double total, int32_t id) {
      Node& node = nodes[end];
      if (node.begin < 0 || total > node.score) node = {total, static_cast<int64_t>(begin), id};
    };
    uint32_t at = ByteTrie::kRoot;
    for (size_t end = begin; end < word.size();) {
      at = trie_.step(at, static_cast<unsigned char>(word[end++]));
      if (at == ByteTrie::kNoNode) break;
      const int32_t id = trie_.value(at);
      if (id == ByteTrie::kNoValue || forbidden(id, sink)) continue;
      offer(end, score + scores_[static_cast<size_t>(id)], id);
      single = single || end - begin == length;
    }
    if (!single) offer(begin + length, score + unknown_score_, unknown_id_);
    begin += length;
  }
  pieces.clear();
  for (size_t end = word.size(); end > 0;) {
    const auto begin = static_cast<size_t>(nodes[end].begin);
    const int32_t id = nodes[end].id;
    if (id == unknown_id_ && !pieces.empty() && pieces.back().id == unknown_id_)
      pieces.back().begin = begin;  // unknown characters in a row are one piece
    else
      pieces.push_back({begin, end, id});
    end = begin;
  }
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
    const std::string_view text = word.substr(piece->begin, piece->end - piece->begin);
    int32_t id = piece->id;
    if (id == unknown_id_) {
      id = vocabulary_.find(text);
      if (id != Vocabulary::kNone && forbidden(id, sink)) id = Vocabulary::kNone;
    }
    if (id != Vocabulary::kNone)
      sink.add(id, piece->begin, piece->end);
    else
      TESSERA_TRY_STATUS(add_unknown(text, piece->begin, sink));
  }
  return {};
}

// Writes what stands for a piece that is not in the vocabulary.
Status Unigram::add_unknown(std::string_view text, size_t begin, TokenSink& sink) const {
  const size_t end = begin + text.size();
  const bool spelled = !byte_ids_.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return byte_ids_[static_cast<unsigned char>(c)] != Vocabulary::kNone;
  });
  if (spelled) {
    for (const char c : text) sink.add(byte_ids_[static_cast<unsigned char>(c)], begin, end);
    return {};
  }
  if (unknown_id_ == Vocabulary::kNone)
    return fail(ErrorCode::kBadData, "\"{}\" is not in the vocabulary, which has no unknown token", text);
  sink.add(unknown_id_, begin, end);
  return {};
}

}  // namespace tessera
