// See bpe.h. Loading is in bpe_create.cpp.
#include "text/bpe.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "text/bpe_scratch.h"
#include "text/byte_level.h"
#include "text/unicode.h"

namespace tessera {
namespace {

// Up to this many symbols, looking for the best pair anew each time beats a heap.
constexpr size_t kFewSymbols = 32;

}  // namespace

std::unique_ptr<ModelScratch> Bpe::make_scratch() const {
  return std::make_unique<Scratch>();
}

Status Bpe::tokenize(std::string_view word, ModelScratch& model_scratch, TokenSink& sink) const {
  auto& scratch = static_cast<Scratch&>(model_scratch);
  if (options_.ignore_merges) {
    const Vocabulary& words = options_.alphabet == Alphabet::kBytes ? words_ : vocabulary_;
    const int32_t id = words.find(word);
    if (id != Vocabulary::kNone && !forbidden(id, sink)) {
      sink.add(id, 0, word.size());
      return {};
    }
  }
  const bool cached = word.size() <= WordCache::kMaxWord;
  uint64_t hash = 0;
  if (cached) {
    hash = hash_bytes(word);
    size_t at = 0;
    const auto known = scratch.cache.find(word, hash);
    for (const WordCache::Token& token : known) {
      sink.add(token.id, at, at + token.length);
      at += token.length;
    }
    if (!known.empty()) return {};
  }
  if (!start_symbols(word, scratch))
    return fail(ErrorCode::kBadData, "\"{}\" needs the unknown token \"{}\", which is not in the vocabulary",
                word, *options_.unknown);
  merge_symbols(scratch);
  finish_symbols(word, scratch);
  size_t at = 0;
  for (const WordCache::Token& token : scratch.tokens) {
    sink.add(token.id, at, at + token.length);
    at += token.length;
  }
  if (cached) scratch.cache.add(word, hash, scratch.tokens);
  return {};
}

bool Bpe::start_symbols(std::string_view word, Scratch& scratch) const {
  scratch.symbols.clear();
  if (options_.alphabet == Alphabet::kBytes) {
    bool complete = true;
    for (const char c : word) {
      const int32_t id = byte_ids_[static_cast<unsigned char>(c)];
      complete = complete && id >= 0;
      scratch.symbols.emplace_back(id, 1u);
    }
    if (complete) return true;
    scratch.symbols.clear();
  }
  return start_characters(word, scratch);
}

int32_t Bpe::character_id(std::string_view character) const {
  if (options_.alphabet == Alphabet::kBytes) return byte_ids_[static_cast<unsigned char>(character[0])];
  if (character.size() <= 2) {
    const char32_t code = unicode::decode(character, 0).code;
    if (code < character_ids_.size()) return character_ids_[code];
  }
  return vocabulary_.find(character);
}

// The order of unknown and fallback pieces is HuggingFace's: a pending unknown piece is written when the next
// known character comes, byte pieces do not wait for it.
bool Bpe::start_characters(std::string_view word, Scratch& scratch) const {
  std::vector<Symbol>& symbols = scratch.symbols;
  uint32_t unknown_length = 0;  // bytes of the unknown piece that is pending; 0: none
  const bool decorated = !options_.prefix.empty() || !options_.suffix.empty();
  const auto flush = [&] {
    if (unknown_length > 0) symbols.emplace_back(unknown_id_, unknown_length);
    unknown_length = 0;
  };
  for (size_t i = 0; i < word.size();) {
    const size_t length = options_.alphabet == Alphabet::kBytes ? 1 : unicode::sequence_length(word[i]);
    const std::string_view character = word.substr(i, length);
    std::string_view spelled = character;
    int32_t id = Vocabulary::kNone;
    if (decorated) {
      scratch.spelled.clear();
      if (i > 0) scratch.spelled += options_.prefix;
      scratch.spelled += character;
      if (i + length == word.size()) scratch.spelled += options_.suffix;
      spelled = scratch.spelled;
      id = vocabulary_.find(spelled);
    } else {
      id = character_id(character);
    }
    i += length;
    if (id != Vocabulary::kNone) {
      flush();
      symbols.emplace_back(id, static_cast<uint32_t>(length));
      continue;
    }
    if (late_fallback_) {
      const int32_t extra = extra_characters_.find(character);
      symbols.emplace_back(extra != Vocabulary::kNone ? vocabulary_.end_id() + extra : kUnmergeable,
                           static_cast<uint32_t>(length));
      continue;
    }
    if (options_.byte_fallback && options_.alphabet == Alphabet::kCharacters) {
      const bool all = std::all_of(spelled.begin(), spelled.end(),
                                   [&](char c) { return byte_ids_[static_cast<unsigned char>(c)] >= 0; });
      if (all) {
        for (const char c : spelled) symbols.emplace_back(byte_ids_[static_cast<unsigned char>(c)], 1u);
        continue;
      }
    }
    if (unknown_id_ == Vocabulary::kNone) {
      if (options_.unknown.has_value()) return false;
      continue;
    }
    if (!options_.fuse_unknown) flush();
    unknown_length += static_cast<uint32_t>(length);
  }
  flush();
  return true;
}

void Bpe::merge_symbols(Scratch& scratch) const {
  std::vector<Symbol>& symbols = scratch.symbols;
  if (symbols.size() < 2) return;
  for (size_t i = 0; i + 1 < symbols.size(); ++i)
    symbols[i].rule = merges_.find(symbols[i].id, symbols[i + 1].id);
  symbols.back().rule = {};
  if (symbols.size() <= kFewSymbols)
    merge_few(symbols);
  else
    merge_many(scratch);
}

void Bpe::merge_few(std::vector<Symbol>& symbols) const {
  while (true) {
    size_t best = 0;
    for (size_t i = 1; i < symbols.size(); ++i)
      if (symbols[i].rule.rank < symbols[best].rule.rank) best = i;
    if (symbols[best].rule.rank == MergeTable::kNoRank) return;
    symbols[best].id = symbols[best].rule.result;
    symbols[best].length += symbols[best + 1].length;
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(best) + 1);
    symbols[best].rule =
        best + 1 < symbols.size() ? merges_.find(symbols[best].id, symbols[best + 1].id) : MergeTable::Rule{};
    if (best > 0) symbols[best - 1].rule = merges_.find(symbols[best - 1].id, symbols[best].id);
  }
}

