#include "ops/sequence_bench.h"

#include <algorithm>
#include <numeric>

namespace tessera::ops_test {

SequenceRows random_sequences(OpBench& bench, const std::vector<int64_t>& lengths, float low, float high) {
  SequenceRows rows;
  for (const int64_t length : lengths)
    rows.push_back(bench.floats(length * bench.plan().hidden_size, low, high));
  return rows;
}

OpOutputs run_sequences(OpBench& bench, Backend& backend, const CompileOptions& options,
                        const SequenceRows& rows, const std::vector<std::vector<int64_t>>& steps,
                        Slots slots) {
  OpOutputs result;
  const Plan& plan = bench.plan();
  auto executable = backend.compile(plan, bench.weights(), options);
  if (!executable) {
    ADD_FAILURE() << executable.error().message;
    return result;
  }
  const size_t count = rows.size();
  const int64_t width = plan.hidden_size;
  const int64_t page = options.page_positions;
  const auto pages_of = [&](int64_t positions) { return (positions + page - 1) / page; };
  int64_t pages = 3;
  for (const auto& row : rows) pages += pages_of(static_cast<int64_t>(row.size()) / width);
  std::vector<int32_t> numbers(static_cast<size_t>(pages));
  std::iota(numbers.begin(), numbers.end(), 0);
  std::mt19937_64 random(17);
  std::shuffle(numbers.begin(), numbers.end(), random);
  StateCapacity capacity;
  for (const StateGroup& group : plan.states)
    capacity.pages.push_back(group.kind == StateKind::kFixed ? 0 : pages);
  capacity.slots = static_cast<int64_t>(2 * count);
  auto state = (*executable)->allocate_state(capacity);
  if (!state) {
    ADD_FAILURE() << state.error().message;
    return result;
  }
  std::vector<std::vector<int32_t>> tables(count);
  size_t next = 0;
  for (size_t s = 0; s < count; ++s)
    for (int64_t p = 0; p < pages_of(static_cast<int64_t>(rows[s].size()) / width); ++p)
      tables[s].push_back(numbers[next++]);

  std::vector<std::vector<std::vector<float>>> outputs(plan.hidden.size(),
                                                       std::vector<std::vector<float>>(count));
  std::vector<int64_t> done(count, 0);
  std::vector<int32_t> present(count);  // where the state of a sequence is
  for (size_t s = 0; s < count; ++s) present[s] = static_cast<int32_t>(2 * s);
  for (const std::vector<int64_t>& step : steps) {
    std::vector<float> embeddings;
    std::vector<int32_t> positions, offsets{0}, past, lengths, page_list, page_offsets{0}, read, write;
    std::vector<size_t> members;
    for (size_t s = 0; s < count; ++s) {
      if (step[s] == 0) continue;
      members.push_back(s);
      const auto begin = rows[s].begin() + done[s] * width;
      embeddings.insert(embeddings.end(), begin, begin + step[s] * width);
      for (int64_t i = 0; i < step[s]; ++i) positions.push_back(static_cast<int32_t>(done[s] + i));
      offsets.push_back(offsets.back() + static_cast<int32_t>(step[s]));
      past.push_back(static_cast<int32_t>(done[s]));
      lengths.push_back(static_cast<int32_t>(done[s] + step[s]));
      page_list.insert(page_list.end(), tables[s].begin(), tables[s].begin() + pages_of(done[s] + step[s]));
      page_offsets.push_back(static_cast<int32_t>(page_list.size()));
      read.push_back(present[s]);
      if (slots == Slots::kMoving) present[s] ^= 1;
      write.push_back(present[s]);
    }
    const std::vector<int32_t> no_pages(members.size() + 1, 0);
    std::vector<PageTable> page_tables;
    for (const StateGroup& group : plan.states) {
      if (group.kind == StateKind::kFixed)
        page_tables.push_back({{}, no_pages});
      else
        page_tables.push_back({page_list, page_offsets});
    }
    StepInput input;
    input.state = state->get();
    input.embeddings = embeddings;
    input.positions = positions;
    input.sequence_offsets = offsets;
    input.past = past;
    input.rope_lengths = lengths;
    input.page_tables = page_tables;
    input.read_slots = read;
    input.write_slots = write;
    const auto ticket = (*executable)->submit(input);
    if (!ticket) {
      ADD_FAILURE() << ticket.error().message;
      return result;
    }
    const auto output = (*executable)->wait(*ticket);
    for (size_t o = 0; o < outputs.size(); ++o) {
      const std::span<const float> values = output->hidden[o].second;
      const int64_t columns = static_cast<int64_t>(values.size()) / offsets.back();
      for (size_t m = 0; m < members.size(); ++m)
        outputs[o][members[m]].insert(outputs[o][members[m]].end(), values.begin() + offsets[m] * columns,
                                      values.begin() + offsets[m + 1] * columns);
    }
    for (size_t s = 0; s < count; ++s) done[s] += step[s];
  }
  for (const auto& output : outputs)
    for (const auto& sequence : output) result.outputs.push_back(sequence);
  return result;
}

void compare_sequences(OpBench& bench, Comparisons& comparisons, double bound, const std::string& what,
                       const CompileOptions& options, const std::vector<int64_t>& lengths, Ways ways,
                       float low, float high) {
  const SequenceRows rows = random_sequences(bench, lengths, low, high);
  const std::vector<std::vector<int64_t>> whole{lengths};
  const auto pieces = [&](int64_t size) {
    std::vector<std::vector<int64_t>> steps;
    for (int64_t begin = 0; begin < *std::ranges::max_element(lengths); begin += size) {
      steps.emplace_back();
      for (const int64_t length : lengths)
        steps.back().push_back(std::clamp<int64_t>(length - begin, 0, size));
    }
    return steps;
  };
  const auto with_threads = [&](int threads) {
    CompileOptions changed = options;
    changed.threads = threads;
    return changed;
  };
  const OpOutputs expected = run_sequences(bench, *reference_backend(), with_threads(1), rows, whole);
  for (const cpu::KernelTable& kernels : all_kernels()) {
    const auto backend = cpu_backend(kernels);
    const std::string name = what + " " + kernels.name;
    const OpOutputs one = run_sequences(bench, *backend, with_threads(1), rows, whole);
    comparisons.close(one, expected, bound, name);
    comparisons.equal(run_sequences(bench, *backend, with_threads(3), rows, whole, Slots::kMoving), one,
                      name + " threads");
    const OpOutputs chunks = run_sequences(bench, *backend, with_threads(2), rows, pieces(7), Slots::kMoving);
    const OpOutputs single = run_sequences(bench, *backend, with_threads(2), rows, pieces(1));
    if (ways == Ways::kSameBits) {
      comparisons.equal(chunks, one, name + " chunks");
      comparisons.equal(single, one, name + " token by token");
    } else {
      comparisons.close(chunks, expected, bound, name + " chunks");
      comparisons.close(single, expected, bound, name + " token by token");
    }
  }
}

}  // namespace tessera::ops_test
