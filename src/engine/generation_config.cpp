#include "engine/generation_config.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/mapped_file.h"

namespace tessera {
namespace {

// A number that may be absent or null.
Status read_number(const Json& json, const std::string& file, const char* key, double& value) {
  const Json* found = json_find(json, key);
  if (found == nullptr || found->is_null()) return {};
  TESSERA_TRY(value, json_number(json, key, file));
  return {};
}

Status read_ids(const Json& json, const std::string& file, const char* key, std::vector<int32_t>& ids) {
  const Json* found = json_find(json, key);
  if (found == nullptr || found->is_null()) return {};
  const auto add = [&](const Json& id) -> Status {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 ||
        id.get<int64_t>() > std::numeric_limits<int32_t>::max())
      return fail(ErrorCode::kBadData, "{}: {}: expected a token id or a list of them, found {}", file, key,
                  dump_json(*found));
    ids.push_back(id.get<int32_t>());
    return {};
  };
  if (!found->is_array()) return add(*found);
  for (const Json& id : *found) TESSERA_TRY_STATUS(add(id));
  return {};
}

}  // namespace

Result<GenerationConfig> read_generation_config(const Checkpoint& checkpoint) {
  GenerationConfig config;
  const std::optional<std::string> path = checkpoint.companion("generation_config.json");
  if (!path) return config;
  TESSERA_TRY(const std::string text, read_file(*path));
  TESSERA_TRY(const Json json, parse_python_json(text, *path));
  if (!json.is_object()) return fail(ErrorCode::kBadData, "{}: expected an object", *path);
  TESSERA_TRY_STATUS(read_ids(json, *path, "eos_token_id", config.stop_ids));

  SamplingOptions sampling;
  sampling.temperature = 1;
  double top_k = 0;
  TESSERA_TRY_STATUS(read_number(json, *path, "temperature", sampling.temperature));
  TESSERA_TRY_STATUS(read_number(json, *path, "top_k", top_k));
  TESSERA_TRY_STATUS(read_number(json, *path, "top_p", sampling.top_p));
  TESSERA_TRY_STATUS(read_number(json, *path, "min_p", sampling.min_p));
  TESSERA_TRY_STATUS(read_number(json, *path, "repetition_penalty", sampling.repetition_penalty));
  // The comparison is false for NaN.
  if (!(top_k >= 0 && top_k < 1e9))
    return fail(ErrorCode::kBadData, "{}: top_k: expected a count, found {}", *path, top_k);
  sampling.top_k = static_cast<int64_t>(top_k);

  const Json* samples = json_find(json, "do_sample");
  if (samples != nullptr && samples->is_boolean() && samples->get<bool>()) {
    config.sampling = sampling;
  } else {
    config.sampling.repetition_penalty = sampling.repetition_penalty;  // applies to greedy choices too
  }
  if (const Status valid = validate_sampling(config.sampling, 0); !valid)
    return with_context(valid.error(), *path);
  return config;
}

}  // namespace tessera
