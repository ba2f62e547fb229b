// What Bpe works with while it encodes a word.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/bpe.h"
#include "text/word_cache.h"

namespace tessera {

struct Bpe::Symbol {
  Symbol(int32_t symbol_id, uint32_t bytes) : id(symbol_id), length(bytes) {}
  int32_t id = 0;
  uint32_t length = 0;    // bytes of the word; 0: joined into a symbol before it
  MergeTable::Rule rule;  // of this symbol and the next
  uint32_t previous = 0;  // indices; used by merge_many only
  uint32_t next = 0;
};

struct Bpe::Scratch : ModelScratch {
  std::vector<Symbol> symbols;
  std::vector<uint64_t> heap;
  std::vector<WordCache::Token> tokens;
  std::string spelled;
  WordCache cache;
};

}  // namespace tessera
