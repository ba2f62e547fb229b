// How a Bpe is built: from merge rules, or from scores.
#include <algorithm>

#include "text/bpe.h"
#include "text/byte_level.h"
#include "text/unicode.h"

namespace tessera {
namespace {

constexpr char32_t kDirectCharacters = 0x800;  // one or two bytes

}  // namespace

Result<std::unique_ptr<Bpe>> Bpe::create(Vocabulary vocabulary, const std::vector<Merge>& merges,
                                         Options options, std::string_view where) {
  std::unique_ptr<Bpe> bpe(new Bpe());
  bpe->vocabulary_ = std::move(vocabulary);
  bpe->options_ = std::move(options);
  TESSERA_TRY_STATUS(bpe->prepare());
  TESSERA_TRY_STATUS(bpe->add_merges(merges, where));
  return bpe;
}

Result<std::unique_ptr<Bpe>> Bpe::create_from_scores(Vocabulary vocabulary, std::span<const float> scores,
                                                     const std::vector<bool>& mergeable, Options options,
                                                     std::string_view where) {
  std::unique_ptr<Bpe> bpe(new Bpe());
  bpe->vocabulary_ = std::move(vocabulary);
  bpe->options_ = std::move(options);
  bpe->late_fallback_ = true;
  const auto ids = static_cast<size_t>(bpe->vocabulary_.end_id());
  if (scores.size() < ids || mergeable.size() < ids)
    return fail(ErrorCode::kBadData, "{}: expected {} scores, found {}", where, ids, scores.size());
  TESSERA_TRY_STATUS(bpe->prepare());
  bpe->add_score_merges(scores, mergeable);
  return bpe;
}

Result<std::unique_ptr<Bpe>> Bpe::create_from_ranks(Vocabulary vocabulary, const std::vector<bool>& mergeable,
                                                    Options options, std::string_view where) {
  const auto ids = static_cast<size_t>(vocabulary.end_id());
  std::vector<float> scores(ids);
  for (size_t id = 0; id < ids; ++id) scores[id] = -static_cast<float>(id);  // exact: ids are below 2^24
  return create_from_scores(std::move(vocabulary), scores, mergeable, std::move(options), where);
}

Status Bpe::prepare() {
  if (options_.unknown.has_value()) unknown_id_ = vocabulary_.find(*options_.unknown);
  for (int byte = 0; byte < 256; ++byte) {
    const auto value = static_cast<unsigned char>(byte);
    const std::string piece = options_.alphabet == Alphabet::kBytes
                                  ? unicode::encode(byte_level_character(value))
                                  : fallback_piece(value);
    byte_ids_[value] = vocabulary_.find(piece);
  }
  if (options_.alphabet == Alphabet::kCharacters) {
    character_ids_.resize(kDirectCharacters);
    for (char32_t code = 0; code < kDirectCharacters; ++code)
      character_ids_[code] = vocabulary_.find(unicode::encode(code));
  } else if (options_.ignore_merges) {
    words_.reserve(vocabulary_.size(), vocabulary_.size() * 8);
    for (int32_t id = 0; id < vocabulary_.end_id(); ++id) {
      if (!vocabulary_.contains(id)) continue;
      if (const auto bytes = byte_level_decode(vocabulary_.piece(id)))
        TESSERA_TRY_STATUS(words_.add(*bytes, id));
    }
  }
  return {};
}

Status Bpe::add_merges(const std::vector<Merge>& merges, std::string_view where) {
  merges_.reserve(merges.size());
  std::string joined;
  uint32_t rank = 0;
  const auto missing = [&](std::string_view piece) {
    return fail(ErrorCode::kBadData, "{}: merge {}: \"{}\" is not in the vocabulary", where, rank, piece);
  };
  for (const auto& [left, right] : merges) {
    const int32_t left_id = vocabulary_.find(left);
    if (left_id == Vocabulary::kNone) return missing(left);
    const int32_t right_id = vocabulary_.find(right);
    if (right_id == Vocabulary::kNone) return missing(right);
    if (right.size() < options_.prefix.size())
      return fail(ErrorCode::kBadData, "{}: merge {}: \"{}\" is shorter than continuing_subword_prefix",
                  where, rank, right);
    joined = left;
    joined += right.substr(options_.prefix.size());
    const int32_t result = vocabulary_.find(joined);
    if (result == Vocabulary::kNone) return missing(joined);
    merges_.add(left_id, right_id, {rank, result});
    ++rank;
  }
  return {};
}

int32_t Bpe::extra_symbol(std::string_view character) {
  int32_t extra = extra_characters_.find(character);
  if (extra == Vocabulary::kNone) {
    extra = static_cast<int32_t>(extra_characters_.size());
    if (!extra_characters_.add(character, extra)) return Vocabulary::kNone;
  }
  return vocabulary_.end_id() + extra;
}

void Bpe::add_score_merges(std::span<const float> scores, const std::vector<bool>& mergeable) {
  // Equal scores get equal ranks: then the leftmost pair goes first.
  std::vector<int32_t> order;
  for (int32_t id = 0; id < vocabulary_.end_id(); ++id)
    if (vocabulary_.contains(id) && mergeable[static_cast<size_t>(id)]) order.push_back(id);
  const auto score = [&](int32_t id) { return scores[static_cast<size_t>(id)]; };
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return score(a) > score(b); });
  uint32_t rank = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const int32_t id = order[i];
    if (i > 0 && score(order[i - 1]) != score(id)) ++rank;
    const std::string piece(vocabulary_.piece(id));
    if (vocabulary_.find(piece) != id) continue;  // the same piece under another id
    const size_t first = unicode::sequence_length(piece[0]);
    for (size_t cut = first; cut < piece.size(); cut += unicode::sequence_length(piece[cut])) {
      const std::string_view left = std::string_view(piece).substr(0, cut);
      const std::string_view right = std::string_view(piece).substr(cut);
      const auto part = [&](std::string_view text) {
        const int32_t found = vocabulary_.find(text);
        const bool single = unicode::sequence_length(text[0]) == text.size();
        if (found != Vocabulary::kNone && (single || mergeable[static_cast<size_t>(found)])) return found;
        return single ? extra_symbol(text) : Vocabulary::kNone;
      };
      const int32_t left_id = part(left);
      const int32_t right_id = part(right);
      if (left_id != Vocabulary::kNone && right_id != Vocabulary::kNone)
        merges_.add(left_id, right_id, {rank, id});
    }
  }
}

}  // namespace tessera
