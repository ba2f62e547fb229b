// Plan: the whole forward pass as a list of ops over values, the arena they live in, and the state they keep.
// One plan serves prefill, decode and mixed batches of many sequences: its only symbols are T tokens, S
// sequences and R output rows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/binder.h"
#include "model/rope.h"
#include "model/spec.h"
#include "model/state.h"
#include "plan/op.h"

namespace tessera {

enum class RowSymbol : uint8_t { kTokens, kOutputs };

struct Value {
  std::string name;  // "layers.0.attn.qkv"
  RowSymbol rows = RowSymbol::kTokens;
  int64_t width = 0;  // float32 per row
  // Where it lies: the value's matrix starts at offset * (number of rows) floats in the arena of its symbol.
  // Values whose lives do not overlap share places.
  int64_t offset = 0;
};

struct NamedValue {
  std::string name;  // "hidden.0" after the embedding, "hidden.1" after the first layer, ..., "final" after
                     // the last norm
  ValueId value = -1;
};

struct Plan {
  std::vector<Value> values;
  std::vector<Op> ops;
  std::vector<RopeSpec> ropes;
  std::vector<StateGroup> states;
  ValueId logits = -1;             // R rows of `vocabulary`
  std::vector<NamedValue> hidden;  // filled when asked for: these values live to the end
  int64_t hidden_size = 0;
  int64_t embedding_width = 0;  // of a row of StepInput::embeddings; 0: hidden_size
  int64_t vocabulary = 0;
  int64_t token_arena = 0;   // floats per token
  int64_t output_arena = 0;  // floats per output row
};

enum class KeepHidden : uint8_t { kNo, kYes };

[[nodiscard]] Result<Plan> build_plan(const ModelSpec& spec, const BoundWeights& weights,
                                      KeepHidden keep = KeepHidden::kNo);

// One line an op, with names, widths and places: for people, inspect and the checked-in dumps of the tests.
[[nodiscard]] std::string dump_plan(const Plan& plan, const BoundWeights& weights);

}  // namespace tessera
