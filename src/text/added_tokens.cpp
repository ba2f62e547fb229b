// See added_tokens.h.
#include "text/added_tokens.h"

#include <algorithm>

#include "text/unicode.h"

namespace tessera {

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    const auto id = static_cast<size_t>(token.id);
    if (id >= by_id_.size()) by_id_.resize(id + 1, -1);
    by_id_[id] = static_cast<int32_t>(i);
  }
  for (const int32_t index : by_id_) {
    if (index < 0) continue;
    const AddedToken& token = tokens_[static_cast<size_t>(index)];
    (token.normalized ? normalized_ : raw_).add(token.spelling, index);
    by_content_.add(token.content, index);
  }
}

const AddedToken* AddedTokens::find(int32_t id) const {
  if (id < 0 || static_cast<size_t>(id) >= by_id_.size() || by_id_[static_cast<size_t>(id)] < 0)
    return nullptr;
  return &tokens_[static_cast<size_t>(by_id_[static_cast<size_t>(id)])];
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  const ByteTrie::Match match = by_content_.longest(content, 0);
  return match.length == content.size() && match.length > 0 ? &tokens_[static_cast<size_t>(match.value)]
                                                            : nullptr;
}

void AddedTokens::split(std::string_view text, Pass pass, AddedTokenText mode,
                        std::vector<Segment>& out) const {
  const ByteTrie& strings = trie(pass);
  size_t done = 0;  // everything before is in `out`
  if (!strings.empty() && mode != AddedTokenText::kPlain) {
    for (size_t i = 0; i < text.size();) {
      if (strings.step(ByteTrie::kRoot, static_cast<unsigned char>(text[i])) == ByteTrie::kNoNode) {
        ++i;
        continue;
      }
      const ByteTrie::Match match = strings.longest(text, i);
      if (match.length == 0) {
        ++i;
        continue;
      }
      const AddedToken& token = tokens_[static_cast<size_t>(match.value)];
      size_t begin = i;
      size_t end = i + match.length;
      i = end;
      if (mode == AddedTokenText::kPlainSpecial && token.special) continue;
      if (token.single_word) {
        const bool word_before = begin > 0 && unicode::is_word(unicode::decode_before(text, begin).code);
        const bool word_behind = end < text.size() && unicode::is_word(unicode::decode(text, end).code);
        if (word_before || word_behind) continue;
      }
      if (token.lstrip) {
        while (begin > done) {
          const unicode::Character c = unicode::decode_before(text, begin);
          if (!unicode::is_white_space(c.code)) break;
          begin -= c.length;
        }
      }
      if (begin < done) begin = done;  // a token before it swallowed the space, or more
      if (token.rstrip) {
        while (end < text.size()) {
          const unicode::Character c = unicode::decode(text, end);
          if (!unicode::is_white_space(c.code)) break;
          end += c.length;
        }
      }
      if (begin > done) out.push_back({done, begin, -1});
      out.push_back({begin, end, token.id});
      done = end;
    }
  }
  if (done < text.size()) out.push_back({done, text.size(), -1});
}

}  // namespace tessera
