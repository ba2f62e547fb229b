// Dialects: how a family of files names and lays out the weights. A row maps one slot pattern (or several,
// when the file stores them fused along the rows) to candidate source names, with a transform from a closed
// set. Row ranges are views, never copies.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace tessera {

enum class Transform : uint8_t {
  kNone,
  kAddOne,     // gains: the file stores gain - 1 (a bias beside it is as it is)
  kNegExp,     // vectors: the file stores log(-x)
  kTranspose,  // matrices stored [in, out]
};

// One of several sources whose rows together are a slot: [groups, rows, columns], or [groups, columns, rows]
// when transposed.
struct JoinedSource {
  std::string pattern;  // without suffix
  int64_t rows = 0;     // of each group
  Transform transform = Transform::kNone;
};

struct DialectRow {
  // Internal patterns, "layers.*.attn.q" (or with its suffix, "layers.*.attn.q.bias", where that has a name of its own) ('*' is the layer number, in sources '#' the expert's or the piece's). More than one: the source holds their
  // rows one after another.
  std::vector<std::string> slots = {};
  // Source patterns without suffix: ".weight"/".bias" follow the slot's; a source that ends in '!' is taken
  // literally.
  std::vector<std::string> sources = {};
  Transform transform = Transform::kNone;
  // A fused source may be interleaved: `groups` groups, each holding its share of every slot in order ([q of one head | k | v], ...).
  int64_t groups = 1;
  // How many of the slots, from the first on, are interleaved so; the others follow whole. 0: all.
  size_t interleaved = 0;
  // The other way round: in place of `sources`, one slot joined from several, group by group ([k of one head | v], ...).
  std::vector<JoinedSource> joined = {};
};

struct Dialect {
  std::vector<DialectRow> rows = {};  // an architecture's own rows come first and win
  std::vector<std::string> prefixes =
      {};  // of source names, may be absent or present ("model.", "transformer.")
  std::vector<std::string> ignored = {};  // globs of tensors that are left over on purpose
};

// The names that most checkpoints use, to which an architecture adds only what differs.
[[nodiscard]] const Dialect& hf_dialect();
[[nodiscard]] const Dialect& gguf_dialect();
[[nodiscard]] const Dialect& mlc_dialect();  // hf_dialect() and the names that MLC gives to fused matrices

// '*' matches any run of characters.
[[nodiscard]] bool glob_match(std::string_view pattern, std::string_view text);

}  // namespace tessera
