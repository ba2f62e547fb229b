// See binder.h. Sources are found through an index of normalised names (known prefixes stripped), so that a
// base model, a causal model and one wrapped in a multimodal model bind alike.
#include "model/binder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string_view>

#include "base/check.h"
#include "formats/format_info.h"

namespace tessera {
namespace {

std::string replace_star(std::string_view pattern, int layer) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return std::string(pattern);
  return fmt::format("{}{}{}", pattern.substr(0, star), layer, pattern.substr(star + 1));
}

std::vector<int64_t> without_ones(const Shape& shape) {
  std::vector<int64_t> dims;
  for (const int64_t dim : shape.dims())
    if (dim != 1) dims.push_back(dim);
  return dims;
}

class Binder {
 public:
  Binder(ModelSpec& spec, std::shared_ptr<const Checkpoint> checkpoint, const Dialect& own,
         const Dialect& common)
      : spec_(spec), checkpoint_(std::move(checkpoint)), own_(own), common_(common) {}

  Result<BoundWeights> run() {
    TESSERA_TRY_STATUS(index_tensors());
    for (Slot& slot : model_slots(spec_)) slots_.push_back(std::move(slot));
    for (const Slot& slot : slots_) TESSERA_TRY_STATUS(bind(slot));
    TESSERA_TRY_STATUS(check_left_over());
    weights_.hold(checkpoint_);
    for (size_t i = 0; i < spec_.ropes.size(); ++i) {
      const std::string rope = i == 0 ? "rope" : "rope" + std::to_string(i);
      TESSERA_TRY_STATUS(take_divisors(rope + ".divisors.weight", spec_.ropes[i].divisors));
      TESSERA_TRY_STATUS(take_divisors(rope + ".short_factors.weight", spec_.ropes[i].short_factors));
      TESSERA_TRY_STATUS(take_divisors(rope + ".long_factors.weight", spec_.ropes[i].long_factors));
    }
    return std::move(weights_);
  }

  // Divisors of rotary frequencies that the file holds as a tensor belong to the spec's tables.
  Status take_divisors(const std::string& name, std::vector<float>& into) const {
    const BoundSlot* bound = weights_.find(name);
    if (bound == nullptr) return {};
    for (const float value : bound->values)
      if (!(value > 0 && std::isfinite(value)))
        return fail(ErrorCode::kBadData, "{}: {}: expected positive divisors, found {}", file(), name, value);
    into = bound->values;
    return {};
  }

 private:
  [[nodiscard]] const std::string& file() const { return checkpoint_->path(); }

  std::string normalised(std::string_view name) const {
    for (const Dialect* dialect : {&own_, &common_})
      for (const std::string& prefix : dialect->prefixes)
        if (name.substr(0, prefix.size()) == prefix) return std::string(name.substr(prefix.size()));
    return std::string(name);
  }

  Status index_tensors() {
    for (const TensorEntry& entry : checkpoint_->tensors()) {
      const auto [it, inserted] = index_.emplace(normalised(entry.name), &entry);
      if (!inserted)
        return fail(ErrorCode::kBadData, "{}: {} and {} are the same tensor under two names", file(),
                    it->second->name, entry.name);
    }
    return {};
  }

  const TensorEntry* find(const std::string& name) const {
    const auto it = index_.find(name);
    return it == index_.end() ? nullptr : it->second;
  }

  // Candidate sources of a slot, own rows first.
  struct Candidate {
    const DialectRow* row;
    std::string source;
    std::string expert_source;  // with '#' for the expert's number; "" when one tensor holds all
  };
  // A row names a slot by its pattern, or by pattern and suffix when weight and bias have unlike names.
  static bool names_slot(const DialectRow& row, const Slot& slot) {
    for (const std::string& name : row.slots)
      if (name == slot.pattern || name == slot.pattern + slot.suffix) return true;
    return false;
  }

