// Architecture: one row of the registry. A family is the names it is published under, a function that turns
// its config into a ModelSpec, and what differs in its dialects from the common ones. Nothing else in the
// engine knows a family's name.
#pragma once

#include <string_view>
#include <vector>

#include "model/config_reader.h"
#include "model/dialect.h"
#include "model/spec.h"

namespace tessera {

struct Architecture {
  std::string_view family;                        // "llama"
  std::vector<std::string_view> hf_names = {};    // classes and model types of config.json
  std::vector<std::string_view> gguf_names = {};  // general.architecture
  std::string_view gguf_key = {};  // where families share such a name: only this one's files have it (not 0)
  // Fills the spec; may add dialect rows that depend on the model's numbers (it holds the rows below already).
  void (*build)(ConfigReader& config, ModelSpec& spec, Dialect& dialect) = nullptr;
  // What its layers are made of, for people; a test holds it to the family's checkpoints.
  std::vector<std::string_view> blocks = {"attention", "gated feed-forward"};
  Dialect hf = {};    // rows that come before hf_dialect()
  Dialect gguf = {};  // rows that come before gguf_dialect()
  // Rows that come before those of `hf` where MLX or MLC wrote the file: what their converters have already baked in.
  std::vector<DialectRow> converted = {};
};

// The explicit list, in alphabetical order of families.
[[nodiscard]] const std::vector<const Architecture*>& architectures();

// By the config's names; an unknown one is an error that lists what is supported.
[[nodiscard]] Result<const Architecture*> find_architecture(const Config& config);

}  // namespace tessera
