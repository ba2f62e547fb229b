// What a device has to offer. An Executable is a plan compiled for bound weights; it takes steps (StepInput)
// and gives results through tickets, so that an asynchronous device fits the same interface as the CPU, which
// completes at once. Pages and slots of state live in a StateStorage, which the engine's StatePool hands out;
// the Executable owns only its activation arena.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"

namespace tessera {

enum class ActivationType : uint8_t {
  kExact,    // float32 throughout: what the goldens are compared with at 1e-9
  kDefault,  // what is fastest on this backend within the documented bounds (8-bit activations for quantised
             // weights on the CPU)
};

enum class StateType : uint8_t { kF32, kF16 };  // of paged state; recurrent state is always float32

// Recurrences and latent attention have two forms that give the same result; a backend chooses by what is cheaper. Tests and
// measurements force one. A backend with one form only uses that.
enum class SequenceForm : uint8_t {
  kAuto,
  kTokens,  // one token after the other
  kBlocks,  // by blocks of tokens, from two tokens on
};
enum class LatentForm : uint8_t {
  kAuto,
  kAbsorbed,  // queries are taken into the latent space
  kExpanded,  // keys and values are made from the latents
};

struct CompileOptions {
  ActivationType activations = ActivationType::kDefault;
  StateType state = StateType::kF16;
  int threads = 0;            // 0: as many as the process may use
  int page_positions = 16;    // positions per page of paged state
  int64_t max_tokens = 512;   // per step; the arena is made for so many
  int64_t max_outputs = 512;  // output rows per step
  int64_t max_sequences = 64;
  SequenceForm sequence_form = SequenceForm::kAuto;
  LatentForm latent_form = LatentForm::kAuto;
};

// What a plan needs beside its weights.
struct MemoryNeeds {
  std::vector<uint64_t> page_bytes;  // per state group: a page of all its layers; 0 for fixed groups
  uint64_t slot_bytes = 0;           // fixed state of one sequence, all groups
  uint64_t relaid_bytes = 0;         // copies of weights in another layout
};

struct StateCapacity {
  std::vector<int64_t> pages;  // per state group (0 for fixed groups)
  int64_t slots = 0;           // of fixed state, for every fixed group
};

// The memory of a model's state. Page p of a group holds page_positions positions of all its layers.
class StateStorage {
 public:
  virtual ~StateStorage() = default;
  [[nodiscard]] virtual const StateCapacity& capacity() const = 0;
  [[nodiscard]] virtual uint64_t bytes() const = 0;
  // Copy-on-write and snapshots: the whole page or slot.
  virtual Status copy_page(int group, int32_t from, int32_t to) = 0;
  virtual Status copy_slot(int32_t from, int32_t to) = 0;
  // Fixed state of a new sequence starts from zero.
  virtual Status clear_slot(int32_t slot) = 0;
};

// Pages of one group: sequence s has entries [offsets[s], offsets[s + 1]), entry i for positions [i * page,
// (i + 1) * page). -1: the page was given back (behind the window) or is not there; a step never reads it.
struct PageTable {
  std::span<const int32_t> pages;
  std::span<const int32_t> offsets;  // [S + 1]
};

struct StepInput {
  StateStorage* state = nullptr;
  std::span<const int32_t> tokens;     // [T]; may be empty when embeddings are given
  std::span<const float> embeddings;   // [T, Plan::embedding_width], instead of the rows of the embedding
                                       // table; a plan that looks up more by id needs the tokens as well
  std::span<const int32_t> positions;  // [T] for rope and learned positions, or [3, T] (time, height, width)
  std::span<const int32_t>
      sequence_offsets;  // [S + 1]: sequence s has tokens [offsets[s], offsets[s + 1]), at least one
  std::span<const int32_t>
      past;  // [S]: positions already in the state; token i of s is stored at past[s] + i
  std::span<const int32_t> rope_lengths;   // [S]: the length that chooses length-dependent rope tables
  std::span<const PageTable> page_tables;  // one per state group (empty tables for fixed groups)
  std::span<const int32_t> read_slots;     // [S] fixed state is read from here ...
  std::span<const int32_t> write_slots;    // [S] ... and written here (equal: in place)
  std::span<const int32_t> output_rows;    // [R]: token indices whose logits are wanted, ascending
};

struct StepOutput {
  std::span<const float> logits;  // [R, vocabulary]
  std::vector<std::pair<std::string, std::span<const float>>>
      hidden;  // the plan's named values, [T, width] each
};

using Ticket = uint64_t;

class Executable {
 public:
  virtual ~Executable() = default;
  [[nodiscard]] virtual Result<std::unique_ptr<StateStorage>> allocate_state(
      const StateCapacity& capacity) = 0;
  // Starts a step. The spans of `input` need not outlive the call. One step may be in flight.
  [[nodiscard]] virtual Result<Ticket> submit(const StepInput& input) = 0;
  [[nodiscard]] virtual Result<bool> ready(Ticket ticket) = 0;
  // Waits. The output is valid until the next submit.
  [[nodiscard]] virtual Result<StepOutput> wait(Ticket ticket) = 0;
  // Bytes of one page of a group (all its layers), and of one slot of all fixed groups.
  [[nodiscard]] virtual uint64_t page_bytes(int group) const = 0;
  [[nodiscard]] virtual uint64_t slot_bytes() const = 0;
  [[nodiscard]] virtual uint64_t arena_bytes() const = 0;
  [[nodiscard]] virtual const CompileOptions& options() const = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;    // "cpu"
  [[nodiscard]] virtual std::string description() const = 0;  // "cpu (AVX-512 with VNNI and BF16, 2 threads)"
  // An error names the op or format that this backend does not compute.
  [[nodiscard]] virtual Status supports(const Plan& plan, const BoundWeights& weights) const = 0;
  // What compile() and allocate_state() would take; allocates nothing.
  [[nodiscard]] virtual MemoryNeeds memory_needs(const Plan& plan, const BoundWeights& weights,
                                                 const CompileOptions& options) const = 0;
  // plan and weights must outlive the Executable.
  [[nodiscard]] virtual Result<std::unique_ptr<Executable>> compile(const Plan& plan,
                                                                    const BoundWeights& weights,
                                                                    const CompileOptions& options) = 0;
};

// "reference" or "cpu"; an unknown name is an error that lists the known ones.
[[nodiscard]] Result<std::unique_ptr<Backend>> make_backend(std::string_view name);
[[nodiscard]] std::vector<std::string> backend_names();

// Checks a step against plan, options and state before it runs (shared by all backends): sizes of the spans,
// token ids below the rows of the embedding table, pages present for every position that is stored.
[[nodiscard]] Status check_step(const Plan& plan, const BoundWeights& weights, const CompileOptions& options,
                                const StepInput& input);

}  // namespace tessera
