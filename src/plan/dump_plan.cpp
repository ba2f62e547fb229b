// The text form of a plan: one line an op, "name = Op(inputs; weights; settings)", after the state groups and
// rope tables.
#include <fmt/format.h>

#include "formats/format_info.h"
#include "plan/plan.h"

namespace tessera {
namespace {

class Dump {
 public:
  Dump(const Plan& plan, const BoundWeights& weights) : plan_(plan), weights_(weights) {}

  std::string run() {
    out_ += fmt::format("hidden {}, vocabulary {}, arena {} floats a token + {} a row\n", plan_.hidden_size,
                        plan_.vocabulary, plan_.token_arena, plan_.output_arena);
    for (size_t i = 0; i < plan_.ropes.size(); ++i) rope(i);
    for (size_t i = 0; i < plan_.states.size(); ++i) state(i);
    for (const Op& op : plan_.ops) std::visit([this](const auto& o) { line(o); }, op);
    for (const NamedValue& hidden : plan_.hidden)
      out_ +=
          fmt::format("keep {} = {}\n", hidden.name, plan_.values[static_cast<size_t>(hidden.value)].name);
    return std::move(out_);
  }

 private:
  void rope(size_t i) {
    static constexpr const char* kScalings[] = {"none",    "linear",   "piecewise",   "yarn",
                                                "dynamic", "longrope", "proportional"};
    const RopeSpec& rope = plan_.ropes[i];
    out_ += fmt::format("rope {}: {} of {}, theta {}, {}, scaling {}", i, rope.dim, rope.head_dim, rope.theta,
                        rope.layout == RopeLayout::kHalfSplit ? "half-split" : "interleaved",
                        kScalings[static_cast<size_t>(rope.scaling)]);
    if (rope.scaling != RopeScaling::kNone)
      out_ += fmt::format(" x{} of {}", rope.factor, rope.original_context);
    if (rope.amplitude != 1.0) out_ += fmt::format(", amplitude {:.9g}", rope.amplitude);
    if (!rope.sections.empty())
      out_ += fmt::format(", sections {}{}", fmt::join(rope.sections, "/"),
                          rope.sections_interleaved ? " interleaved" : "");
    if (!rope.divisors.empty()) out_ += ", divisors from the file";
    out_ += "\n";
  }

  void state(size_t i) {
    const StateGroup& group = plan_.states[i];
    if (group.kind == StateKind::kFixed)
      out_ += fmt::format("state {}: {} layers, {} values a sequence\n", i, group.layers.size(),
                          group.values_per_sequence());
    else
      out_ += fmt::format("state {}: {} layers, {} values a position{}\n", i, group.layers.size(),
                          group.values_per_position(),
                          group.window > 0 ? fmt::format(", window {}", group.window) : "");
  }

  std::string show(const Slice& slice) const {
    const Value& value = plan_.values[static_cast<size_t>(slice.value)];
    if (slice.offset == 0 && slice.width == value.width) return value.name;
    return fmt::format("{}[{}:{}]", value.name, slice.offset, slice.offset + slice.width);
  }
  // The slice with its width and place, where it is written.
  std::string place(const Slice& slice) const {
    const Value& value = plan_.values[static_cast<size_t>(slice.value)];
    return fmt::format("{} ({}{} @{})", show(slice), value.rows == RowSymbol::kOutputs ? "R x " : "",
                       slice.width, value.offset);
  }
  std::string weight(WeightId id) const {
    if (id < 0) return {};
    const BoundSlot& slot = weights_.at(id);
    std::string format = slot.parts.empty() ? "" : ":" + format_name(slot.parts.front().format);
    return fmt::format(" {}{}{}", slot.slot.name, format, slot.slot.shape.to_string());
  }

