// Translation into one vocabulary: aliases and GGUF names are replaced by the table's names, text_config is
// folded in, GGUF's rope scaling keys become one rope_scaling object.
#include "model/config.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <variant>

#include "model/config_keys.h"

namespace tessera {
namespace {

Json gguf_to_json(const GgufValue& value) {
  return std::visit(
      [](const auto& held) -> Json {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, GgufArray>) {
          Json list = Json::array();
          for (const GgufValue& item : held) list.push_back(gguf_to_json(item));
          return list;
        } else {
          return Json(held);
        }
      },
      value.value);
}

// Stores a value under its canonical name. Two spellings of one key must not disagree.
Status store(Json& values, std::string_view file, const std::string& name, const Json& value) {
  const ConfigKey* key = find_config_key(name);
  const std::string canonical = key != nullptr ? std::string(key->name) : name;
  const auto it = values.find(canonical);
  if (it != values.end() && !it->is_null() && !value.is_null() && *it != value)
    return fail(ErrorCode::kBadData, "{}: {} is {}, but another spelling of it ({}) is {}", file, name,
                dump_json(value), canonical, dump_json(*it));
  if (it == values.end() || it->is_null()) values[canonical] = value;
  return {};
}

void add_name(std::vector<std::string>& names, const Json& object) {
  const Json* list = json_find(object, "architectures");
  if (list != nullptr && list->is_array() && !list->empty() && list->front().is_string())
    names.push_back(list->front().get_ref<const std::string&>());
  const Json* type = json_find(object, "model_type");
  if (type != nullptr && type->is_string()) names.push_back(type->get_ref<const std::string&>());
}

const GgufValue* find_value(const GgufMetadata& metadata, const std::string& key) {
  const auto it = metadata.find(key);
  return it == metadata.end() ? nullptr : &it->second;
}

// GGUF's number of a router's scoring function.
const std::pair<int64_t, const char*> kGatingFunctions[] = {
    {1, "softmax"}, {2, "sigmoid"}, {3, "softmax_topk"}};

Json gating_function(const Json& number) {
  for (const auto& [known, name] : kGatingFunctions)
    if (number == known) return name;
  return dump_json(number);
}

// GGUF's rope.scaling.* as the object that config.json has.
const std::pair<const char*, const char*> kScalingKeys[] = {
    {"rope.scaling.type", "rope_type"},
    {"rope.scaling.factor", "factor"},
    {"rope.scaling.original_context_length", "original_max_position_embeddings"},
    {"rope.scaling.attn_factor", "attention_factor"},
    {"rope.scaling.yarn_beta_fast", "beta_fast"},
    {"rope.scaling.yarn_beta_slow", "beta_slow"},
    {"rope.scaling.yarn_log_multiplier", "yarn_log_multiplier"},
};

}  // namespace

Result<Config> Config::from_hf(const Json& json, std::string file) {
  if (!json.is_object())
    return fail(ErrorCode::kBadData, "{}: expected an object, found {}", file, json_type_name(json));
  Config config;
  config.source_ = ConfigSource::kHf;
  config.file_ = std::move(file);
  config.values_ = std::make_shared<Json>(Json::object());
  add_name(config.architecture_names_, json);
  const Json* text = json_find(json, "text_config");
  if (text != nullptr && text->is_object()) {
    config.wrapped_ = true;
    add_name(config.architecture_names_, *text);
    for (const auto& [key, value] : text->items())
      TESSERA_TRY_STATUS(store(*config.values_, config.file_, key, value));
  }
  for (const auto& [key, value] : json.items()) {
    if (key == "text_config") continue;
    // The text model's values win; what the wrapper says besides them (stop ids, tied embeddings) fills the gaps.
    const ConfigKey* known = find_config_key(key);
    const Json* inner = json_find(*config.values_, known != nullptr ? known->name : std::string_view(key));
    if (config.wrapped_ && inner != nullptr && !inner->is_null()) continue;
    TESSERA_TRY_STATUS(store(*config.values_, config.file_, key, value));
  }
  if (config.architecture_names_.empty())
    return fail(ErrorCode::kBadData, "{}: neither architectures nor model_type says what the model is",
                config.file_);
  return config;
}

