// `tessera inspect`: what a model is, what its file holds, what it needs.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/terminal.h"
#include "engine/session.h"
#include "tools/describe.h"
#include "tools/verify_weights.h"

namespace tessera::cli {
namespace {

struct InspectOptions {
  std::string model;
  ModelOptions computing;
  bool json = false;
  bool plan = false;
  bool verify = false;
};

std::string field(const Json& json, const char* key) {
  const Json* value = json_find(json, key);
  if (value == nullptr || value->is_null()) return "-";
  return value->is_string() ? value->get<std::string>() : dump_json(*value);
}

std::string size_of(const Json& json, const char* key) {
  return size_text(json.at(key).get<uint64_t>());
}

void print_layers(const Json& layers) {
  for (const Json& layer : layers) {
    const auto first = layer["first"].get<int64_t>();
    const auto last = layer["last"].get<int64_t>();
    fmt::print("{}\n",
               first == last ? fmt::format("layer {}", first) : fmt::format("layers {} to {}", first, last));
    for (const Json& sublayer : layer["sublayers"]) {
      std::string norms;
      for (const char* key : {"pre_norm", "post_norm", "out_norm", "alpha", "beta", "residual"})
        if (sublayer.contains(key)) norms += fmt::format("; {} {}", key, field(sublayer, key));
      for (const Json& branch : sublayer["branches"])
        fmt::print("  {:<10} {}{}\n", field(branch, "name"), field(branch, "block"), norms);
    }
  }
}

void print_list(const char* title, const Json& list) {
  if (list.empty()) return;
  fmt::print("\n{}\n", title);
  for (const Json& item : list) fmt::print("  {}\n", item.get<std::string>());
}

void print_description(const Json& json) {
  fmt::print("{}: {} ({} parameters)\n", field(json, "path"), field(json, "architecture"),
             count_text(json["parameters"].get<int64_t>()));
  fmt::print(
      "vocabulary {}, hidden {}, {} layers, trained for {} positions, head {}, stop ids {}, first id {}\n\n",
      field(json, "vocabulary"), field(json, "hidden"), field(json, "layer_count"),
      field(json, "trained_context"), json["tied_head"].get<bool>() ? "tied to the embedding" : "of its own",
      field(json, "stop_ids"), field(json, "bos_id"));
  for (const char* key : {"streams", "per_layer_inputs"})
    if (json.contains(key)) fmt::print("{}: {}\n", key, field(json, key));
  print_layers(json["layers"]);
  if (json.contains("final_norm")) fmt::print("final norm {}\n", field(json, "final_norm"));

  fmt::print("\nstate\n");
  for (const Json& group : json["state"]) {
    fmt::print("  {} layers, {}", field(group, "layers"), field(group, "kind"));
    if (group.contains("window")) fmt::print(" (window {})", field(group, "window"));
    if (group.contains("bytes_per_position"))
      fmt::print(", {} bytes a position, at most {} positions held: {}", field(group, "bytes_per_position"),
                 field(group, "positions_held"), size_of(group, "bytes_held"));
    if (group.contains("bytes_per_sequence"))
      fmt::print(", {} bytes a sequence", field(group, "bytes_per_sequence"));
    fmt::print("\n");
  }
  const Json& memory = json["memory"];
  fmt::print("memory for one sequence of {} positions\n  weights {}, state {}, activations {}: {} in all\n",
             field(memory, "context"), size_of(memory, "weights"), size_of(memory, "state"),
             size_of(memory, "activations"), size_of(memory, "total"));
  if (memory["relaid_weights"].get<uint64_t>() > 0)
    fmt::print("  of it weights in another layout {}\n", size_of(memory, "relaid_weights"));
  print_list("taken as default, the config does not say", json["config_defaults"]);
  print_list("warnings", json["warnings"]);
  print_list("tensors left over by rule", json["ignored_tensors"]);

  size_t width = 0;
  for (const Json& tensor : json["tensors"])
    width = std::max(width, tensor["name"].get_ref<const std::string&>().size());
  fmt::print("\ntensors\n");
  for (const Json& tensor : json["tensors"])
    fmt::print("  {:<{}}  {:<6} {:<16} {:>10}  {}\n", field(tensor, "name"), width, field(tensor, "format"),
               field(tensor, "shape"), size_of(tensor, "bytes"), field(tensor, "source"));
}

Json verification(const WeightCheck& check) {
  Json faults = Json::array();
  for (const WeightFault& fault : check.faults)
    faults.push_back({{"name", fault.slot},
                      {"source", fault.source},
                      {"nan", fault.nan},
                      {"infinite", fault.infinite},
                      {"first_row", fault.row},
                      {"first_column", fault.column}});
  return {{"values", check.values}, {"faults", std::move(faults)}};
}

Result<int> inspect(const InspectOptions& options) {
  TESSERA_TRY(const std::shared_ptr<const Checkpoint> checkpoint, Checkpoint::open(options.model));
  TESSERA_TRY(LoadedModel model, load_model(checkpoint));
  TESSERA_TRY(const SessionOptions session, options.computing.session());
  if (session.precision) {
    ThreadPool threads(available_processors());
    TESSERA_TRY_STATUS(
        pack_weights(model.spec, *session.precision, threads, checkpoint.get(), nullptr, model.weights));
  }
  TESSERA_TRY(const Plan plan, build_plan(model.spec, model.weights));
  const int64_t context = options.computing.context > 0 ? options.computing.context : model.spec.context;
  TESSERA_TRY(const std::unique_ptr<Backend> backend, choose_backend(session.backend));
  const MemoryNeeds needs = backend->memory_needs(plan, model.weights, session.compile);
  Json json = describe_model(model, plan, needs, session.compile, context);
  WeightCheck check;
  if (options.verify) {
    const int64_t chosen = options.computing.threads;
    ThreadPool threads(chosen > 0 ? static_cast<int>(chosen) : available_processors());
    ProgressBar bar("looking at the weights");
    check = verify_weights(model.weights, threads,
                           [&bar](uint64_t done, uint64_t total) { bar.update(done, total); });
  }
  if (options.json) {
    if (options.verify) json["verification"] = verification(check);
    if (options.plan) json["plan"] = dump_plan(plan, model.weights);
    fmt::print("{}\n", dump_json(json, 1));
  } else {
    print_description(json);
    if (options.plan) fmt::print("\nplan\n{}", dump_plan(plan, model.weights));
    if (options.verify)
      fmt::print("\nlooked at {} weights: {} tensors hold NaN or infinity\n", check.values,
                 check.faults.size());
  }
  if (check.faults.empty()) return 0;
  const WeightFault& first = check.faults.front();
  return fail(
      ErrorCode::kBadData,
      "{}: {} ({}): expected finite weights, found {} NaN and {} infinite, the first at row {}, column {}{}",
      options.model, first.source, first.slot, first.nan, first.infinite, first.row, first.column,
      check.faults.size() > 1 ? fmt::format("; {} more tensors like it", check.faults.size() - 1) : "");
}

}  // namespace

void add_inspect_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<InspectOptions>();
  CLI::App* command =
      app.add_subcommand("inspect", "Show what a model is, what its file holds and what it needs");
  command->add_option("model", options->model, kModelHelp)->required()->type_name("MODEL");
  command->add_flag("--json", options->json, "print one JSON object");
  command->add_flag("--plan", options->plan, "the operations of a forward pass as well");
  command->add_flag("--verify", options->verify, "look at every weight; NaN or infinity is an error");
  options->computing.add_to(*command);
  command->final_callback([options, &action] { action = [options] { return inspect(*options); }; });
}

}  // namespace tessera::cli
