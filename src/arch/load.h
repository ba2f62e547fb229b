// From a checkpoint to a bound model: config, architecture, spec, weights. The plan is built from the result
// (plan/plan.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "arch/architecture.h"
#include "model/binder.h"

namespace tessera {

enum class Strictness : uint8_t {
  kLenient,  // unknown config keys are a warning
  kStrict,   // unknown config keys are an error
};

struct LoadedModel {
  std::shared_ptr<const Checkpoint> checkpoint;
  const Architecture* architecture = nullptr;
  ModelSpec spec;
  BoundWeights weights;
  std::vector<std::string> defaults;  // "rms_norm_eps = 1e-06": what the config did not say
  std::vector<std::string> warnings;  // one line each
};

// The spec alone, from a config (no weights needed: random models, inspect). With the checkpoint, its tensor
// list answers what the config leaves open.
struct LoadedSpec {
  const Architecture* architecture = nullptr;
  Dialect dialect;  // what the family's files do differently, for this model
  ModelSpec spec;
  std::vector<std::string> defaults;
  std::vector<std::string> default_sizes;  // those of them that are sizes
  std::vector<std::string> warnings;
};
[[nodiscard]] Result<LoadedSpec> load_spec(const Config& config, Strictness strictness = Strictness::kLenient,
                                           const Checkpoint* checkpoint = nullptr);

[[nodiscard]] Result<LoadedModel> load_model(std::shared_ptr<const Checkpoint> checkpoint,
                                             Strictness strictness = Strictness::kLenient);
// The same with another config than the checkpoint's own.
[[nodiscard]] Result<LoadedModel> load_model(std::shared_ptr<const Checkpoint> checkpoint,
                                             const Config& config,
                                             Strictness strictness = Strictness::kLenient);

}  // namespace tessera
