#include "checkpoint/companion_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/printable.h"
#include "formats/format_info.h"

namespace tessera {

CompanionTable::CompanionTable(std::vector<TensorEntry>& tensors, const std::vector<std::string>& files,
                               std::vector<std::shared_ptr<const void>>& owners)
    : tensors_(tensors),
      files_(files),
      owners_(owners),
      taken_(tensors.size(), false),
      names_(tensors.size()) {
  for (size_t i = 0; i < tensors.size(); ++i) index_.emplace(tensors[i].name, i);
}

TensorEntry* CompanionTable::find(std::string_view name) {
  const auto it = index_.find(name);
  return it == index_.end() || taken_[it->second] ? nullptr : &tensors_[it->second];
}

Result<TensorEntry*> CompanionTable::require(const std::string& name, const TensorEntry& owner) {
  TensorEntry* entry = find(name);
  if (entry != nullptr) return entry;
  return bad(owner, fmt::format("a tensor {} beside it", printable(name)), "none");
}

std::vector<std::string> CompanionTable::stems(std::string_view ending) const {
  std::vector<std::string> stems;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const std::string& name = tensors_[i].name;
    if (!taken_[i] && name.size() > ending.size() && name.ends_with(ending))
      stems.push_back(name.substr(0, name.size() - ending.size()));
  }
  return stems;
}

void CompanionTable::take(const TensorEntry& entry) {
  taken_[static_cast<size_t>(&entry - tensors_.data())] = true;
}

void CompanionTable::rename(TensorEntry& entry, std::string name) {
  names_[static_cast<size_t>(&entry - tensors_.data())] = std::move(name);
}

std::byte* CompanionTable::allocate(uint64_t bytes) {
  auto buffer = std::make_shared<Buffer>(static_cast<size_t>(bytes));
  std::byte* data = buffer->data();
  owners_.push_back(std::move(buffer));
  return data;
}

Failure CompanionTable::bad(const TensorEntry& entry, std::string_view expected,
                            std::string_view found) const {
  return fail(ErrorCode::kBadData, "{}: tensor {}: expected {}, found {}",
              files_[static_cast<size_t>(entry.file)], printable(entry.name), expected, found);
}

Status CompanionTable::check_shape(const TensorEntry& entry, const Shape& expected) const {
  if (entry.shape == expected) return {};
  return bad(entry, "shape " + expected.to_string(), entry.shape.to_string());
}

Status CompanionTable::check_element(const TensorEntry& entry, std::initializer_list<DType> allowed) const {
  std::string names;
  for (const DType element : allowed) {
    if (entry.format == Format::plain(element)) return {};
    names += (names.empty() ? "" : " or ") + std::string(dtype_name(element));
  }
  return bad(entry, "elements of " + names, format_name(entry.format));
}

void CompanionTable::finish() {
  std::vector<TensorEntry> kept;
  kept.reserve(tensors_.size());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (taken_[i]) continue;
    if (!names_[i].empty()) tensors_[i].name = std::move(names_[i]);
    kept.push_back(std::move(tensors_[i]));
  }
  std::stable_sort(kept.begin(), kept.end(),
                   [](const TensorEntry& a, const TensorEntry& b) { return a.name < b.name; });
  tensors_ = std::move(kept);
}

Shape with_columns(const Shape& shape, int64_t columns) {
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims.back() = columns;
  return Shape(dims);
}

}  // namespace tessera
