// PrecisionPolicy: which format every weight gets when a model is packed, asked for by a text such as
// "q4,head=f16,blk:0-1=q8": a base, then terms for groups of weights or for layers, of which the later ones win. Gains, biases,
// routers and gates are never packed. Recipes are policies with well-known names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/slots.h"
#include "tensor/format.h"

namespace tessera {

// Layers that a term is for. kMoreBits: the first and last eighth and every third layer between them, where more bits pay most.
enum class LayerSet : uint8_t { kAll, kRange, kFirstEighth, kMoreBits };

struct PrecisionTerm {
  std::string text;                // as written, for messages
  std::optional<SlotGroup> group;  // none: every group
  std::string_view pattern_end;    // only slots whose pattern ends so (".v"); "" all
  LayerSet layers = LayerSet::kAll;
  int64_t first = 0;  // kRange, inclusive
  int64_t last = 0;
  Format format;
};

// What happens where a row is no multiple of a format's block.
enum class UnevenRows : uint8_t {
  kRefused,    // an error
  kNextFormat  // the nearest format with shorter blocks, at least as many bits; float16 at last
};

class PrecisionPolicy {
 public:
  // base[,group=format]...[,blk:a[-b]=format]...; groups: qkv, o, gate_up, down, experts, head, embed. Without a base: q4.
  // An error names the term.
  [[nodiscard]] static Result<PrecisionPolicy> parse(std::string_view text);
  // A recipe by name ("q4_k_m"), else a policy.
  [[nodiscard]] static Result<PrecisionPolicy> parse_recipe(std::string_view text);
  [[nodiscard]] static std::vector<std::string_view> recipe_names();

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] UnevenRows uneven_rows() const { return uneven_; }

  // Layers out of range, groups that this model does not have, two formats for one tied matrix: an error that names the term.
  [[nodiscard]] Status check(const ModelSpec& spec, const std::vector<Slot>& slots) const;
  // The format of a slot; nullopt for what keeps its own (vectors, routers, gates). kNextFormat is applied.
  [[nodiscard]] Result<std::optional<Format>> format_of(const Slot& slot, const ModelSpec& spec) const;

 private:
  std::string text_;
  Format base_;
  std::vector<PrecisionTerm> terms_;
  UnevenRows uneven_ = UnevenRows::kRefused;
};

// "q4_0", "q4", "Q8_0", "bf16", ...: formats that can be encoded.
[[nodiscard]] Result<Format> parse_packed_format(std::string_view name);

}  // namespace tessera
