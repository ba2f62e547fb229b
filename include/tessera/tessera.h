// Tessera's public interface: load a model, turn text into token ids and back, generate.
//
//   auto model = tessera::Model::load("path/to/model");          // a folder, a .gguf or a .safetensors file
//   if (!model) return complain(model.error().message);
//   auto answer = model->generate("Once upon a time", {.max_tokens = 100});
//
// CMake: find_package(tessera REQUIRED), target_link_libraries(program PRIVATE tessera::tessera).
//
// Errors are values (Expected), never exceptions; a message is one line that names the file or option, what was
// expected and what was found. Text is UTF-8. Counts and positions are tokens, sizes bytes, times seconds. A
// Model and its Generations belong to one thread at a time; different Models are independent.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tessera {
inline namespace v1 {
// --- errors -------------------------------------------------------------------------------------------------

enum class ErrorKind {
  kInvalidArgument,  // an option or a prompt that makes no sense
  kNotFound,         // a file that is not there
  kBadData,          // a file that breaks its format or does not fit the model
  kUnsupported,      // well-formed, but not computed by this library
  kResourceLimit,    // memory, context or a queue is full
  kIo,               // the operating system refused
  kDevice,           // an accelerator failed
  kCancelled,
};

struct Error {
  ErrorKind kind = ErrorKind::kBadData;
  std::string message;  // one line, without a full stop
};

// A value or an Error. Asking for the one that is not there aborts the program.
template <class T>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : held_(std::in_place_index<0>, std::move(value)) {}
  Expected(Error error) : held_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return held_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  T& value() & { return *get<0>(); }
  const T& value() const& { return *get<0>(); }
  T&& value() && { return std::move(*get<0>()); }
  T& operator*() & { return *get<0>(); }
  const T& operator*() const& { return *get<0>(); }
  T&& operator*() && { return std::move(*get<0>()); }
  T* operator->() { return get<0>(); }
  const T* operator->() const { return get<0>(); }
  const Error& error() const { return *get<1>(); }

 private:
  template <size_t index>
  auto* get() {
    auto* held = std::get_if<index>(&held_);
    if (held == nullptr) std::abort();
    return held;
  }
  template <size_t index>
  const auto* get() const {
    const auto* held = std::get_if<index>(&held_);
    if (held == nullptr) std::abort();
    return held;
  }
  std::variant<T, Error> held_;
};

// --- loading ------------------------------------------------------------------------------------------------

enum class Arithmetic {
  kFast,   // what is fastest within the documented bounds
  kExact,  // float32 activations throughout
};
enum class CacheType { kF16, kF32 };  // how keys and values are kept

struct LoadOptions {
  std::string backend = "auto";  // "auto", "cpu", "reference"
  int threads = 0;               // 0: as many as the process may use
  Arithmetic arithmetic = Arithmetic::kFast;
  CacheType cache = CacheType::kF16;
  int64_t context = 0;       // positions of one text; 0: what the model was trained for, if its state fits
  uint64_t state_bytes = 0;  // upper bound for the state of all texts; 0: half of the free memory
};

struct ModelInfo {
  std::string path;
  std::string architecture;   // the family's name
  std::string backend;        // "cpu (AVX2 and FMA, 4 threads)"
  int64_t parameters = 0;     // numbers in the weights
  uint64_t weight_bytes = 0;  // as they lie in memory
  int64_t vocabulary = 0;     // ids the model knows: [0, vocabulary)
  int64_t hidden = 0;         // width of its residual stream
  int64_t layers = 0;
  int64_t trained_context = 0;  // positions
  int64_t context = 0;          // positions a text may have here, prompt and answer together
  uint64_t state_bytes_per_position = 0;
  std::vector<int32_t> stop_ids;      // ids that end an answer
  std::vector<std::string> warnings;  // one line each
};

// --- generating ---------------------------------------------------------------------------------------------