  void line(const EmbedOp& op) {
    out_ += fmt::format("{} = Embed({}", place(op.output), weight(op.table).substr(1));
    out_ += op.scale != 1.0f ? fmt::format(", scale {:.9g})\n", op.scale) : ")\n";
  }
  void line(const PositionEmbedOp& op) {
    out_ += fmt::format("{} = PositionEmbed({}, from row {})\n", show(op.x), weight(op.table).substr(1),
                        op.offset);
  }
  void line(const ClampOp& op) {
    out_ += fmt::format("{} = Clamp({}, {})\n", place(op.output), show(op.input), op.limit);
  }
  void line(const SparsifyOp& op) {
    out_ += fmt::format("{} = Sparsify({}, {:.9g} deviations)\n", place(op.output), show(op.input),
                        op.deviations);
  }
  void line(const SigmoidGateOp& op) {
    out_ += fmt::format("{} = {} * sigmoid({})\n", place(op.output), show(op.x), show(op.gate));
  }
  void line(const RouteOp& op) {
    static constexpr const char* kScores[] = {"softmax", "softmax of the chosen", "sigmoid", "sparsemixer"};
    out_ += fmt::format("{} = Route({}, best {} of {}, {}", place(op.output), show(op.logits), op.top_k,
                        op.logits.width, kScores[static_cast<size_t>(op.score)]);
    if (op.groups > 1)
      out_ += fmt::format(", from {} of {} groups by {}", op.top_groups, op.groups,
                          op.group_score == GroupScore::kMax ? "their best" : "their best two");
    if (op.selection_bias >= 0) out_ += "," + weight(op.selection_bias);
    if (op.renormalise)
      out_ += fmt::format(", renormalised{}",
                          op.renormalise_eps != 0 ? fmt::format(" + {}", op.renormalise_eps) : "");
    if (op.scale != 1.0) out_ += fmt::format(", scale {:.9g}", op.scale);
    if (op.sparsemixer_threshold != 0) out_ += fmt::format(", threshold {}", op.sparsemixer_threshold);
    if (op.expert_scale >= 0) out_ += "," + weight(op.expert_scale);
    out_ += ")\n";
  }
  void line(const ExpertsOp& op) {
    out_ += fmt::format("{} = Experts({}, {}, {}", place(op.output), show(op.input), show(op.routes),
                        activation_name(op.activation));
    if (op.limit != 0) out_ += fmt::format(", limit {}", op.limit);
    if (op.up_offset != 0) out_ += fmt::format(", up + {}", op.up_offset);
    out_ += "," + weight(op.gate) + weight(op.gate_bias) + weight(op.up) + weight(op.up_bias) +
            weight(op.down) + weight(op.down_bias) + ")\n";
  }
  void line(const MlaAttendOp& op) {
    out_ += fmt::format("{} = MlaAttend({}, {}, {},{}, heads {} of {}+{}/{}, scale {:.9g}, state {}.{})\n",
                        place(op.output), show(op.q), show(op.latent), show(op.k_rope), weight(op.kv_b),
                        op.heads, op.nope_dim, op.rope_dim, op.value_dim, op.scale, op.group, op.layer);
  }
  void line(const CausalConvOp& op) {
    out_ +=
        fmt::format("{} = CausalConv({}, {},{}{}, state {}.{})\n", place(op.output), show(op.input),
                    activation_name(op.activation), weight(op.weight), weight(op.bias), op.group, op.layer);
  }
  void line(const DeltaRuleOp& op) {
    out_ += fmt::format("{} = DeltaRule({}, {}, {}, a {}, b {}, heads {}/{} {} of {}/{},{}{}, state {}.{})\n",
                        place(op.output), show(op.q), show(op.k), show(op.v), show(op.a), show(op.b),
                        op.value_heads, op.key_heads, op.head_map == HeadMap::kGrouped ? "grouped" : "tiled",
                        op.key_dim, op.value_dim, weight(op.decay), weight(op.dt_bias), op.group, op.layer);
  }
  void line(const SelectiveScanOp& op) {
    out_ += fmt::format("{} = SelectiveScan({}, dt {}, b {}, c {},{}{}, state {}.{})\n", place(op.output),
                        show(op.x), show(op.dt), show(op.b), show(op.c), weight(op.decay), weight(op.d),
                        op.group, op.layer);
  }
  void line(const HeadScanOp& op) {
    out_ +=
        fmt::format("{} = HeadScan({}, dt {}, b {}, c {}, {} heads of {}, {} states, {} groups,{}{}{}",
                    place(op.output), show(op.x), show(op.dt), show(op.b), show(op.c), op.heads, op.head_dim,
                    op.states, op.groups, weight(op.decay), weight(op.dt_bias), weight(op.d));
    if (op.dt_min != 0 || op.dt_max != 0) out_ += fmt::format(", dt from {} to {}", op.dt_min, op.dt_max);
    out_ += fmt::format(", state {}.{})\n", op.group, op.layer);
  }
  void line(const TokenShiftOp& op) {
    for (size_t i = 0; i < op.outputs.size(); ++i)
      out_ += fmt::format("{} = TokenShift({},{}, state {}.{})\n", place(op.outputs[i]), show(op.x),
                          weight(op.mixes[i]), op.group, op.layer);
  }
  void line(const WkvOp& op) {
    out_ += fmt::format("{} = Wkv({}, {},{}{}, state {}.{})\n", place(op.output), show(op.k), show(op.v),
                        weight(op.decay), weight(op.first), op.group, op.layer);
  }
  void line(const ScaleColumnsOp& op) {
    out_ += fmt::format("{} = {} * {}\n", place(op.output), show(op.input), weight(op.scale).substr(1));
  }
  void line(const MixStreamsOp& op) {
    out_ += fmt::format("{} = MixStreams({}, {}, {}{}, {} streams, active {})\n", place(op.output),
                        op.kind == MixStreamsOp::Kind::kPredict ? "predict" : "correct", show(op.input),
                        show(op.coefficients), op.actual.present() ? ", " + show(op.actual) : "", op.streams,
                        op.active);
  }
  void line(const MatchMagnitudeOp& op) {
    out_ += fmt::format("{} = MatchMagnitude({} streams)\n", show(op.x), op.streams);
  }
  void line(const NormOp& op) {
    out_ += fmt::format("{} = Norm({}, {}, eps {}", place(op.output), show(op.input),
                        op.kind == NormKind::kRms ? "rms" : "layer", op.eps);
    if (op.group != op.input.width) out_ += fmt::format(", groups of {}", op.group);
    out_ += fmt::format(",{}{})\n", weight(op.gain), weight(op.bias));
  }
  void line(const LinearOp& op) {
    out_ += fmt::format("{} = Linear({},", place(op.output), show(op.input));
    for (const LinearPart& part : op.parts) out_ += weight(part.weight) + weight(part.bias);
    out_ += ")\n";
  }
  void line(const RopeOp& op) {
    out_ += fmt::format("{} = Rope(table {}, {} heads of {}{})\n", show(op.x), op.rope, op.heads, op.head_dim,
                        op.head_offset != 0 ? fmt::format(" from {}", op.head_offset) : "");
  }
  void line(const AttendOp& op) {
    out_ += fmt::format("{} = Attend({}, {}, heads {}/{} of {}", place(op.output), show(op.q),
                        op.k.present() ? show(op.k) + ", " + show(op.v) : "stored k and v", op.heads,
                        op.kv_heads, op.head_dim);
    if (op.value_dim != op.head_dim) out_ += fmt::format("/{}", op.value_dim);
    out_ += fmt::format(", scale {:.9g}, state {}.{}", op.scale, op.group, op.layer);
    if (op.window > 0) out_ += fmt::format(", window {}", op.window);
    if (op.softcap != 0) out_ += fmt::format(", softcap {}", op.softcap);
    if (!op.causal) out_ += ", both ways";
    if (op.sinks >= 0) out_ += "," + weight(op.sinks);
    if (!op.alibi_slopes.empty()) out_ += fmt::format(", slopes {:.9g}", fmt::join(op.alibi_slopes, " "));
    if (op.query_scale_beta != 0)
      out_ += fmt::format(", query scale {} per {} positions", op.query_scale_beta, op.query_scale_context);
    out_ += ")\n";
  }
  void line(const ActivateOp& op) {
    out_ +=
        fmt::format("{} = Activate({}, {}", place(op.output), activation_name(op.activation), show(op.gate));
    out_ += op.up.present() ? fmt::format(" * {})\n", show(op.up)) : ")\n";
  }
  void line(const CombineOp& op) {
    std::string sum = op.residual.present() ? show(op.residual) : "0";
    for (const CombineTerm& term : op.terms) {
      sum += " + ";
      if (op.alpha != 1.0) sum += fmt::format("{:.9g} * ", op.alpha);
      if (term.factor != 1.0) sum += fmt::format("{:.9g} * ", term.factor);
      if (term.factor_slot >= 0) sum += weight(term.factor_slot).substr(1) + " * ";
      sum += show(term.value);
    }
    if (op.beta != 1.0) sum = fmt::format("({}) * {:.9g}", sum, op.beta);
    if (op.beta_slot >= 0) sum = fmt::format("({}) *{}", sum, weight(op.beta_slot));
    out_ += fmt::format("{} = {}\n", place(op.output), sum);
  }
  void line(const GatherRowsOp& op) {
    out_ += fmt::format("{} = GatherRows({})\n", place(op.output), show(op.input));
  }
  void line(const ScaleLogitsOp& op) {
    out_ += fmt::format("{} = ScaleLogits(scale {:.9g}, softcap {})\n", show(op.x), op.scale, op.softcap);
  }

  const Plan& plan_;
  const BoundWeights& weights_;
  std::string out_;
};

}  // namespace

std::string dump_plan(const Plan& plan, const BoundWeights& weights) {
  return Dump(plan, weights).run();
}

}  // namespace tessera