// The symbols form a list; a heap holds (rank, position) of every pair. An entry is stale when the pair at its
// position has another rank by now.
void Bpe::merge_many(Scratch& scratch) const {
  std::vector<Symbol>& symbols = scratch.symbols;
  std::vector<uint64_t>& heap = scratch.heap;
  const auto count = static_cast<uint32_t>(symbols.size());
  constexpr uint32_t kEnd = 0xffffffffu;
  heap.clear();
  for (uint32_t i = 0; i < count; ++i) {
    symbols[i].previous = i == 0 ? kEnd : i - 1;
    symbols[i].next = i + 1 == count ? kEnd : i + 1;
    if (symbols[i].rule.rank != MergeTable::kNoRank)
      heap.push_back(static_cast<uint64_t>(symbols[i].rule.rank) << 32 | i);
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  const auto update = [&](uint32_t at) {
    Symbol& symbol = symbols[at];
    symbol.rule = symbol.next == kEnd ? MergeTable::Rule{} : merges_.find(symbol.id, symbols[symbol.next].id);
    if (symbol.rule.rank == MergeTable::kNoRank) return;
    heap.push_back(static_cast<uint64_t>(symbol.rule.rank) << 32 | at);
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  while (!heap.empty()) {
    const uint64_t top = heap.front();
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    heap.pop_back();
    const auto at = static_cast<uint32_t>(top);
    Symbol& symbol = symbols[at];
    if (symbol.length == 0 || symbol.rule.rank != static_cast<uint32_t>(top >> 32)) continue;
    Symbol& right = symbols[symbol.next];
    symbol.id = symbol.rule.result;
    symbol.length += right.length;
    symbol.next = right.next;
    right.length = 0;
    if (symbol.next != kEnd) symbols[symbol.next].previous = at;
    update(at);
    if (symbol.previous != kEnd) update(symbol.previous);
  }
  std::erase_if(symbols, [](const Symbol& symbol) { return symbol.length == 0; });
}

void Bpe::finish_symbols(std::string_view word, Scratch& scratch) const {
  scratch.tokens.clear();
  size_t at = 0;
  bool after_unknown = false;  // SentencePiece: unknown characters in a row are one token
  for (const Symbol& symbol : scratch.symbols) {
    const std::string_view text = word.substr(at, symbol.length);
    at += symbol.length;
    const bool was_unknown = std::exchange(after_unknown, false);
    if (symbol.id >= 0 && symbol.id < vocabulary_.end_id()) {
      scratch.tokens.push_back({symbol.id, symbol.length});
      continue;
    }
    const bool all = options_.byte_fallback && std::all_of(text.begin(), text.end(), [&](char c) {
                       return byte_ids_[static_cast<unsigned char>(c)] >= 0;
                     });
    if (all) {
      for (const char c : text) scratch.tokens.push_back({byte_ids_[static_cast<unsigned char>(c)], 1});
    } else if (unknown_id_ != Vocabulary::kNone) {
      if (was_unknown && options_.fuse_unknown)
        scratch.tokens.back().length += symbol.length;
      else
        scratch.tokens.push_back({unknown_id_, symbol.length});
      after_unknown = true;
    }
  }
}

}  // namespace tessera
