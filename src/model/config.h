// Config: the numbers of a model in one vocabulary, whatever file they came from. config.json (both
// generations of spelling), GGUF metadata and mlc-chat-config are translated once, by the key table
// (config_keys.cpp), into HuggingFace's names; an architecture reads only those. A key nobody understands is
// not dropped: ConfigReader reports it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"

namespace tessera {

enum class ConfigSource : uint8_t { kHf, kGguf };

class Config {
 public:
  // config.json. A multimodal wrapper's text_config wins over the top level.
  [[nodiscard]] static Result<Config> from_hf(const Json& json, std::string file);
  [[nodiscard]] static Result<Config> from_hf_file(const std::string& path);
  // mlc-chat-config.json: model_config, and what the top level says besides.
  [[nodiscard]] static Result<Config> from_mlc(const Json& json, std::string file);
  // GGUF metadata; the vocabulary size is taken from the embedding table where the file does not say.
  [[nodiscard]] static Result<Config> from_gguf(const Checkpoint& checkpoint);
  [[nodiscard]] static Result<Config> from_checkpoint(const Checkpoint& checkpoint);

  [[nodiscard]] ConfigSource source() const { return source_; }
  [[nodiscard]] const std::string& file() const { return file_; }
  // Names to look the architecture up by, best first: architectures[0], model_type, those of the wrapper; or
  // general.architecture.
  [[nodiscard]] const std::vector<std::string>& architecture_names() const { return architecture_names_; }
  [[nodiscard]] const Json& values() const { return *values_; }
  // The name a key has in its own file, for messages ("<architecture>.rope.freq_base" for rope_theta).
  [[nodiscard]] std::string original_name(std::string_view key) const;
  // True when the text model was wrapped in a multimodal one: towers are skipped by rule.
  [[nodiscard]] bool wrapped() const { return wrapped_; }

 private:
  ConfigSource source_ = ConfigSource::kHf;
  std::string file_;
  std::string prefix_;  // GGUF: "<architecture>."
  std::vector<std::string> architecture_names_;
  std::shared_ptr<Json> values_;
  bool wrapped_ = false;
};

}  // namespace tessera
