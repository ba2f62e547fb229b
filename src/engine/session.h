// Session: everything that turns a path into answers, put together: checkpoint, bound model, plan, compiled
// executable, tokenizer and engine. It owns them all and keeps the order in which they must die.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arch/load.h"
#include "backend/backend.h"
#include "base/result.h"
#include "engine/engine.h"
#include "engine/generation_config.h"
#include "engine/page_in.h"
#include "model/pack_weights.h"
#include "plan/plan.h"
#include "text/tokenizer.h"

namespace tessera {

struct SessionOptions {
  std::string backend = "auto";  // "auto": the first that this build has
  CompileOptions compile;        // max_sequences and max_outputs follow engine.max_running
  EngineOptions engine;          // stop_ids are added to the model's
  Strictness strictness = Strictness::kLenient;
  PageInProgress page_in;  // when set, weights that are not in memory are read first, and this is told
  std::optional<PrecisionPolicy> precision;  // unquantised weights are packed while loading
  PackProgress pack;                         // told about it; may be empty
};

class Session {
 public:
  // A folder, a .gguf or a .safetensors file.
  [[nodiscard]] static Result<std::unique_ptr<Session>> load(const std::string& path,
                                                             const SessionOptions& options);
  // The same for a model that is bound already (random weights); there is no tokenizer unless `checkpoint` of
  // the model brings one.
  [[nodiscard]] static Result<std::unique_ptr<Session>> create(LoadedModel model,
                                                               const SessionOptions& options);

  [[nodiscard]] const ModelSpec& spec() const { return model_.spec; }
  [[nodiscard]] const LoadedModel& model() const { return model_; }
  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] const Backend& backend() const { return *backend_; }
  [[nodiscard]] const Executable& executable() const { return *executable_; }
  [[nodiscard]] Engine& engine() { return *engine_; }
  // An error says why there is none (no file, or one that is not supported).
  [[nodiscard]] Result<const Tokenizer*> tokenizer() const;
  [[nodiscard]] const GenerationConfig& generation() const { return generation_; }
  [[nodiscard]] const std::vector<int32_t>& stop_ids() const { return stop_ids_; }
  // One line each: unknown keys, more token ids than rows, ...
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

  // The ids of a prompt, special tokens added as the tokenizer says. An empty text is the model's first token
  // alone, or an error where it has none.
  [[nodiscard]] Result<std::vector<int32_t>> encode_prompt(std::string_view text) const;

 private:
  Session() = default;
  void find_stop_ids(const std::vector<int32_t>& more);

  LoadedModel model_;
  Plan plan_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Executable> executable_;
  std::unique_ptr<Tokenizer> tokenizer_;
  Error tokenizer_error_;
  GenerationConfig generation_;
  std::vector<int32_t> stop_ids_;
  std::vector<std::string> warnings_;
  std::unique_ptr<Engine> engine_;
};

// The tokenizer that belongs to a checkpoint: tokenizer.json beside it, or the vocabulary inside a GGUF file.
[[nodiscard]] Result<std::unique_ptr<Tokenizer>> load_tokenizer(const Checkpoint& checkpoint);

// "auto" becomes the first backend of the build.
[[nodiscard]] Result<std::unique_ptr<Backend>> choose_backend(std::string_view name);

}  // namespace tessera
