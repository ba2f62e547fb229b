#include "model/precision.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "formats/format_info.h"

namespace tessera {
namespace {

constexpr std::pair<std::string_view, SlotGroup> kGroups[] = {
    {"qkv", SlotGroup::kQkv},         {"o", SlotGroup::kO},
    {"gate_up", SlotGroup::kGateUp},  {"down", SlotGroup::kDown},
    {"experts", SlotGroup::kExperts}, {"head", SlotGroup::kHead},
    {"embed", SlotGroup::kEmbed}};

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}

Format block(FormatKind kind) {
  return Format::block(kind);
}

// A row of a recipe: which slots, which layers, what format.
struct RecipeTerm {
  std::optional<SlotGroup> group;
  std::string_view pattern_end;
  LayerSet layers;
  FormatKind format;
};

struct Recipe {
  std::string_view name;
  FormatKind base;  // kPlain: plain_base
  DType plain_base;
  std::array<RecipeTerm, 5> terms;
};

// The usual recipes: the head and, where it pays, the value and down projections with more bits than the rest.
constexpr RecipeTerm kNone{SlotGroup::kOther, "", LayerSet::kAll, FormatKind::kPlain};
constexpr RecipeTerm head(FormatKind format) {
  return {SlotGroup::kHead, "", LayerSet::kAll, format};
}
constexpr RecipeTerm embed(FormatKind format) {
  return {SlotGroup::kEmbed, "", LayerSet::kAll, format};
}
constexpr RecipeTerm value(LayerSet layers, FormatKind format) {
  return {SlotGroup::kQkv, ".v", layers, format};
}
constexpr RecipeTerm down(LayerSet layers, FormatKind format) {
  return {SlotGroup::kDown, "", layers, format};
}
constexpr RecipeTerm output(FormatKind format) {
  return {SlotGroup::kO, "", LayerSet::kAll, format};
}
constexpr RecipeTerm expert_down(LayerSet layers, FormatKind format) {
  return {SlotGroup::kExperts, ".down", layers, format};
}
using K = FormatKind;
using L = LayerSet;
constexpr Recipe kRecipes[] = {
    {"f32", K::kPlain, DType::kF32, {kNone, kNone, kNone, kNone, kNone}},
    {"f16", K::kPlain, DType::kF16, {kNone, kNone, kNone, kNone, kNone}},
    {"bf16", K::kPlain, DType::kBF16, {kNone, kNone, kNone, kNone, kNone}},
    {"q8_0", K::kQ8_0, {}, {kNone, kNone, kNone, kNone, kNone}},
    {"q4_0", K::kQ4_0, {}, {head(K::kQ6K), kNone, kNone, kNone, kNone}},
    {"q4_1", K::kQ4_1, {}, {head(K::kQ6K), kNone, kNone, kNone, kNone}},
    {"q5_0", K::kQ5_0, {}, {head(K::kQ6K), kNone, kNone, kNone, kNone}},
    {"q5_1", K::kQ5_1, {}, {head(K::kQ6K), kNone, kNone, kNone, kNone}},
    {"q2_k",
     K::kQ2K,
     {},
     {head(K::kQ6K), value(L::kAll, K::kQ4K), output(K::kQ3K), down(L::kAll, K::kQ3K),
      expert_down(L::kAll, K::kQ3K)}},
    {"q3_k_s", K::kQ3K, {}, {head(K::kQ6K), kNone, kNone, kNone, kNone}},
    {"q3_k_m",
     K::kQ3K,
     {},
     {head(K::kQ6K), value(L::kAll, K::kQ4K), output(K::kQ4K), down(L::kAll, K::kQ4K),
      expert_down(L::kAll, K::kQ4K)}},
    {"q3_k_l",
     K::kQ3K,
     {},
     {head(K::kQ6K), value(L::kAll, K::kQ5K), output(K::kQ5K), down(L::kAll, K::kQ5K),
      expert_down(L::kAll, K::kQ5K)}},
    {"q4_k_s",
     K::kQ4K,
     {},
     {head(K::kQ6K), value(L::kFirstEighth, K::kQ5K), down(L::kFirstEighth, K::kQ5K),
      expert_down(L::kFirstEighth, K::kQ5K), kNone}},
    {"q4_k_m",
     K::kQ4K,
     {},
     {head(K::kQ6K), value(L::kMoreBits, K::kQ6K), down(L::kMoreBits, K::kQ6K),
      expert_down(L::kMoreBits, K::kQ6K), kNone}},
    {"q5_k_s", K::kQ5K, {}, {head(K::kQ6K), kNone, kNone, kNone, kNone}},
    {"q5_k_m",
     K::kQ5K,
     {},
     {head(K::kQ6K), value(L::kMoreBits, K::kQ6K), down(L::kMoreBits, K::kQ6K),
      expert_down(L::kMoreBits, K::kQ6K), kNone}},
    {"q6_k", K::kQ6K, {}, {kNone, kNone, kNone, kNone, kNone}},
    {"iq4_nl",
     K::kIQ4NL,
     {},
     {head(K::kQ6K), value(L::kAll, K::kQ5K), down(L::kFirstEighth, K::kQ5K), kNone, kNone}},
    {"iq4_xs",
     K::kIQ4XS,
     {},
     {head(K::kQ6K), value(L::kAll, K::kQ5K), down(L::kFirstEighth, K::kQ5K), kNone, kNone}},
    {"iq3_s", K::kIQ3S, {}, {head(K::kQ6K), value(L::kAll, K::kQ4K), kNone, kNone, kNone}},
    {"iq3_xxs",
     K::kIQ3XXS,
     {},
     {head(K::kQ5K), embed(K::kIQ3S), value(L::kAll, K::kQ4K), down(L::kFirstEighth, K::kQ4K), kNone}},
    {"iq2_s",
     K::kIQ2S,
     {},
     {head(K::kQ5K), embed(K::kIQ3S), value(L::kAll, K::kQ4K), down(L::kFirstEighth, K::kIQ3S),
      output(K::kIQ3S)}},
    {"iq2_xs",
     K::kIQ2XS,
     {},
     {head(K::kQ5K), embed(K::kQ2K), value(L::kAll, K::kQ4K), down(L::kFirstEighth, K::kQ2K), kNone}},
    {"iq2_xxs",
     K::kIQ2XXS,
     {},
     {head(K::kQ5K), embed(K::kQ2K), value(L::kAll, K::kQ4K), down(L::kFirstEighth, K::kQ2K), kNone}},
    {"tq1_0", K::kTQ1_0, {}, {head(K::kQ6K), embed(K::kQ4K), kNone, kNone, kNone}},
    {"tq2_0", K::kTQ2_0, {}, {head(K::kQ6K), embed(K::kQ4K), kNone, kNone, kNone}},
    {"mxfp4_moe",
     K::kQ8_0,
     {},
     {RecipeTerm{SlotGroup::kExperts, "", L::kAll, K::kMXFP4}, kNone, kNone, kNone, kNone}},
};

// Where a row does not divide into a format's blocks of 256: a format with blocks of 32 and at least as many bits.
Format shorter_blocks(const Format& format) {
  switch (format.kind) {
    case FormatKind::kQ4K:
      return block(FormatKind::kQ5_0);
    case FormatKind::kQ5K:
      return block(FormatKind::kQ5_1);
    case FormatKind::kQ6K:
      return block(FormatKind::kQ8_0);
    default:
      return block(FormatKind::kIQ4NL);
  }
}

Result<int64_t> parse_layer(std::string_view text, std::string_view term) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    return fail(ErrorCode::kInvalidArgument, "precision: {}: expected a layer number, found \"{}\"", term,
                text);
  return value;
}

