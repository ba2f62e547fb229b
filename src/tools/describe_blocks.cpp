#include "tools/describe_blocks.h"

#include <fmt/format.h>

namespace tessera {
namespace {

struct Texts {
  static const char* kind(const AttentionSpec&) { return "attention"; }
  static const char* kind(const MlaSpec&) { return "latent attention"; }
  static const char* kind(const DeltaNetSpec&) { return "gated delta rule"; }
  static const char* kind(const ShortConvSpec&) { return "short convolution"; }
  static const char* kind(const MambaSpec&) { return "selective scan"; }
  static const char* kind(const Mamba2Spec&) { return "state space by heads"; }
  static const char* kind(const RwkvTimeSpec&) { return "time mix"; }
  static const char* kind(const RwkvChannelSpec&) { return "channel mix"; }
  static const char* kind(const FfnSpec& ffn) {
    return ffn.gated ? "gated feed-forward" : "plain feed-forward";
  }
  static const char* kind(const MoeSpec&) { return "experts"; }
  static const char* kind(const PerLayerInputSpec&) { return "per-layer input"; }
  static const char* kind(const LowRankSpec&) { return "low-rank"; }
  static const char* kind(const IdentitySpec&) { return "identity"; }

  static std::string numbers(const AttentionSpec& a) {
    std::string text =
        fmt::format(", {} heads of {}, {} for keys and values", a.heads, a.head_dim, a.kv_heads);
    if (a.value_dim != a.head_dim) text += fmt::format(" (values of {})", a.value_dim);
    text += a.rope ? fmt::format(", rope {}", *a.rope) : ", no rope";
    if (a.window > 0) text += fmt::format(", window {}", a.window);
    if (!a.causal) text += ", both ways";
    if (a.q_norm) text += ", normed queries";
    if (a.k_norm) text += ", normed keys";
    if (a.v_norm) text += ", normed values";
    if (a.value_source == ValueSource::kKey) text += ", values are keys";
    if (a.kv_source_layer >= 0) text += fmt::format(", keys and values of layer {}", a.kv_source_layer);
    if (a.sinks) text += ", sinks";
    if (a.alibi != Alibi::kNone) text += ", alibi";
    if (a.output_gate != OutputGate::kNone) text += ", gated output";
    if (a.clip != 0) text += fmt::format(", clipped at {}", a.clip);
    if (a.softcap != 0) text += fmt::format(", softcap {}", a.softcap);
    if (a.query_scale_beta != 0) text += fmt::format(", queries grow by {}", a.query_scale_beta);
    return text;
  }
  static std::string numbers(const MlaSpec& m) {
    return fmt::format(", {} heads of {} + {} rotated, values of {}, latent of {} + {} shared, {}, rope {}",
                       m.heads, m.nope_dim, m.rope_dim, m.value_dim, m.kv_lora, m.rope_dim,
                       m.q_lora > 0 ? fmt::format("queries through {}", m.q_lora) : "queries direct", m.rope);
  }
  static std::string numbers(const DeltaNetSpec& d) {
    return fmt::format(", {} key heads of {}, {} value heads of {} ({}), convolution over {}", d.key_heads,
                       d.key_dim, d.value_heads, d.value_dim,
                       d.head_map == HeadMap::kGrouped ? "grouped" : "tiled", d.kernel);
  }
  static std::string numbers(const ShortConvSpec& c) { return fmt::format(" over {}", c.kernel); }
  static std::string numbers(const MambaSpec& m) {
    return fmt::format(", {} channels of {} states, step rank {}, convolution over {}{}", m.inner, m.state,
                       m.dt_rank, m.kernel, m.parameter_norm ? ", normed parameters" : "");
  }
  static std::string numbers(const Mamba2Spec& m) {
    return fmt::format(", {} heads of {}, {} states, {} group{}, convolution over {}", m.heads, m.head_dim,
                       m.state, m.groups, m.groups == 1 ? "" : "s", m.kernel);
  }
  static std::string numbers(const RwkvTimeSpec& r) { return fmt::format(" of {} channels", r.width); }
  static std::string numbers(const RwkvChannelSpec& r) { return fmt::format(" of {}", r.width); }
  static std::string numbers(const FfnSpec& f) {
    std::string text = fmt::format(" of {}, {}", f.width, activation_name(f.activation));
    if (f.token_gate) text += ", gated by the token";
    if (f.sparsity_deviations != 0)
      text += fmt::format(", sparse above {} deviations", f.sparsity_deviations);
    return text;
  }
  static std::string numbers(const MoeSpec& m) {
    std::string text = fmt::format(", {} of {}, {} of {}, {}", m.top_k, m.experts,
                                   m.gated ? "gated" : "plain", m.width, activation_name(m.activation));
    if (m.groups > 1) text += fmt::format(", from {} of {} groups", m.top_groups, m.groups);
    switch (m.score) {
      case RouterScore::kSoftmax:
        text += ", softmax";
        break;
      case RouterScore::kTopKSoftmax:
        text += ", softmax of the chosen";
        break;
      case RouterScore::kSigmoid:
        text += ", sigmoid";
        break;
      case RouterScore::kSparsemixer:
        text += ", sparsemixer";
        break;
    }
    if (m.renormalise) text += ", renormalised";
    if (m.scale != 1.0) text += fmt::format(", scale {}", m.scale);
    return text;
  }
  static std::string numbers(const PerLayerInputSpec& p) {
    return fmt::format(" of {}, {}", p.width, activation_name(p.activation));
  }
  static std::string numbers(const LowRankSpec& l) { return fmt::format(", rank {}", l.rank); }
  static std::string numbers(const IdentitySpec&) { return ""; }
};

}  // namespace

std::string norm_text(const NormSpec& norm) {
  std::string text = norm.kind == NormKind::kRms ? "rms" : "layer";
  text += fmt::format(" eps {}", norm.eps);
  if (norm.group > 0) text += fmt::format(" over {}", norm.group);
  return text;
}

std::string block_kind(const Block& block) {
  return std::visit([](const auto& spec) -> std::string { return Texts::kind(spec); }, block);
}

std::string block_text(const Block& block) {
  return std::visit([](const auto& spec) { return Texts::kind(spec) + Texts::numbers(spec); }, block);
}

std::string streams_text(const StreamSpec& streams) {
  return fmt::format("{}, stream {} is active, per-layer input of {}", streams.count, streams.active,
                     streams.input.width);
}

}  // namespace tessera
