#include "engine/runner.h"

namespace tessera {

Status Runner::submit(std::span<const ScheduledPart> parts, StatePool& pool) {
  const auto groups = static_cast<size_t>(pool.groups());
  tokens_.clear();
  positions_.clear();
  past_.clear();
  rope_lengths_.clear();
  slots_.clear();
  output_rows_.clear();
  offsets_.assign(1, 0);
  pages_.resize(groups);
  page_offsets_.resize(groups);
  for (size_t g = 0; g < groups; ++g) {
    pages_[g].clear();
    page_offsets_[g].assign(1, 0);
  }
  for (const ScheduledPart& part : parts) {
    const Sequence& sequence = *part.sequence;
    for (int64_t i = part.past; i < part.past + part.count; ++i) {
      tokens_.push_back(sequence.ids[static_cast<size_t>(i)]);
      positions_.push_back(static_cast<int32_t>(i));
    }
    offsets_.push_back(static_cast<int32_t>(tokens_.size()));
    past_.push_back(static_cast<int32_t>(part.past));
    rope_lengths_.push_back(static_cast<int32_t>(sequence.rope_length));
    if (pool.has_slots()) slots_.push_back(sequence.state.slot);
    if (part.output == WantsOutput::kYes) output_rows_.push_back(static_cast<int32_t>(tokens_.size()) - 1);
    for (size_t g = 0; g < groups; ++g) {
      const std::vector<int32_t>& held = sequence.state.groups[g].pages;
      pages_[g].insert(pages_[g].end(), held.begin(), held.end());
      page_offsets_[g].push_back(static_cast<int32_t>(pages_[g].size()));
    }
  }
  tables_.clear();
  for (size_t g = 0; g < groups; ++g) tables_.push_back({pages_[g], page_offsets_[g]});

  StepInput input;
  input.state = &pool.storage();
  input.tokens = tokens_;
  input.positions = positions_;
  input.sequence_offsets = offsets_;
  input.past = past_;
  input.rope_lengths = rope_lengths_;
  input.page_tables = tables_;
  input.read_slots = slots_;
  input.write_slots = slots_;
  input.output_rows = output_rows_;
  TESSERA_TRY(ticket_, executable_.submit(input));
  return {};
}

Result<std::span<const float>> Runner::wait() {
  TESSERA_TRY(const StepOutput output, executable_.wait(ticket_));
  return output.logits;
}

}  // namespace tessera
