// See truncation.h.
#include "text/truncation.h"

#include <algorithm>
#include <utility>

namespace tessera {
namespace {

void cut(Encoding& encoding, size_t length, TruncationSide side) {
  const size_t size = encoding.size();
  if (length >= size) return;
  const auto cut_one = [&](auto& list) {
    if (list.empty()) return;
    const auto drop = static_cast<ptrdiff_t>(size - length);
    if (side == TruncationSide::kRight)
      list.erase(list.end() - drop, list.end());
    else
      list.erase(list.begin(), list.begin() + drop);
  };
  cut_one(encoding.ids);
  cut_one(encoding.offsets);
  cut_one(encoding.type_ids);
  cut_one(encoding.special);
  cut_one(encoding.pieces);
}

// The longer of the two is cut to the length of the shorter, then both alike.
std::pair<size_t, size_t> share(size_t first, size_t second, size_t max_length) {
  size_t shorter = std::min(first, second);
  size_t longer = shorter;
  if (shorter <= max_length) longer = std::max(shorter, max_length - shorter);
  if (shorter + longer > max_length) {
    shorter = max_length / 2;
    longer = shorter + max_length % 2;
  }
  return first > second ? std::pair(longer, shorter) : std::pair(shorter, longer);
}

}  // namespace

Status truncate(std::vector<Encoding>& encodings, const TruncationRule& rule, size_t added) {
  if (added > rule.max_length)
    return fail(ErrorCode::kInvalidArgument, "truncation to {} tokens leaves no room for {} special ones",
                rule.max_length, added);
  const size_t max_length = rule.max_length - added;
  size_t total = 0;
  for (const Encoding& encoding : encodings) total += encoding.size();
  if (max_length == 0) {
    for (Encoding& encoding : encodings) cut(encoding, 0, rule.side);
    return {};
  }
  if (total <= max_length) return {};
  if (rule.strategy == TruncationStrategy::kLongestFirst) {
    if (encodings.size() == 1) {
      cut(encodings[0], max_length, rule.side);
    } else {
      const auto [first, second] = share(encodings[0].size(), encodings[1].size(), max_length);
      cut(encodings[0], first, rule.side);
      cut(encodings[1], second, rule.side);
    }
    return {};
  }
  const size_t target = rule.strategy == TruncationStrategy::kOnlyFirst ? 0 : 1;
  if (target >= encodings.size())
    return fail(ErrorCode::kInvalidArgument, "truncation of the second text: there is one text");
  const size_t size = encodings[target].size();
  const size_t excess = total - max_length;
  if (size <= excess)
    return fail(ErrorCode::kInvalidArgument, "truncation to {} tokens: the text to cut has {}, {} too few",
                max_length, size, excess - size + 1);
  cut(encodings[target], size - excess, rule.side);
  return {};
}

}  // namespace tessera
