#include "tools/describe.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <type_traits>

#include "formats/format_info.h"

namespace tessera {
namespace {

// "rms", "layer", with what is unusual about it.
std::string norm_text(const NormSpec& norm) {
  std::string text = norm.kind == NormKind::kRms ? "rms" : "layer";
  text += fmt::format(" eps {}", norm.eps);
  if (norm.group > 0) text += fmt::format(" over {}", norm.group);
  return text;
}

std::string attention_text(const AttentionSpec& attention) {
  std::string text = fmt::format("attention, {} heads of {}, {} for keys and values", attention.heads,
                                 attention.head_dim, attention.kv_heads);
  if (attention.value_dim != attention.head_dim) text += fmt::format(" (values of {})", attention.value_dim);
  text += attention.rope ? fmt::format(", rope {}", *attention.rope) : ", no rope";
  if (attention.window > 0) text += fmt::format(", window {}", attention.window);
  if (!attention.causal) text += ", both ways";
  if (attention.q_norm) text += ", normed queries";
  if (attention.k_norm) text += ", normed keys";
  if (attention.softcap != 0) text += fmt::format(", softcap {}", attention.softcap);
  if (attention.query_scale_beta != 0)
    text += fmt::format(", queries grow by {}", attention.query_scale_beta);
  return text;
}

std::string feed_forward_text(const FfnSpec& ffn) {
  return fmt::format("{} feed-forward of {}, {}", ffn.gated ? "gated" : "plain", ffn.width,
                     activation_name(ffn.activation));
}

std::string block_text(const Block& block) {
  return std::visit(
      [](const auto& spec) -> std::string {
        using T = std::decay_t<decltype(spec)>;
        if constexpr (std::is_same_v<T, AttentionSpec>)
          return attention_text(spec);
        else if constexpr (std::is_same_v<T, FfnSpec>)
          return feed_forward_text(spec);
        else
          return "block";  // its slots and the plan say more
      },
      block);
}

Json sublayer_json(const Sublayer& sublayer) {
  Json json = Json::object();
  json["name"] = sublayer.name;
  if (sublayer.pre) json["pre_norm"] = norm_text(*sublayer.pre);
  Json branches = Json::array();
  for (const Branch& branch : sublayer.branches) {
    Json one = {{"name", branch.name}, {"block", block_text(branch.block)}};
    if (branch.pre) one["pre_norm"] = norm_text(*branch.pre);
    if (branch.post) one["post_norm"] = norm_text(*branch.post);
    if (branch.weight.value != 1.0) one["weight"] = branch.weight.value;
    if (branch.input_scale != 1.0) one["input_scale"] = branch.input_scale;
    branches.push_back(std::move(one));
  }
  json["branches"] = std::move(branches);
  if (sublayer.post) json["post_norm"] = norm_text(*sublayer.post);
  if (sublayer.out) json["out_norm"] = norm_text(*sublayer.out);
  if (sublayer.alpha != 1.0) json["alpha"] = sublayer.alpha;
  if (sublayer.beta.slot)
    json["beta"] = "from the file";
  else if (sublayer.beta.value != 1.0)
    json["beta"] = sublayer.beta.value;
  if (sublayer.residual == ResidualFrom::kNormedInput) json["residual"] = "of the normed input";
  return json;
}

// Equal neighbours are one entry with "first" and "last".
Json layers_json(const ModelSpec& spec) {
  Json layers = Json::array();
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    Json sublayers = Json::array();
    for (const Sublayer& sublayer : spec.layers[i].sublayers) sublayers.push_back(sublayer_json(sublayer));
    if (!layers.empty() && layers.back()["sublayers"] == sublayers) {
      layers.back()["last"] = i;
    } else {
      layers.push_back({{"first", i}, {"last", i}, {"sublayers", std::move(sublayers)}});
    }
  }
  return layers;
}

Json state_json(const Plan& plan, const CompileOptions& options, int64_t context, uint64_t& total) {
  const int64_t value_bytes = options.state == StateType::kF32 ? 4 : 2;
  Json groups = Json::array();
  for (const StateGroup& group : plan.states) {
    Json json = Json::object();
    int64_t bytes = 0;
    if (group.kind == StateKind::kFixed) {
      json["kind"] = "fixed";
      bytes = group.values_per_sequence() * 4;
      json["bytes_per_sequence"] = bytes;
    } else {
      const int64_t per_position = group.values_per_position() * value_bytes;
      const bool windowed = group.kind == StateKind::kWindowed;
      json["kind"] = windowed ? "windowed" : "paged";
      if (windowed) json["window"] = group.window;
      json["bytes_per_position"] = per_position;
      bytes = per_position * (windowed ? std::min(context, group.window + options.max_tokens) : context);
    }
    json["layers"] = group.layers.size();
    total += static_cast<uint64_t>(bytes);
    groups.push_back(std::move(json));
  }
  return groups;
}

Json tensors_json(const BoundWeights& weights) {
  Json tensors = Json::array();
  for (const BoundSlot& slot : weights.slots()) {
    Json json = Json::object();
    json["name"] = slot.slot.name;
    json["shape"] = slot.slot.shape.dims();
    std::string formats;
    uint64_t bytes = slot.values.size() * sizeof(float);
    for (const Weight& part : slot.parts) {
      const std::string name = format_name(part.format);
      if (formats.find(name) == std::string::npos) formats += (formats.empty() ? "" : "+") + name;
      bytes += static_cast<uint64_t>(part.rows * format_row_bytes(part.format, part.columns));
    }
    json["format"] = formats.empty() ? "F32" : formats;
    json["bytes"] = bytes;
    json["source"] = slot.source;
    tensors.push_back(std::move(json));
  }
  return tensors;
}

}  // namespace

Json describe_model(const LoadedModel& model, const Plan& plan, const CompileOptions& options,
                    int64_t context) {
  const ModelSpec& spec = model.spec;
  Json json = Json::object();
  if (model.checkpoint != nullptr) json["path"] = model.checkpoint->path();
  json["architecture"] = spec.architecture;
  int64_t parameters = 0;
  for (const BoundSlot& slot : model.weights.slots()) parameters += slot.slot.shape.elements();
  json["parameters"] = parameters;
  json["vocabulary"] = spec.vocabulary;
  json["hidden"] = spec.hidden;
  json["layer_count"] = spec.layers.size();
  json["trained_context"] = spec.context;
  json["tied_head"] = model.weights.find("head.weight") == nullptr;
  json["stop_ids"] = spec.stop_ids;
  json["bos_id"] = spec.bos_id ? Json(*spec.bos_id) : Json();
  json["layers"] = layers_json(spec);
  if (spec.final_norm) json["final_norm"] = norm_text(*spec.final_norm);

  uint64_t state_bytes = 0;
  json["state"] = state_json(plan, options, context, state_bytes);
  const uint64_t activations =
      sizeof(float) * static_cast<uint64_t>(plan.token_arena * options.max_tokens + plan.output_arena);
  const uint64_t weights = model.weights.bytes();
  json["memory"] = {{"context", context},
                    {"weights", weights},
                    {"state", state_bytes},
                    {"activations", activations},
                    {"total", weights + state_bytes + activations}};
  json["config_defaults"] = model.defaults;
  json["warnings"] = model.warnings;
  json["ignored_tensors"] = model.weights.ignored();
  json["tensors"] = tensors_json(model.weights);
  return json;
}

}  // namespace tessera
