// The walk over a spec: embedding, layers by the sublayer formula of model/spec.h, final norm, the wanted
// rows, the head.
#include "plan/plan_builder.h"

#include <fmt/format.h>

#include <cmath>

#include "base/check.h"

namespace tessera {

std::string PlanBuilder::full_name(const std::string& name) const {
  return layer_ < 0 ? name : fmt::format("layers.{}.{}", layer_, name);
}

Slice PlanBuilder::value(const std::string& name, int64_t width, RowSymbol rows) {
  plan_.values.push_back(Value{full_name(name), rows, width, 0});
  return Slice{static_cast<ValueId>(plan_.values.size()) - 1, 0, width};
}

WeightId PlanBuilder::weight(const std::string& name) const {
  return weights_.index(full_name(name));
}

LinearPart PlanBuilder::part(const std::string& stem) const {
  LinearPart part{weight(stem + ".weight"), weight(stem + ".bias"), 0};
  CHECK(part.weight >= 0, "no weight {}", full_name(stem));
  part.rows = weights_.at(part.weight).rows();
  return part;
}

Slice PlanBuilder::norm(const std::string& stem, const NormSpec& norm, Slice input, Slice output) {
  if (!output.present()) output = value(stem, input.width);
  emit(NormOp{input, output, norm.kind, norm.eps, norm.group == 0 ? input.width : norm.group,
              weight(stem + ".weight"), weight(stem + ".bias"), norm.gain_span == NormSpec::Gain::kPerRow});
  return output;
}

PlanBuilder::StatePlace PlanBuilder::next_state() {
  return state_of(layer_, state_branch_++);
}

PlanBuilder::StatePlace PlanBuilder::state_of(int layer, int branch) const {
  for (size_t group = 0; group < plan_.states.size(); ++group) {
    const auto& layers = plan_.states[group].layers;
    for (size_t index = 0; index < layers.size(); ++index)
      if (layers[index].layer == layer && layers[index].branch == branch)
        return {static_cast<int>(group), static_cast<int>(index)};
  }
  CHECK(false, "layer {} has no state for branch {}", layer, branch);
  return {};
}

Slice PlanBuilder::per_layer_input() const {
  const int64_t width = spec_.embedding.per_layer_width;
  return {per_layer_.value, layer_ * width, width};
}

void PlanBuilder::emit_per_layer_inputs(Slice x) {
  const EmbeddingSpec& embedding = spec_.embedding;
  const int64_t all = static_cast<int64_t>(spec_.layers.size()) * embedding.per_layer_width;
  const Slice rows = value("embed.per_layer", all);
  emit(EmbedOp{weight("embed.per_layer.weight"),
               static_cast<float>(std::sqrt(static_cast<double>(embedding.per_layer_width))), rows,
               EmbedSource::kIds});
  const Slice projected = value("embed.per_layer_projected", all);
  emit(LinearOp{x, projected, {part("embed.per_layer_projection")}});
  emit(CombineOp{projected, {}, 1, 1.0 / std::sqrt(static_cast<double>(spec_.hidden)), -1, projected});
  norm("embed.per_layer_norm", embedding.per_layer_norm, projected, projected);
  per_layer_ = value("embed.per_layer_inputs", all);
  emit(CombineOp{projected, {{rows, 1, -1}}, 1, std::sqrt(0.5), -1, per_layer_});
}

void PlanBuilder::emit_sublayer(const Sublayer& sublayer, Slice& x) {
  const Slice h = sublayer.pre ? norm(sublayer.name + ".norm", *sublayer.pre, x) : x;
  CombineOp combine;
  combine.residual = sublayer.residual == ResidualFrom::kInput ? x : h;
  combine.alpha = sublayer.alpha;
  combine.beta = sublayer.beta.value;
  if (sublayer.beta.slot) combine.beta_slot = weight(sublayer.name + ".scale");
  for (const Branch& branch : sublayer.branches) {
    Slice input = branch.pre ? norm(branch.name + ".branch_norm", *branch.pre, h) : h;
    if (branch.input_scale != 1.0) {
      const Slice scaled = value(branch.name + ".input", input.width);
      emit(CombineOp{{}, {{input, branch.input_scale, -1}}, 1, 1, -1, scaled});
      input = scaled;
    }
    Slice y = std::visit(
        [&](const auto& block) {
          return emit_block(*this, branch.name, block, BlockInput{input, h});
        },
        branch.block);
    if (branch.post) y = norm(branch.name + ".branch_post_norm", *branch.post, y, y);
    combine.terms.push_back(
        {y, branch.weight.value, branch.weight.slot ? weight(branch.name + ".branch_weight") : -1});
  }
  if (sublayer.post) {  // the branches' sum is normalised before it joins the residual
    Slice sum = combine.terms.front().value;
    if (combine.terms.size() > 1 || combine.terms.front().factor != 1.0 ||
        combine.terms.front().factor_slot >= 0) {
      sum = value(sublayer.name + ".sum", x.width);
      emit(CombineOp{{}, combine.terms, 1, 1, -1, sum});
    }
    combine.terms = {{norm(sublayer.name + ".post_norm", *sublayer.post, sum, sum), 1, -1}};
  }
  combine.output = value(sublayer.name + ".out", x.width);
  x = combine.output;
  const bool scaled = combine.beta != 1.0 || combine.beta_slot >= 0;
  const double beta = combine.beta;
  const WeightId beta_slot = combine.beta_slot;
  if (sublayer.out && scaled) {  // out() comes before beta
    combine.beta = 1.0;
    combine.beta_slot = -1;
  }
  emit(std::move(combine));
  if (sublayer.out) {
    norm(sublayer.name + ".out_norm", *sublayer.out, x, x);
    if (scaled) {
      const Slice result = value(sublayer.name + ".scaled", x.width);
      emit(CombineOp{x, {}, 1, beta, beta_slot, result});
      x = result;
    }
  }
}

void PlanBuilder::emit_layer(const LayerSpec& layer, Slice& x) {
  state_branch_ = 0;
  for (const Sublayer& sublayer : layer.sublayers) emit_sublayer(sublayer, x);
}

Result<Plan> PlanBuilder::build(KeepHidden keep) {
  plan_.ropes = spec_.ropes;
  plan_.states = state_groups(spec_);
  plan_.hidden_size = spec_.hidden;
  plan_.embedding_width = spec_.embedding.width > 0 ? spec_.embedding.width : spec_.hidden;
  plan_.vocabulary = spec_.vocabulary;
  const auto keep_value = [&](std::string name, Slice x) {
    if (keep == KeepHidden::kYes) plan_.hidden.push_back({std::move(name), x.value});
  };

  const EmbeddingSpec& embedding = spec_.embedding;
  Slice x = value("embed", embedding.width > 0 ? embedding.width : spec_.hidden);
  emit(EmbedOp{weight("embed.weight"), static_cast<float>(embedding.scale), x});
  if (embedding.width > 0) {
    const Slice projected = value("embed.projected", spec_.hidden);
    emit(LinearOp{x, projected, {part("embed.projection")}});
    x = projected;
  }
  if (embedding.learned_positions > 0)
    emit(PositionEmbedOp{weight("embed.positions.weight"), embedding.position_offset, x});
  if (spec_.embedding.norm) norm("embed.norm", *spec_.embedding.norm, x, x);
  if (embedding.per_layer_width > 0) emit_per_layer_inputs(x);
  keep_value("hidden.0", x);
  if (spec_.streams) x = split_streams(x);
  for (layer_ = 0; layer_ < static_cast<int>(spec_.layers.size()); ++layer_) {
    if (spec_.streams)
      emit_stream_layer(spec_.layers[static_cast<size_t>(layer_)], x);
    else
      emit_layer(spec_.layers[static_cast<size_t>(layer_)], x);
    keep_value(fmt::format("hidden.{}", layer_ + 1), x);
  }
  layer_ = -1;
  if (spec_.streams) x = join_streams(x);

  // Only the wanted rows go through the final norm and the head, except when the hidden states are wanted
  // too.
  if (keep == KeepHidden::kYes && spec_.final_norm) {
    x = norm("final_norm", *spec_.final_norm, x);
    keep_value("final", x);
  }
  Slice rows = value("rows", spec_.hidden, RowSymbol::kOutputs);
  emit(GatherRowsOp{x, rows});
  if (keep == KeepHidden::kNo && spec_.final_norm) norm("final_norm", *spec_.final_norm, rows, rows);
  if (spec_.head.width > 0) {
    const Slice projected = value("head.projected", spec_.head.width, RowSymbol::kOutputs);
    emit(LinearOp{rows, projected, {part("head.projection")}});
    rows = projected;
  }
  const Slice logits = value("logits", spec_.vocabulary, RowSymbol::kOutputs);
  LinearPart head{weight("head.weight"), weight("head.bias"), spec_.vocabulary};
  if (head.weight < 0)
    head.weight = weight("embed.weight");  // tied: the first `vocabulary` rows of the table
  emit(LinearOp{rows, logits, {head}});
  if (spec_.head.scale != 1.0 || spec_.head.softcap != 0.0)
    emit(ScaleLogitsOp{logits, spec_.head.scale, spec_.head.softcap});
  plan_.logits = logits.value;
  place_values(plan_);
  return std::move(plan_);
}

Result<Plan> build_plan(const ModelSpec& spec, const BoundWeights& weights, KeepHidden keep) {
  return PlanBuilder(spec, weights).build(keep);
}

}  // namespace tessera