  std::vector<Candidate> candidates(const Slot& slot) const {
    std::vector<Candidate> found;
    for (const Dialect* dialect : {&own_, &common_}) {
      for (const DialectRow& row : dialect->rows) {
        if (!names_slot(row, slot)) continue;
        if (!row.joined.empty() && slot.suffix == ".weight")
          found.push_back({&row, joined_name(slot, row.joined.front()), ""});
        for (const std::string& source : row.sources) {
          std::string name = replace_star(source, slot.layer);
          const size_t expert = name.find('#');
          if (expert != std::string::npos) name.replace(expert, 1, "0");
          if (name.back() == '!')
            name.pop_back();
          else
            name += slot.suffix;
          std::string expert_name;
          if (expert != std::string::npos)
            expert_name = name.substr(0, expert) + "#" + name.substr(expert + 1);
          found.push_back({&row, std::move(name), std::move(expert_name)});
        }
      }
    }
    if (slot.pattern == "embed" &&
        spec_.head.tie == HeadTie::kTied) {  // the one matrix may be stored as the head
      for (const Candidate& candidate : candidates_of_head()) found.push_back(candidate);
    }
    return found;
  }

  static std::string joined_name(const Slot& slot, const JoinedSource& source) {
    return replace_star(source.pattern, slot.layer) + slot.suffix;
  }

  std::vector<Candidate> candidates_of_head() const {
    Slot head;
    head.pattern = "head";
    head.suffix = ".weight";
    return candidates(head);
  }

  Status bind(const Slot& slot) {
    const auto options = candidates(slot);
    for (const Candidate& candidate : options) {
      const TensorEntry* entry = find(candidate.source);
      // A tensor that is another slot's whole cannot be this one's too: where families use one name for two norms.
      const bool taken = candidate.row->slots.size() == 1 && used_.contains(entry);
      if (entry != nullptr && !taken) return bind_from(slot, candidate, *entry);
    }
    if (slot.presence == Presence::kIfPresent) return {};
    std::string names;
    for (const Candidate& candidate : options) names += (names.empty() ? "" : ", ") + candidate.source;
    return fail(ErrorCode::kBadData, "{}: {} is missing: expected a tensor named {}", file(), slot.name,
                names.empty() ? "(no name known for it in this kind of file)" : names);
  }

  // Where a slot's rows lie in its source: `groups` runs of `run` rows, `stride` rows apart, from `first` on.
  struct RowPlan {
    int64_t first = 0;
    int64_t run = 0;
    int64_t stride = 0;
    int64_t groups = 1;
    int64_t total = 0;  // rows of the source
  };

  // Rows that a slot contributes to a fused source: entries for a vector.
  static int64_t rows_of(const Slot& slot) {
    if (slot.role == SlotRole::kExperts) return slot.shape[1];  // of one expert
    if (slot.role == SlotRole::kVector)
      return slot.shape.columns();  // of one expert, where there are several
    return slot.shape.rows();
  }

  Result<RowPlan> plan_rows(const Slot& slot, const DialectRow& row) const {
    RowPlan plan{0, rows_of(slot), 0, row.groups, rows_of(slot)};
    if (row.slots.size() == 1) return plan;
    plan.total = 0;
    const size_t interleaved = row.interleaved == 0 ? row.slots.size() : row.interleaved;
    int64_t head = 0;  // rows of the interleaved slots
    for (size_t i = 0; i < row.slots.size(); ++i) {
      const std::string& pattern = row.slots[i];
      const bool suffixed = pattern.size() > slot.suffix.size() && pattern.ends_with(slot.suffix);
      const std::string name = replace_star(pattern, slot.layer) + (suffixed ? "" : slot.suffix);
      const auto it =
          std::find_if(slots_.begin(), slots_.end(), [&](const Slot& other) { return other.name == name; });
      if (it == slots_.end()) continue;
      const bool whole = i >= interleaved;
      if (whole && name == slot.name) {
        plan.first = plan.total;
        plan.groups = 1;
      }
      if (!whole && rows_of(*it) % row.groups != 0)
        return fail(ErrorCode::kBadData, "{}: {}: {} rows do not divide into {} groups", file(), name,
                    rows_of(*it), row.groups);
      if (!whole && name == slot.name) plan.first = plan.total / row.groups;
      plan.total += rows_of(*it);
      if (!whole) head = plan.total;
    }
    plan.run = rows_of(slot) / plan.groups;
    plan.stride = head / row.groups;
    return plan;
  }