Result<Config> Config::from_mlc(const Json& json, std::string file) {
  const Json* model = json_find(json, "model_config");
  if (model == nullptr || !model->is_object())
    return fail(ErrorCode::kBadData, "{}: model_config: expected an object, found {}", file,
                model == nullptr ? "none" : json_type_name(*model));
  Json merged = *model;
  // How the folder is quantised is known from its tensors; the names under which this program knows the others are HF's.
  for (const auto& [key, value] : json.items())
    if (key != "model_config" && key != "quantization" && !merged.contains(key)) merged[key] = value;
  if (const Json* context = json_find(merged, "context_window_size");
      context != nullptr && json_find(merged, "max_position_embeddings") == nullptr &&
      context->is_number_integer() && context->get<int64_t>() > 0)
    merged["max_position_embeddings"] = *context;
  if (const Json* window = json_find(merged, "sliding_window_size");
      window != nullptr && window->is_number_integer() && window->get<int64_t>() < 0)
    merged.erase("sliding_window_size");
  if (const Json* type = json_find(json, "model_type"); type != nullptr && type->is_string())
    merged["model_type"] = *type;
  return from_hf(merged, std::move(file));
}

Result<Config> Config::from_hf_file(const std::string& path) {
  TESSERA_TRY(const Json json, read_json_file(path));
  return from_hf(json, path);
}

Result<Config> Config::from_gguf(const Checkpoint& checkpoint) {
  const GgufMetadata& metadata = checkpoint.metadata();
  Config config;
  config.source_ = ConfigSource::kGguf;
  config.file_ = checkpoint.path();
  config.values_ = std::make_shared<Json>(Json::object());
  const GgufValue* architecture = find_value(metadata, "general.architecture");
  if (architecture == nullptr || !std::holds_alternative<std::string>(architecture->value))
    return fail(ErrorCode::kBadData, "{}: general.architecture is missing", config.file_);
  const auto& name = std::get<std::string>(architecture->value);
  config.architecture_names_.push_back(name);
  config.prefix_ = name + ".";

  std::map<std::string, std::string, std::less<>> canonical;  // GGUF suffix -> name
  for (const ConfigKey& key : significant_keys())
    if (!key.gguf.empty()) canonical.emplace(key.gguf, key.name);
  Json scaling = Json::object();
  Json& values = *config.values_;
  for (const auto& [key, value] : metadata) {
    if (key.rfind(config.prefix_, 0) != 0) continue;
    const std::string suffix = key.substr(config.prefix_.size());
    bool is_scaling = false;
    for (const auto& [from, to] : kScalingKeys) {
      if (suffix != from) continue;
      scaling[to] = gguf_to_json(value);
      is_scaling = true;
    }
    if (is_scaling) continue;
    const auto it = canonical.find(suffix);
    const std::string& name_of_key = it != canonical.end() ? it->second : suffix;
    values[name_of_key] =
        name_of_key == "scoring_func" ? gating_function(gguf_to_json(value)) : gguf_to_json(value);
  }
  if (scaling.contains("rope_type") && scaling["rope_type"] == "none") scaling["rope_type"] = "default";
  if (!scaling.empty()) values["rope_scaling"] = std::move(scaling);
  for (const auto& [from, to] : {std::pair{"tokenizer.ggml.bos_token_id", "bos_token_id"},
                                 std::pair{"tokenizer.ggml.eos_token_id", "eos_token_id"}}) {
    if (const GgufValue* id = find_value(metadata, from)) values[to] = gguf_to_json(*id);
  }
  if (!values.contains("vocab_size")) {
    const TensorEntry* table = checkpoint.find("token_embd.weight");
    if (table != nullptr && table->shape.rank() == 2) values["vocab_size"] = table->shape[0];
  }
  return config;
}

Result<Config> Config::from_checkpoint(const Checkpoint& checkpoint) {
  if (checkpoint.kind() == CheckpointKind::kGguf) return from_gguf(checkpoint);
  if (checkpoint.config() == nullptr)
    return fail(ErrorCode::kNotFound, "{}: no config.json beside it: it says what the tensors mean",
                checkpoint.path());
  if (checkpoint.kind() == CheckpointKind::kMlc)
    return from_mlc(*checkpoint.config(), "mlc-chat-config.json");
  TESSERA_TRY(Config config, from_hf(*checkpoint.config(), "config.json"));
  // The tensors have been read as these say.
  config.values_->erase("quantization");
  config.values_->erase("quantization_config");
  return config;
}

std::string Config::original_name(std::string_view key) const {
  if (source_ != ConfigSource::kGguf) return std::string(key);
  const ConfigKey* known = find_config_key(key);
  if (known == nullptr || known->gguf.empty()) return std::string(key);
  return prefix_ + std::string(known->gguf);
}

}  // namespace tessera
