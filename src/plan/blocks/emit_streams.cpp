// Alternating updates (arXiv 2301.13310): the hidden state as several streams, of which each layer computes one. And the two small
// blocks that such layers use as branches.
#include "plan/plan_builder.h"

namespace tessera {

Slice PlanBuilder::split_streams(Slice x) {
  const int64_t count = spec_.streams->count;
  const Slice all = value("streams", count * spec_.hidden);
  emit(CombineOp{x, {}, 1, 1, -1, Slice{all.value, 0, spec_.hidden}});
  for (int64_t i = 1; i < count; ++i)
    emit(LinearOp{x,
                  Slice{all.value, i * spec_.hidden, spec_.hidden},
                  {part("streams.projection" + std::to_string(i - 1))}});
  emit(MatchMagnitudeOp{all, count});
  return all;
}

// tanh(router(norm(x) / hidden)), through the matrix `name`.
Slice PlanBuilder::stream_coefficients(Slice x, const std::string& name) {
  const Slice normed = norm("streams.router_norm", spec_.streams->router_norm, x);
  emit(CombineOp{normed, {}, 1, 1.0 / static_cast<double>(spec_.hidden), -1, normed});
  const Slice modalities = value("streams.modalities", spec_.streams->count);
  emit(LinearOp{normed, modalities, {part("streams.router")}});
  emit(ActivateOp{modalities, {}, modalities, Activation::kTanh});
  const LinearPart matrix = part(name);
  const Slice coefficients = value(name, matrix.rows);
  emit(LinearOp{modalities, coefficients, {matrix}});
  return coefficients;
}

void PlanBuilder::emit_stream_layer(const LayerSpec& layer, Slice& streams) {
  const StreamSpec& spec = *spec_.streams;
  const int64_t hidden = spec_.hidden;
  const auto stream = [&](Slice all, int64_t i) { return Slice{all.value, i * hidden, hidden}; };
  const Slice predicted = value("streams.predicted", streams.width);
  emit(MixStreamsOp{MixStreamsOp::Kind::kPredict,
                    streams,
                    stream_coefficients(stream(streams, spec.active), "streams.predict"),
                    {},
                    predicted,
                    spec.count,
                    spec.active});
  Slice x = stream(predicted, spec.active);
  emit_layer(layer, x);
  const Slice corrected = value("streams.corrected", streams.width);
  emit(MixStreamsOp{MixStreamsOp::Kind::kCorrect, predicted, stream_coefficients(x, "streams.correct"), x,
                    corrected, spec.count, spec.active});
  Slice first = stream(corrected, spec.active);
  if (spec.output_scale) {
    const Slice scaled = value("streams.scaled", hidden);
    emit(ScaleColumnsOp{first, weight("streams.output_scale"), scaled});
    first = scaled;
  }
  const Slice input = emit_block(*this, "input", spec.input, BlockInput{first, first});
  norm("input.post_norm", spec.input_post_norm, input, input);
  for (int64_t i = 1; i < spec.count; ++i)
    emit(CombineOp{stream(corrected, i), {{input, 1, -1}}, 1, 1, -1, stream(corrected, i)});
  streams = corrected;
}

Slice PlanBuilder::join_streams(Slice streams) {
  const int64_t count = spec_.streams->count;
  const Slice all = value("streams.unprojected", streams.width);
  const Slice first{all.value, 0, spec_.hidden};
  emit(CombineOp{Slice{streams.value, 0, spec_.hidden}, {}, 1, 1, -1, first});
  CombineOp mean{first, {}, 1, 1.0 / static_cast<double>(count), -1, value("streams.mean", spec_.hidden)};
  for (int64_t i = 1; i < count; ++i) {
    const Slice target{all.value, i * spec_.hidden, spec_.hidden};
    emit(LinearOp{Slice{streams.value, i * spec_.hidden, spec_.hidden},
                  target,
                  {part("streams.unprojection" + std::to_string(i - 1))}});
    mean.terms.push_back({target, 1, -1});
  }
  emit(MatchMagnitudeOp{all, count});
  const Slice result = mean.output;
  emit(std::move(mean));
  return result;
}

Slice emit_block(PlanBuilder& builder, const std::string& name, const LowRankSpec& low_rank,
                 const BlockInput& input) {
  const Slice middle = builder.value(name + ".left", low_rank.rank);
  builder.emit(LinearOp{input.x, middle, {builder.part(name + ".left")}});
  const Slice output = builder.value(name + ".right", builder.spec().hidden);
  builder.emit(LinearOp{middle, output, {builder.part(name + ".right")}});
  return output;
}

Slice emit_block(PlanBuilder&, const std::string&, const IdentitySpec&, const BlockInput& input) {
  return input.x;
}

}  // namespace tessera