  Status check_shape(const Slot& slot, const TensorEntry& entry, const Shape& expected) const {
    if (without_ones(entry.shape) == without_ones(expected)) return {};
    // A gain with one entry per value of a row may be stored by heads.
    if (slot.role == SlotRole::kVector && expected.rank() == 1 &&
        entry.shape.elements() == expected.elements())
      return {};
    return fail(ErrorCode::kBadData, "{}: {} ({}): expected {}, found {}", file_of(entry), slot.name,
                entry.name, expected.to_string(), entry.shape.to_string());
  }

  // The rows of a plan as views: one with a stride when the runs are single rows, else one per run.
  static void append_parts(const Weight& source, const RowPlan& plan, std::vector<Weight>& parts) {
    if (plan.groups == 1) {
      parts.push_back(source.slice_rows(plan.first, plan.run));
    } else if (plan.run == 1) {
      parts.push_back(source.slice_rows(plan.first, plan.groups, plan.stride));
    } else {
      for (int64_t g = 0; g < plan.groups; ++g)
        parts.push_back(source.slice_rows(plan.first + g * plan.stride, plan.run));
    }
  }

  // One tensor per expert ('#' in the source), or one that holds them all, [experts, out, in] or [experts, in, out].
  Status bind_experts(const Slot& slot, const Candidate& candidate, const TensorEntry& entry,
                      const RowPlan& plan, BoundSlot& bound) {
    const int64_t experts = slot.shape[0];
    const int64_t columns = slot.shape.columns();
    const bool transposed = candidate.row->transform == Transform::kTranspose;
    const Shape one = transposed ? Shape{columns, plan.total} : Shape{plan.total, columns};
    const bool separate = !candidate.expert_source.empty();
    if (!separate) TESSERA_TRY_STATUS(check_shape(slot, entry, Shape{experts, one[0], one[1]}));
    for (int64_t e = 0; e < experts; ++e) {
      const TensorEntry* source = &entry;
      if (separate) {
        std::string name = candidate.expert_source;
        name.replace(name.find('#'), 1, std::to_string(e));
        source = find(name);
        if (source == nullptr)
          return fail(ErrorCode::kBadData, "{}: {}: expert {} is missing: expected {}", file(), slot.name, e,
                      name);
        TESSERA_TRY_STATUS(check_shape(slot, *source, one));
        used_.insert(source);
      }
      TESSERA_TRY(const Weight weight, read_matrix(slot, *source, separate ? 0 : e, plan.total, transposed));
      append_parts(weight, plan, bound.parts);
    }
    return {};
  }

