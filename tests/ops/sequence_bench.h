// Runs the plan of an OpBench over several sequences with state, in steps of any composition: whole, in chunks, token by token,
// with pages in a scrambled order and recurrent state moving between slots.
#pragma once

#include <vector>

#include "ops/op_bench.h"

namespace tessera::ops_test {

enum class Slots {
  kInPlace,
  kMoving,  // every step reads one slot and writes another
};

// Rows of input of each sequence, [length * hidden_size].
using SequenceRows = std::vector<std::vector<float>>;
[[nodiscard]] SequenceRows random_sequences(OpBench& bench, const std::vector<int64_t>& lengths, float low,
                                            float high);

// By output and sequence: its rows in order. steps[i][s]: so many tokens of sequence s in step i (0: it is not there).
[[nodiscard]] OpOutputs run_sequences(OpBench& bench, Backend& backend, const CompileOptions& options,
                                      const SequenceRows& rows,
                                      const std::vector<std::vector<int64_t>>& steps,
                                      Slots slots = Slots::kInPlace);

// Compares the cpu backend on every instruction set with the reference, the sequences whole, in chunks and token by token. Exact
// options: all ways must give the same bits when `ways` says so, and be as close to the reference otherwise.
enum class Ways { kSameBits, kClose };
void compare_sequences(OpBench& bench, Comparisons& comparisons, double bound, const std::string& what,
                       const CompileOptions& options, const std::vector<int64_t>& lengths, Ways ways,
                       float low = -1.5f, float high = 1.5f);

}  // namespace tessera::ops_test