// What is not set is as the model's generation_config.json says, or greedy where it says nothing. The
// filters apply in the order: logit bias, penalties, temperature, top_k, top_p, min_p.
struct GenerateOptions {
  std::optional<int64_t> max_tokens = {};  // none: until the model ends, or the context is full
  int64_t min_tokens = 0;                  // nothing but max_tokens and the context ends the answer before
  std::optional<double> temperature = {};  // >= 0; 0: always the most likely token
  std::optional<int64_t> top_k = {};       // >= 0; 0: off
  std::optional<double> top_p = {};        // (0, 1]; 1: off
  std::optional<double> min_p = {};        // [0, 1]; 0: off
  std::optional<double> repetition_penalty = {};           // > 0; 1: off; over prompt and answer
  double presence_penalty = 0;                             // over the answer
  double frequency_penalty = 0;                            // over the answer
  std::vector<std::pair<int32_t, float>> logit_bias = {};  // id, what is added to its logit
  std::optional<uint64_t> seed = {};                       // none: a random one; Completion::seed says which
  std::vector<std::string> stop = {};                      // the answer ends before the first of these
  std::vector<int32_t> stop_ids = {};                      // besides the model's
  bool ignore_end_of_sequence = false;                     // the model's stop ids are tokens like any other
};

enum class Finish {
  kStop,         // the model ended, or a stop string or id was reached
  kLength,       // max_tokens
  kContextFull,  // prompt and answer fill the context
  kCancelled,
};

struct Token {
  int32_t id = -1;   // -1: text that had been held back, at the end
  std::string text;  // whole characters, and no part of a stop string; may be empty
};

struct Completion {
  std::string text;          // of the answer, without the prompt
  std::vector<int32_t> ids;  // of the answer, a final stop id included
  Finish finish = Finish::kStop;
  uint64_t seed = 0;  // gives the same answer again
  int64_t prompt_tokens = 0;
  double prompt_seconds = 0;  // until the first token
  double decode_seconds = 0;  // from the first token to the last
};

// Called for every token; false ends the answer (Finish::kCancelled).
using TokenCallback = std::function<bool(const Token&)>;

// One answer on its way. Several may be under way on one model: they are computed together, and what they
// give does not depend on each other. Destroying it cancels it. It keeps its
// model alive.
class Generation {
 public:
  Generation(Generation&&) noexcept;
  Generation& operator=(Generation&&) noexcept;
  ~Generation();

  // The next token, or nothing when the answer is complete.
  Expected<std::optional<Token>> next();
  void cancel();
  // What there is so far; complete when next() has given nothing.
  const Completion& completion() const;

  // for (const Token& token : generation) ...; an error ends the loop, and error() has it.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Token;
    using difference_type = std::ptrdiff_t;
    const Token& operator*() const { return token_; }
    const Token* operator->() const { return &token_; }
    Iterator& operator++();
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& iterator, std::default_sentinel_t) {
      return iterator.generation_ == nullptr;
    }

   private:
    friend class Generation;
    Generation* generation_ = nullptr;
    Token token_;
  };
  Iterator begin();
  std::default_sentinel_t end() const { return {}; }
  const std::optional<Error>& error() const;

 private:
  friend class Model;
  struct State;
  explicit Generation(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

enum class Specials {
  kAdd,   // what the tokenizer puts around a text (a begin token, usually)
  kNone,  // the text alone
};

class Model {
 public:
  // Maps the weights (nothing is copied that need not be) and prepares the backend.
  static Expected<Model> load(const std::string& path, const LoadOptions& options = {});

  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  const ModelInfo& info() const;

  // kNotFound: the model has no tokenizer.
  Expected<std::vector<int32_t>> tokenize(std::string_view text, Specials specials = Specials::kAdd) const;
  // Special tokens are left out.
  Expected<std::string> detokenize(std::span<const int32_t> ids) const;

  // The whole answer; `on_token` sees it grow. An empty text means the model's first token alone.
  Expected<Completion> generate(std::string_view prompt, const GenerateOptions& options = {},
                                const TokenCallback& on_token = {});
  // `prompt`: ids below ModelInfo::vocabulary, at least one, taken as they are.
  Expected<Completion> generate(std::span<const int32_t> prompt, const GenerateOptions& options = {},
                                const TokenCallback& on_token = {});
  Expected<Generation> start(std::string_view prompt, const GenerateOptions& options = {});
  Expected<Generation> start(std::span<const int32_t> prompt, const GenerateOptions& options = {});

 private:
  friend class Generation;
  struct State;
  explicit Model(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

// "0.1.0"
std::string_view version();

}  // namespace v1
}  // namespace tessera