  // A matrix whose rows come, group by group, from several tensors.
  Status bind_joined(const Slot& slot, const DialectRow& row, BoundSlot& bound) {
    const int64_t columns = slot.shape.columns();
    int64_t rows = 0;
    for (const JoinedSource& source : row.joined) rows += source.rows;
    CHECK(slot.role == SlotRole::kMatrix && rows * row.groups == slot.shape.rows(), "joined rows of {}",
          slot.name);
    bound.parts.resize(row.joined.size() * static_cast<size_t>(row.groups));
    for (size_t i = 0; i < row.joined.size(); ++i) {
      const JoinedSource& source = row.joined[i];
      const std::string name = joined_name(slot, source);
      const TensorEntry* entry = find(name);
      if (entry == nullptr)
        return fail(ErrorCode::kBadData, "{}: {} is missing: expected a tensor named {}", file(), slot.name,
                    name);
      const bool transposed = source.transform == Transform::kTranspose;
      TESSERA_TRY_STATUS(check_shape(
          slot, *entry,
          transposed ? Shape{row.groups, columns, source.rows} : Shape{row.groups, source.rows, columns}));
      used_.insert(entry);
      for (size_t g = 0; g < static_cast<size_t>(row.groups); ++g) {
        TESSERA_TRY(bound.parts[g * row.joined.size() + i],
                    read_matrix(slot, *entry, static_cast<int64_t>(g), source.rows, transposed));
      }
    }
    return {};
  }

  // The entries of a plan, out of each of `outer` fused vectors.
  static std::vector<float> take_rows(const std::vector<float>& all, const RowPlan& plan, int64_t outer) {
    std::vector<float> taken;
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t g = 0; g < plan.groups; ++g) {
        const auto begin = all.begin() + o * plan.total + plan.first + g * plan.stride;
        taken.insert(taken.end(), begin, begin + plan.run);
      }
    return taken;
  }

  // A vector stored as numbered tensors of equal length ('#' in the source), one after another.
  Status bind_pieces(const Slot& slot, const Candidate& candidate, const TensorEntry& first,
                     BoundSlot& bound) {
    const int64_t length = first.shape.elements();
    const int64_t wanted = slot.shape.elements();
    const int64_t pieces = length > 0 ? wanted / length : 0;
    if (pieces == 0 || pieces * length != wanted) return check_shape(slot, first, slot.shape);
    for (int64_t i = 0; i < pieces; ++i) {
      std::string name = candidate.expert_source;
      name.replace(name.find('#'), 1, std::to_string(i));
      const TensorEntry* piece = find(name);
      if (piece == nullptr)
        return fail(ErrorCode::kBadData, "{}: {} is missing: expected a tensor named {}", file(), slot.name,
                    name);
      TESSERA_TRY_STATUS(check_shape(slot, *piece, first.shape));
      used_.insert(piece);
      TESSERA_TRY(const std::vector<float> values, read_vector(slot, *piece, candidate.row->transform));
      bound.values.insert(bound.values.end(), values.begin(), values.end());
    }
    return {};
  }

  Status bind_from(const Slot& slot, const Candidate& candidate, const TensorEntry& entry) {
    const DialectRow& row = *candidate.row;
    TESSERA_TRY(const RowPlan plan, plan_rows(slot, row));
    used_.insert(&entry);
    BoundSlot bound;
    bound.slot = slot;
    bound.source = entry.name;
    if (!row.joined.empty()) {
      TESSERA_TRY_STATUS(bind_joined(slot, row, bound));
    } else if (slot.role == SlotRole::kExperts) {
      TESSERA_TRY_STATUS(bind_experts(slot, candidate, entry, plan, bound));
    } else if (slot.role == SlotRole::kVector && !candidate.expert_source.empty()) {
      TESSERA_TRY_STATUS(bind_pieces(slot, candidate, entry, bound));
    } else if (slot.role == SlotRole::kVector) {
      const bool fused = row.slots.size() > 1;
      const int64_t outer = slot.shape.rows();
      TESSERA_TRY_STATUS(check_shape(slot, entry, fused ? Shape{outer, plan.total} : slot.shape));
      TESSERA_TRY(bound.values, read_vector(slot, entry, row.transform));
      if (fused) bound.values = take_rows(bound.values, plan, outer);
    } else {
      const int64_t columns = slot.shape.columns();
      const bool transposed = row.transform == Transform::kTranspose;
      TESSERA_TRY_STATUS(
          check_shape(slot, entry, transposed ? Shape{columns, plan.total} : Shape{plan.total, columns}));
      TESSERA_TRY(const Weight weight, read_matrix(slot, entry, 0, plan.total, transposed));
      append_parts(weight, plan, bound.parts);
    }
    weights_.add(std::move(bound));
    return {};
  }