Result<PrecisionTerm> parse_term(std::string_view text) {
  PrecisionTerm term;
  term.text = text;
  const size_t equals = text.find('=');
  const std::string_view what = text.substr(0, equals);
  auto format = parse_packed_format(text.substr(equals + 1));
  if (!format) return fail(ErrorCode::kInvalidArgument, "precision: {}: {}", text, format.error().message);
  term.format = *format;
  if (what.starts_with("blk:")) {
    const std::string_view range = what.substr(4);
    const size_t dash = range.find('-');
    term.layers = LayerSet::kRange;
    TESSERA_TRY(term.first, parse_layer(range.substr(0, dash), text));
    term.last = term.first;
    if (dash != std::string_view::npos) {
      TESSERA_TRY(term.last, parse_layer(range.substr(dash + 1), text));
    }
    if (term.last < term.first)
      return fail(ErrorCode::kInvalidArgument, "precision: {}: expected a range that rises, found {} to {}",
                  text, term.first, term.last);
    return term;
  }
  std::string names;
  for (const auto& [name, group] : kGroups) {
    if (name == what) term.group = group;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  if (!term.group)
    return fail(ErrorCode::kInvalidArgument,
                "precision: {}: unknown group \"{}\"; expected one of {}, or blk:FIRST-LAST", text, what,
                names);
  return term;
}

bool in_layers(const PrecisionTerm& term, int64_t layer, int64_t layers) {
  switch (term.layers) {
    case LayerSet::kAll:
      return true;
    case LayerSet::kRange:
      return layer >= term.first && layer <= term.last;
    case LayerSet::kFirstEighth:
      return layer >= 0 && layer < std::max<int64_t>(1, layers / 8);
    case LayerSet::kMoreBits:
      return layer >= 0 && (layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2);
  }
  return false;
}

bool is_packed(const Slot& slot) {
  return slot.role != SlotRole::kVector && slot.group != SlotGroup::kOther;
}

// A tied embedding is the head too, and takes the head's format where one is given.
bool is_for(const PrecisionTerm& term, const Slot& slot, const ModelSpec& spec) {
  const bool tied_table = slot.pattern == "embed" && spec.head.tie == HeadTie::kTied;
  if (term.group && *term.group != slot.group && !(tied_table && *term.group == SlotGroup::kHead))
    return false;
  if (!term.pattern_end.empty() && !slot.pattern.ends_with(term.pattern_end)) return false;
  if (term.layers != LayerSet::kAll && slot.layer < 0) return false;
  return in_layers(term, slot.layer, static_cast<int64_t>(spec.layers.size()));
}

}  // namespace

