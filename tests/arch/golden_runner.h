// Runs one reference checkpoint on one backend in the four ways and measures how far it is from the
// reference: the whole prompt at once, one token at a time, in chunks of 7, and as one part of a ragged
// batch. Shared by the tests and by tessera-goldens.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "arch/cases.h"
#include "arch/load.h"
#include "backend/backend.h"

namespace tessera {

enum class Way { kWhole, kTokens, kChunks, kRagged };
inline constexpr std::array kWays = {Way::kWhole, Way::kTokens, Way::kChunks, Way::kRagged};
[[nodiscard]] const char* way_name(Way way);

// Where a case's files lie; `config` is "config.json" or "config.legacy.json", "": what
// the checkpoint brings along.
struct GoldenPaths {
  std::string checkpoint;
  std::string config;
  std::string golden;
};
[[nodiscard]] GoldenPaths golden_paths(const GoldenCase& golden, const std::string& config);

// What a model is compared with.
struct Golden {
  std::vector<int32_t> ids;
  std::vector<float> logits;  // [T, vocabulary]
  std::vector<int32_t> greedy;
};
[[nodiscard]] Result<Golden> read_golden(const std::string& path);

// Sum of squared differences over the sum of squares of `reference`.
[[nodiscard]] double normalised_squared_error(const std::vector<float>& values,
                                              const std::vector<float>& reference);

// How the tokens of the compared sequence are given to a step.
struct Feed {
  enum class Rows : uint8_t {
    kIds,
    kEmbeddings,         // the rows of the embedding table, made outside; ids only where the plan needs them
    kEmbeddingsWithIds,  // both
  } rows = Rows::kIds;
  // position -> [time, height, width]; null: one axis.
  std::array<int32_t, 3> (*axes)(int32_t position) = nullptr;
};

// A loaded model on a backend. Pages are handed out in a scrambled order, so that nobody gets away with
// ignoring the table.
class GoldenModel {
 public:
  [[nodiscard]] static Result<std::unique_ptr<GoldenModel>> load(const std::string& checkpoint,
                                                                 const std::string& config,
                                                                 std::string_view backend,
                                                                 const CompileOptions& options);
  // The same from a checkpoint that is open already, with its own config.
  [[nodiscard]] static Result<std::unique_ptr<GoldenModel>> load(std::shared_ptr<const Checkpoint> checkpoint,
                                                                 std::string_view backend,
                                                                 const CompileOptions& options);

  // Logits [T, vocabulary] of every position of `ids`.
  [[nodiscard]] Result<std::vector<float>> logits(const std::vector<int32_t>& ids, Way way);

  // Greedy continuation with the state kept; stops before the first step whose two best logits are closer
  // than `gap`.
  [[nodiscard]] Result<std::vector<int32_t>> greedy(const std::vector<int32_t>& prompt, size_t count,
                                                    double gap);

  // From now on.
  void set_feed(const Feed& feed) { feed_ = feed; }

  [[nodiscard]] const LoadedModel& model() const { return model_; }
  [[nodiscard]] const Plan& plan() const { return plan_; }

 private:
  struct Sequence {
    std::vector<int32_t> ids;
    int32_t past = 0;
    int32_t first_page = 0;  // number of the sequence: its pages and slot
  };
  // One step: `count[i]` further tokens of each sequence; appends the logits of sequence 0's rows.
  Status step(std::vector<Sequence>& sequences, const std::vector<int32_t>& counts,
              std::vector<float>& logits);
  Status reset();
  // Plans and compiles what `model` holds.
  [[nodiscard]] static Result<std::unique_ptr<GoldenModel>> make(LoadedModel model, std::string_view backend,
                                                                 const CompileOptions& options);

  LoadedModel model_;
  Plan plan_;
  Feed feed_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Executable> executable_;
  std::unique_ptr<StateStorage> state_;
};

}  // namespace tessera