  [[nodiscard]] const std::string& file_of(const TensorEntry& entry) const {
    return checkpoint_->file_name(entry);
  }

  Result<std::vector<float>> read_vector(const Slot& slot, const TensorEntry& entry,
                                         Transform transform) const {
    if (!entry.format.is_plain())
      return fail(ErrorCode::kUnsupported, "{}: {} ({}): expected plain numbers, found {}", file_of(entry),
                  slot.name, entry.name, format_name(entry.format));
    const int64_t count = entry.shape.elements();
    Weight row{entry.format, 1, count, {}};
    row.planes[0] = {entry.bytes.data(), static_cast<int64_t>(entry.bytes.size())};
    std::vector<float> values(static_cast<size_t>(count));
    if (count > 0) decode_row(row, 0, 0, count, values.data());
    for (float& value : values) {
      if (transform == Transform::kAddOne && slot.suffix == ".weight") value += 1.0f;
      if (transform == Transform::kNegExp) value = -std::exp(value);
    }
    return values;
  }

  // Matrix number `index` of the entry, `rows` x the slot's columns (an entry may hold one per expert).
  Result<Weight> read_matrix(const Slot& slot, const TensorEntry& entry, int64_t index, int64_t rows,
                             bool transposed) {
    const int64_t columns = slot.shape.columns();
    if (entry.format.is_plain() && !is_floating(entry.format.element))
      return fail(ErrorCode::kUnsupported,
                  "{}: {} ({}): expected floating-point or quantised weights, found {}", file_of(entry),
                  slot.name, entry.name, format_name(entry.format));
    if (!transposed) {
      if (columns % format_block(entry.format) != 0)
        return fail(ErrorCode::kBadData,
                    "{}: {} ({}): expected rows of a multiple of {} values for {}, found {}", file_of(entry),
                    slot.name, entry.name, format_block(entry.format), format_name(entry.format), columns);
      // Dimensions of one may stand anywhere, so that the entry's own rows are not always the matrix's.
      Weight all = matrix_view(entry);
      if (all.columns != columns) {
        if (!entry.format.is_plain())
          return fail(ErrorCode::kUnsupported, "{}: {} ({}): shape {} cannot be read as rows of {} in {}",
                      file_of(entry), slot.name, entry.name, entry.shape.to_string(), columns,
                      format_name(entry.format));
        all.rows = entry.shape.elements() / columns;
        all.columns = columns;
        all.planes[0].row_stride = format_row_bytes(entry.format, columns);
      }
      return all.slice_rows(index * rows, rows);
    }
    if (!entry.format.is_plain()) return decode_transposed(entry, index, rows, columns);
    const auto bytes_each = static_cast<size_t>(format_row_bytes(entry.format, rows * columns));
    const std::byte* bytes = entry.bytes.data() + static_cast<size_t>(index) * bytes_each;
    if (const auto it = transposed_.find(bytes); it != transposed_.end()) return it->second;
    const auto size = static_cast<size_t>(dtype_size(entry.format.element));
    Buffer buffer(bytes_each);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        std::memcpy(buffer.data() + static_cast<size_t>(r * columns + c) * size,
                    bytes + static_cast<size_t>(c * rows + r) * size, size);
    Weight weight{entry.format, rows, columns, {}};
    weight.planes[0] = {buffer.data(), columns * static_cast<int64_t>(size)};
    weights_.own(std::move(buffer));
    transposed_.emplace(bytes, weight);
    return weight;
  }

