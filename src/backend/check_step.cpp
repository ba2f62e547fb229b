// What must hold of a step before any backend touches memory by it.
#include <algorithm>

#include "backend/backend.h"

namespace tessera {
namespace {

Failure bad(const char* what, int64_t found, int64_t expected) {
  return fail(ErrorCode::kInvalidArgument, "step: {}: expected {}, found {}", what, expected, found);
}

Status check_pages(const Plan& plan, const CompileOptions& options, const StepInput& input, size_t group,
                   int64_t sequences) {
  const StateGroup& state = plan.states[group];
  if (state.kind == StateKind::kFixed) return {};
  const PageTable& table = input.page_tables[group];
  if (static_cast<int64_t>(table.offsets.size()) != sequences + 1)
    return bad("page table offsets", static_cast<int64_t>(table.offsets.size()), sequences + 1);
  const int64_t capacity = input.state->capacity().pages[group];
  const int64_t page = options.page_positions;
  for (int64_t s = 0; s < sequences; ++s) {
    const auto index = static_cast<size_t>(s);
    const int64_t begin = table.offsets[index];
    const int64_t count = table.offsets[index + 1] - begin;
    if (begin < 0 || count < 0 || begin + count > static_cast<int64_t>(table.pages.size()))
      return bad("page table range of a sequence", begin + count, static_cast<int64_t>(table.pages.size()));
    const int64_t past = input.past[index];
    const int64_t length = past + input.sequence_offsets[index + 1] - input.sequence_offsets[index];
    if (count * page < length) return bad("positions covered by pages", count * page, length);
    const int64_t oldest = state.window > 0 ? std::max<int64_t>(0, past - state.window + 1) : 0;
    for (int64_t i = oldest / page; i <= (length - 1) / page; ++i) {
      const int32_t id = table.pages[static_cast<size_t>(begin + i)];
      if (id < 0 || id >= capacity) return bad("page number", id, capacity);
    }
  }
  return {};
}

// Ids for every table that is looked up, embeddings of the right width.
Status check_inputs(const Plan& plan, const BoundWeights& weights, const StepInput& input, int64_t tokens) {
  const bool given = !input.embeddings.empty();
  const auto ids = static_cast<int64_t>(input.tokens.size());
  const int64_t width = plan.embedding_width > 0 ? plan.embedding_width : plan.hidden_size;
  if (given && static_cast<int64_t>(input.embeddings.size()) != tokens * width)
    return bad("values of embeddings", static_cast<int64_t>(input.embeddings.size()), tokens * width);
  if (ids != tokens && !(given && ids == 0)) return bad("token ids", ids, tokens);
  for (const Op& op : plan.ops) {
    const auto* embed = std::get_if<EmbedOp>(&op);
    if (embed == nullptr || (given && embed->source == EmbedSource::kIdsOrEmbeddings)) continue;
    const BoundSlot& table = weights.at(embed->table);
    if (ids == 0)
      return fail(
          ErrorCode::kInvalidArgument,
          "step: {} is looked up by token id: expected {} token ids beside the embeddings, found none",
          table.slot.name, tokens);
    for (const int32_t token : input.tokens)
      if (token < 0 || token >= table.rows())
        return fail(ErrorCode::kInvalidArgument, "token id {} has no row in the table of {} rows of {}",
                    token, table.rows(), table.slot.name);
  }
  return {};
}

// Three axes that differ need a rope that tells them apart; equal ones are positions of text.
Status check_axes(const Plan& plan, std::span<const int32_t> positions, int64_t tokens) {
  const auto count = static_cast<size_t>(tokens);
  if (positions.size() == count) return {};
  for (const RopeSpec& rope : plan.ropes)
    if (!rope.sections.empty()) return {};
  for (size_t t = 0; t < count; ++t)
    if (positions[count + t] != positions[t] || positions[2 * count + t] != positions[t])
      return fail(ErrorCode::kInvalidArgument,
                  "step: token {} has positions of three axes, {} {} {}: the model has no rope sections, it "
                  "knows one axis",
                  t, positions[t], positions[count + t], positions[2 * count + t]);
  return {};
}

}  // namespace

Status check_step(const Plan& plan, const BoundWeights& weights, const CompileOptions& options,
                  const StepInput& input) {
  if (input.sequence_offsets.size() < 2) return bad("sequences", 0, 1);
  const auto sequences = static_cast<int64_t>(input.sequence_offsets.size()) - 1;
  const int64_t tokens = input.sequence_offsets.back();
  if (sequences > options.max_sequences) return bad("sequences, at most", sequences, options.max_sequences);
  if (tokens < 1 || tokens > options.max_tokens) return bad("tokens, at most", tokens, options.max_tokens);
  if (input.sequence_offsets.front() != 0)
    return bad("first sequence offset", input.sequence_offsets.front(), 0);
  for (size_t s = 0; s + 1 < input.sequence_offsets.size(); ++s)
    if (input.sequence_offsets[s + 1] <= input.sequence_offsets[s]) return bad("tokens of a sequence", 0, 1);
  TESSERA_TRY_STATUS(check_inputs(plan, weights, input, tokens));
  const auto positions = static_cast<int64_t>(input.positions.size());
  if (positions != tokens && positions != 3 * tokens) return bad("positions", positions, tokens);
  TESSERA_TRY_STATUS(check_axes(plan, input.positions, tokens));
  if (static_cast<int64_t>(input.past.size()) != sequences)
    return bad("past lengths", static_cast<int64_t>(input.past.size()), sequences);
  if (static_cast<int64_t>(input.rope_lengths.size()) != sequences)
    return bad("rope lengths", static_cast<int64_t>(input.rope_lengths.size()), sequences);
  if (static_cast<int64_t>(input.output_rows.size()) > options.max_outputs)
    return bad("output rows, at most", static_cast<int64_t>(input.output_rows.size()), options.max_outputs);
  for (size_t r = 0; r < input.output_rows.size(); ++r) {
    if (input.output_rows[r] < 0 || input.output_rows[r] >= tokens)
      return bad("output row", input.output_rows[r], tokens - 1);
    if (r > 0 && input.output_rows[r] <= input.output_rows[r - 1])
      return bad("output rows in order", input.output_rows[r], 0);
  }
  if (plan.states.empty()) return {};
  if (input.state == nullptr) return fail(ErrorCode::kInvalidArgument, "step: no state storage");
  if (input.page_tables.size() != plan.states.size())
    return bad("page tables", static_cast<int64_t>(input.page_tables.size()),
               static_cast<int64_t>(plan.states.size()));
  bool fixed = false;
  for (size_t group = 0; group < plan.states.size(); ++group) {
    fixed = fixed || plan.states[group].kind == StateKind::kFixed;
    TESSERA_TRY_STATUS(check_pages(plan, options, input, group, sequences));
  }
  if (fixed) {
    for (const auto& slots : {input.read_slots, input.write_slots}) {
      if (static_cast<int64_t>(slots.size()) != sequences)
        return bad("state slots", static_cast<int64_t>(slots.size()), sequences);
      for (const int32_t slot : slots)
        if (slot < 0 || slot >= input.state->capacity().slots)
          return bad("state slot", slot, input.state->capacity().slots);
    }
  }
  return {};
}

}  // namespace tessera
