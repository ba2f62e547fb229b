#include "tools/describe.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/state_pool.h"
#include "formats/format_info.h"
#include "tools/describe_blocks.h"

namespace tessera {
namespace {

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

// What one sequence of `context` positions holds, in whole pages as they are handed out.
Json state_json(const Plan& plan, const MemoryNeeds& needs, const CompileOptions& options, int64_t context,
                uint64_t& total) {
  const int64_t page = options.page_positions;
  const StateCapacity capacity = capacity_for(plan.states, page, {context, 1, options.max_tokens});
  Json groups = Json::array();
  for (size_t g = 0; g < plan.states.size(); ++g) {
    const StateGroup& group = plan.states[g];
    Json json = Json::object();
    uint64_t bytes = 0;
    if (group.kind == StateKind::kFixed) {
      json["kind"] = "fixed";
      bytes = needs.slot_bytes;  // there is one fixed group at most
      json["bytes_per_sequence"] = bytes;
    } else {
      const bool windowed = group.kind == StateKind::kWindowed;
      json["kind"] = windowed ? "windowed" : "paged";
      if (windowed) json["window"] = group.window;
      json["bytes_per_position"] = needs.page_bytes[g] / static_cast<uint64_t>(page);
      json["positions_held"] = capacity.pages[g] * page;
      bytes = needs.page_bytes[g] * static_cast<uint64_t>(capacity.pages[g]);
      json["bytes_held"] = bytes;
    }
    json["layers"] = group.layers.size();
    total += bytes;
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
      bytes += static_cast<uint64_t>(part.rows * format_stored_bytes(part.format, part.columns));
    }
    json["format"] = formats.empty() ? "F32" : formats;
    json["bytes"] = bytes;
    json["source"] = slot.source;
    tensors.push_back(std::move(json));
  }
  return tensors;
}

}  // namespace

Json describe_model(const LoadedModel& model, const Plan& plan, const MemoryNeeds& needs,
                    const CompileOptions& options, int64_t context) {
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
  if (spec.streams) json["streams"] = streams_text(*spec.streams);
  if (spec.embedding.per_layer_width > 0)
    json["per_layer_inputs"] = fmt::format("{} values a layer, from a table of {} rows and the embedding",
                                           spec.embedding.per_layer_width, spec.embedding.per_layer_rows);
  json["layers"] = layers_json(spec);
  if (spec.final_norm) json["final_norm"] = norm_text(*spec.final_norm);

  uint64_t state_bytes = 0;
  json["state"] = state_json(plan, needs, options, context, state_bytes);
  const uint64_t activations =
      sizeof(float) * static_cast<uint64_t>(plan.token_arena * options.max_tokens + plan.output_arena);
  const uint64_t weights = model.weights.bytes();
  json["memory"] = {{"context", context},
                    {"weights", weights},
                    {"relaid_weights", needs.relaid_bytes},
                    {"state", state_bytes},
                    {"activations", activations},
                    {"total", weights + needs.relaid_bytes + state_bytes + activations}};
  json["config_defaults"] = model.defaults;
  json["warnings"] = model.warnings;
  json["ignored_tensors"] = model.weights.ignored();
  json["tensors"] = tensors_json(model.weights);
  return json;
}

}  // namespace tessera