  // Blocks run along the stored rows, so that a transposed matrix has none: its values are kept as float32.
  Result<Weight> decode_transposed(const TensorEntry& entry, int64_t index, int64_t rows, int64_t columns) {
    const Weight all = matrix_view(entry);
    if (all.columns != rows)
      return fail(ErrorCode::kUnsupported, "{}: {}: shape {} cannot be read as a transposed matrix in {}",
                  file_of(entry), entry.name, entry.shape.to_string(), format_name(entry.format));
    const Weight stored = all.slice_rows(index * columns, columns);
    const std::byte* const start = stored.planes[0].data;
    if (const auto it = transposed_.find(start); it != transposed_.end()) return it->second;
    Buffer buffer(static_cast<size_t>(rows) * static_cast<size_t>(columns) * sizeof(float));
    std::vector<float> values(static_cast<size_t>(rows));
    for (int64_t c = 0; c < columns; ++c) {
      decode_row(stored, c, 0, rows, values.data());
      for (int64_t r = 0; r < rows; ++r)
        std::memcpy(buffer.data() + static_cast<size_t>(r * columns + c) * sizeof(float),
                    &values[static_cast<size_t>(r)], sizeof(float));
    }
    Weight weight{Format::plain(DType::kF32), rows, columns, {}};
    weight.planes[0] = {buffer.data(), columns * static_cast<int64_t>(sizeof(float))};
    weights_.own(std::move(buffer));
    transposed_.emplace(start, weight);
    return weight;
  }

  Status check_left_over() {
    std::vector<std::string> left;
    for (const TensorEntry& entry : checkpoint_->tensors()) {
      if (used_.contains(&entry)) continue;
      const std::string name = normalised(entry.name);
      bool ignored = false;
      for (const Dialect* dialect : {&own_, &common_})
        for (const std::string& glob : dialect->ignored)
          ignored = ignored || glob_match(glob, name) || glob_match(glob, entry.name);
      if (spec_.head.tie == HeadTie::kTied && !ignored)
        for (const Candidate& candidate : candidates_of_head()) ignored = ignored || candidate.source == name;
      if (ignored)
        weights_.ignore(entry.name);
      else
        left.push_back(entry.name);
    }
    if (left.empty()) return {};
    return fail(ErrorCode::kBadData,
                "{}: {} tensor{} of the file belong{} to no part of architecture {}: {}{}", file(),
                left.size(), left.size() == 1 ? "" : "s", left.size() == 1 ? "s" : "", spec_.architecture,
                left.front(), left.size() > 1 ? ", ..." : "");
  }

  ModelSpec& spec_;
  std::shared_ptr<const Checkpoint> checkpoint_;
  const Dialect& own_;
  const Dialect& common_;
  std::vector<Slot> slots_;
  std::map<std::string, const TensorEntry*, std::less<>> index_;
  std::set<const TensorEntry*> used_;
  std::map<const std::byte*, Weight> transposed_;  // by source: several slots may share one
  BoundWeights weights_;
};

}  // namespace

const BoundSlot* BoundWeights::find(std::string_view name) const {
  const int found = index(name);
  return found < 0 ? nullptr : &at(found);
}

int BoundWeights::index(std::string_view name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? -1 : it->second;
}

int BoundWeights::add(BoundSlot slot) {
  const int position = static_cast<int>(slots_.size());
  index_.emplace(slot.slot.name, position);
  slots_.push_back(std::move(slot));
  return position;
}

uint64_t BoundWeights::bytes() const {
  uint64_t total = 0;
  for (const BoundSlot& slot : slots_) {
    total += slot.values.size() * sizeof(float);
    for (const Weight& part : slot.parts)
      total += static_cast<uint64_t>(part.rows) *
               static_cast<uint64_t>(format_stored_bytes(part.format, part.columns));
  }
  return total;
}

Result<BoundWeights> bind_weights(ModelSpec& spec, std::shared_ptr<const Checkpoint> checkpoint,
                                  const Dialect& own, const Dialect& common) {
  return Binder(spec, std::move(checkpoint), own, common).run();
}

}  // namespace tessera