Result<Format> parse_packed_format(std::string_view name) {
  std::string wanted = upper(name);
  if (wanted == "Q4") wanted = "Q4_0";
  if (wanted == "Q8") wanted = "Q8_0";
  std::string names;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    if (wanted == dtype_name(dtype)) return Format::plain(dtype);
    names += (names.empty() ? "" : ", ") + std::string(dtype_name(dtype));
  }
  for (const FormatInfo& info : format_table()) {
    if (info.encode == nullptr) continue;
    if (wanted == info.name) return Format::block(info.kind);
    names += ", " + std::string(info.name);
  }
  return fail(ErrorCode::kInvalidArgument, "unknown format \"{}\"; expected one of {}", name, names);
}

Result<PrecisionPolicy> PrecisionPolicy::parse(std::string_view text) {
  PrecisionPolicy policy;
  policy.text_ = text;
  policy.base_ = Format::block(FormatKind::kQ4_0);
  for (size_t begin = 0, number = 0; begin <= text.size(); ++number) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, comma - begin);
    begin = comma + 1;
    if (part.find('=') != std::string_view::npos) {
      TESSERA_TRY(PrecisionTerm term, parse_term(part));
      policy.terms_.push_back(std::move(term));
    } else if (number == 0) {
      auto base = parse_packed_format(part);
      if (!base) return fail(ErrorCode::kInvalidArgument, "precision: {}", base.error().message);
      policy.base_ = *base;
    } else {
      return fail(ErrorCode::kInvalidArgument,
                  "precision: \"{}\": expected GROUP=FORMAT or blk:FIRST-LAST=FORMAT", part);
    }
  }
  return policy;
}

std::vector<std::string_view> PrecisionPolicy::recipe_names() {
  std::vector<std::string_view> names;
  for (const Recipe& recipe : kRecipes) names.push_back(recipe.name);
  return names;
}

Result<PrecisionPolicy> PrecisionPolicy::parse_recipe(std::string_view text) {
  const std::string wanted = upper(text);
  for (const Recipe& recipe : kRecipes) {
    if (upper(recipe.name) != wanted) continue;
    PrecisionPolicy policy;
    policy.text_ = recipe.name;
    policy.uneven_ = UnevenRows::kNextFormat;
    policy.base_ =
        recipe.base == FormatKind::kPlain ? Format::plain(recipe.plain_base) : Format::block(recipe.base);
    for (const RecipeTerm& row : recipe.terms) {
      if (row.format == FormatKind::kPlain) continue;
      PrecisionTerm term;
      term.text = recipe.name;
      term.group = row.group;
      term.pattern_end = row.pattern_end;
      term.layers = row.layers;
      term.format = Format::block(row.format);
      policy.terms_.push_back(std::move(term));
    }
    return policy;
  }
  return parse(text);
}

Status PrecisionPolicy::check(const ModelSpec& spec, const std::vector<Slot>& slots) const {
  if (uneven_ == UnevenRows::kNextFormat) return {};  // a recipe names more than every model has
  const auto layers = static_cast<int64_t>(spec.layers.size());
  const PrecisionTerm* head = nullptr;
  const PrecisionTerm* embed = nullptr;
  for (const PrecisionTerm& term : terms_) {
    if (term.layers == LayerSet::kRange && term.last >= layers)
      return fail(ErrorCode::kInvalidArgument, "precision: {}: the model has the layers 0 to {}", term.text,
                  layers - 1);
    const bool used = std::any_of(slots.begin(), slots.end(), [&](const Slot& slot) {
      return is_packed(slot) && is_for(term, slot, spec);
    });
    if (!used)
      return fail(ErrorCode::kInvalidArgument, "precision: {}: the model has no such weights", term.text);
    if (term.group == SlotGroup::kHead) head = &term;
    if (term.group == SlotGroup::kEmbed) embed = &term;
  }
  if (spec.head.tie == HeadTie::kTied && head != nullptr && embed != nullptr && head->format != embed->format)
    return fail(ErrorCode::kInvalidArgument,
                "precision: {} and {}: the model's head is its embedding, one matrix", embed->text,
                head->text);
  return {};
}

Result<std::optional<Format>> PrecisionPolicy::format_of(const Slot& slot, const ModelSpec& spec) const {
  if (!is_packed(slot)) return std::optional<Format>();
  Format format = base_;
  std::string_view reason = text_;
  for (const PrecisionTerm& term : terms_) {
    if (!is_for(term, slot, spec)) continue;
    format = term.format;
    reason = term.text;
  }
  const int64_t columns = slot.shape.columns();
  if (columns % format_block(format) == 0) return std::optional(format);
  if (uneven_ == UnevenRows::kRefused)
    return fail(ErrorCode::kInvalidArgument,
                "precision: {}: {} has rows of {} values: {} needs a multiple of {}", reason, slot.name,
                columns, format_name(format), format_block(format));
  const Format shorter = shorter_blocks(format);
  return std::optional(columns % format_block(shorter) == 0 ? shorter : Format::plain(DType::kF16));
}

}  // namespace tessera
