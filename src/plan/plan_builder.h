// PlanBuilder: what the blocks of a spec use to emit their ops: new values, weights by slot name, and the
// running position (layer, branch). One file per block in plan/blocks.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "plan/plan.h"

namespace tessera {

class PlanBuilder {
 public:
  PlanBuilder(const ModelSpec& spec, const BoundWeights& weights) : spec_(spec), weights_(weights) {}

  [[nodiscard]] Result<Plan> build(KeepHidden keep);

  // --- for the blocks
  [[nodiscard]] const ModelSpec& spec() const { return spec_; }
  // A new value of the present layer, named "layers.<n>.<name>"; its whole width as a slice.
  Slice value(const std::string& name, int64_t width, RowSymbol rows = RowSymbol::kTokens);
  [[nodiscard]] WeightId weight(
      const std::string& name) const;  // "attn.q.weight" of the present layer; -1 when not there
  [[nodiscard]] LinearPart part(
      const std::string& stem) const;  // "attn.q": its weight, its bias and its rows
  void emit(Op op) { plan_.ops.push_back(std::move(op)); }
  // Emits the norm of `stem` ("attn.norm") from input into a new value, or in place into `output` when given.
  Slice norm(const std::string& stem, const NormSpec& norm, Slice input, Slice output = {});
  // The present layer's share of the per-layer inputs (EmbeddingSpec::per_layer_width).
  [[nodiscard]] Slice per_layer_input() const;
  // Where the present branch keeps its state.
  struct StatePlace {
    int group = 0;
    int layer = 0;
  };
  [[nodiscard]] StatePlace next_state();
  [[nodiscard]] StatePlace state_of(int layer, int branch) const;

 private:
  void emit_per_layer_inputs(Slice x);
  // Parallel streams (plan/blocks/emit_streams.cpp): split after the embedding, around every layer, joined after the last.
  [[nodiscard]] Slice split_streams(Slice x);
  void emit_stream_layer(const LayerSpec& layer, Slice& streams);
  [[nodiscard]] Slice stream_coefficients(Slice x, const std::string& name);
  [[nodiscard]] Slice join_streams(Slice streams);
  void emit_layer(const LayerSpec& layer, Slice& x);
  void emit_sublayer(const Sublayer& sublayer, Slice& x);
  [[nodiscard]] std::string full_name(const std::string& name) const;

  const ModelSpec& spec_;
  const BoundWeights& weights_;
  Plan plan_;
  int layer_ = -1;  // present layer; -1 outside
  int state_branch_ = 0;
  Slice per_layer_;  // [layers * per_layer_width]
};

// What a branch works on: its own (normed, scaled) input, and the sublayer's input before the branch's own norm.
struct BlockInput {
  Slice x;
  Slice sublayer;
};

// The blocks: emit ops that compute block(input) and return the value that holds it.
[[nodiscard]] Slice emit_block(PlanBuilder& builder, const std::string& name, const AttentionSpec& spec,
                               const BlockInput& input);
[[nodiscard]] Slice emit_block(PlanBuilder& builder, const std::string& name, const MlaSpec& spec,
                               const BlockInput& input);
[[nodiscard]] Slice emit_block(PlanBuilder& builder, const std::string& name, const DeltaNetSpec& spec,
                               const BlockInput& input);
[[nodiscard]] Slice emit_block(PlanBuilder& builder, const std::string& name, const ShortConvSpec& spec,
                               const BlockInput& input);
[[nodiscard]] Slice emit_block(PlanBuilder& builder, const std::string& name, const MambaSpec& spec,
                               const BlockInput& input);
[[nodiscard]] Slice emit_block(PlanBuilder& builder, const std::string& name, const Mamba2Spec& spec,
                               const BlockInput& input);
[[nodiscard]] Slice emit_block(PlanBuilder& builder, const std::string& name, const RwkvTimeSpec& spec,
                               const BlockInput& input);
[[nodiscard]] Slice emit_block(PlanBuilder& builder, const std::string& name, const RwkvChannelSpec& spec,
                               const BlockInput& input);
[[nodiscard]] Slice emit_block(PlanBuilder& builder, const std::string& name, const FfnSpec& spec,
                               const BlockInput& input);
[[nodiscard]] Slice emit_block(PlanBuilder& builder, const std::string& name, const MoeSpec& spec,
                               const BlockInput& input);
[[nodiscard]] Slice emit_block(PlanBuilder& builder, const std::string& name, const PerLayerInputSpec& spec,
                               const BlockInput& input);

[[nodiscard]] Slice emit_block(PlanBuilder& builder, const std::string& name, const LowRankSpec& spec,
                               const BlockInput& input);
[[nodiscard]] Slice emit_block(PlanBuilder& builder, const std::string& name, const IdentitySpec& spec,
                               const BlockInput& input);

// Gives every value its place in the arena of its symbol; values whose lives do not overlap share places.
void place_values(Plan& plan);

}  // namespace tessera
