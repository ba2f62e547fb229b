// The public Model: loading, text and ids, requests.
#include "engine/api/state.h"

namespace tessera {
inline namespace v1 {
namespace {

ModelInfo describe(const std::string& path, Session& session) {
  ModelInfo info;
  const ModelSpec& spec = session.spec();
  info.path = path;
  info.architecture = spec.architecture;
  info.backend = session.backend().description();
  for (const BoundSlot& slot : session.model().weights.slots()) info.parameters += slot.slot.shape.elements();
  info.weight_bytes = session.model().weights.bytes();
  info.vocabulary = spec.vocabulary;
  info.hidden = spec.hidden;
  info.layers = static_cast<int64_t>(spec.layers.size());
  info.trained_context = spec.context;
  info.context = session.engine().context();
  const Executable& executable = session.executable();
  for (size_t g = 0; g < session.plan().states.size(); ++g)
    if (session.plan().states[g].kind != StateKind::kFixed)
      info.state_bytes_per_position += executable.page_bytes(static_cast<int>(g)) /
                                       static_cast<uint64_t>(executable.options().page_positions);
  info.stop_ids = session.stop_ids();
  info.warnings = session.warnings();
  return info;
}

Request make_request(const Session& session, std::vector<int32_t> prompt, const GenerateOptions& options) {
  Request request;
  request.prompt = std::move(prompt);
  request.max_tokens = options.max_tokens;
  request.min_tokens = options.min_tokens;
  request.stop_ids = options.stop_ids;
  request.stop_strings = options.stop;
  request.end_of_sequence = options.ignore_end_of_sequence ? EndOfSequence::kIgnored : EndOfSequence::kStops;
  SamplingOptions& sampling = request.sampling;
  sampling = session.generation().sampling;
  sampling.temperature = options.temperature.value_or(sampling.temperature);
  sampling.top_k = options.top_k.value_or(sampling.top_k);
  sampling.top_p = options.top_p.value_or(sampling.top_p);
  sampling.min_p = options.min_p.value_or(sampling.min_p);
  sampling.repetition_penalty = options.repetition_penalty.value_or(sampling.repetition_penalty);
  sampling.presence_penalty = options.presence_penalty;
  sampling.frequency_penalty = options.frequency_penalty;
  for (const auto& [id, bias] : options.logit_bias) sampling.bias.push_back({id, bias});
  sampling.seed = options.seed;
  return request;
}

Expected<Completion> run(Expected<Generation> generation, const TokenCallback& on_token) {
  if (!generation) return generation.error();
  while (true) {
    Expected<std::optional<Token>> token = generation->next();
    if (!token) return token.error();
    if (!*token) return generation->completion();
    if (on_token && !on_token(**token)) generation->cancel();
  }
}

}  // namespace

Error public_error(const InternalError& error) {
  ErrorKind kind = ErrorKind::kBadData;
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
      kind = ErrorKind::kInvalidArgument;
      break;
    case ErrorCode::kNotFound:
      kind = ErrorKind::kNotFound;
      break;
    case ErrorCode::kBadData:
      kind = ErrorKind::kBadData;
      break;
    case ErrorCode::kUnsupported:
      kind = ErrorKind::kUnsupported;
      break;
    case ErrorCode::kResourceLimit:
      kind = ErrorKind::kResourceLimit;
      break;
    case ErrorCode::kIo:
      kind = ErrorKind::kIo;
      break;
    case ErrorCode::kDevice:
      kind = ErrorKind::kDevice;
      break;
    case ErrorCode::kCancelled:
      kind = ErrorKind::kCancelled;
      break;
  }
  return {kind, error.message};
}

Model::Model(std::shared_ptr<State> state) : state_(std::move(state)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

Expected<Model> Model::load(const std::string& path, const LoadOptions& options) {
  SessionOptions session;
  session.backend = options.backend;
  session.compile.threads = options.threads;
  session.compile.activations =
      options.arithmetic == Arithmetic::kExact ? ActivationType::kExact : ActivationType::kDefault;
  session.compile.state = options.cache == CacheType::kF32 ? StateType::kF32 : StateType::kF16;
  session.engine.context = options.context;
  session.engine.state_bytes = options.state_bytes;
  Result<std::unique_ptr<Session>> loaded = Session::load(path, session);
  if (!loaded) return public_error(loaded.error());
  auto state = std::make_shared<State>();
  state->session = *std::move(loaded);
  state->info = describe(path, *state->session);
  return Model(std::move(state));
}

const ModelInfo& Model::info() const {
  return state_->info;
}

Expected<std::vector<int32_t>> Model::tokenize(std::string_view text, Specials specials) const {
  const Result<const Tokenizer*> tokenizer = state_->session->tokenizer();
  if (!tokenizer) return public_error(tokenizer.error());
  EncodeOptions options;
  options.specials = specials == Specials::kAdd ? SpecialTokens::kAdd : SpecialTokens::kOmit;
  Result<std::vector<int32_t>> ids = (*tokenizer)->encode(text, options);
  if (!ids) return public_error(ids.error());
  return *std::move(ids);
}

Expected<std::string> Model::detokenize(std::span<const int32_t> ids) const {
  const Result<const Tokenizer*> tokenizer = state_->session->tokenizer();
  if (!tokenizer) return public_error(tokenizer.error());
  return (*tokenizer)->decode(ids, DecodeSpecial::kSkip);
}

Expected<Generation> Model::State::start(std::vector<int32_t> prompt, const GenerateOptions& options,
                                         const std::shared_ptr<State>& self) {
  const auto length = static_cast<int64_t>(prompt.size());
  const Result<RequestId> request =
      session->engine().submit(make_request(*session, std::move(prompt), options));
  if (!request) return public_error(request.error());
  auto generation = std::make_unique<Generation::State>();
  generation->model = self;
  generation->request = *request;
  generation->completion.prompt_tokens = length;
  active.emplace(*request, generation.get());
  return Generation(std::move(generation));
}

Expected<Generation> Model::start(std::string_view prompt, const GenerateOptions& options) {
  Result<std::vector<int32_t>> ids = state_->session->encode_prompt(prompt);
  if (!ids) return public_error(ids.error());
  return state_->start(*std::move(ids), options, state_);
}

Expected<Generation> Model::start(std::span<const int32_t> prompt, const GenerateOptions& options) {
  return state_->start({prompt.begin(), prompt.end()}, options, state_);
}

Expected<Completion> Model::generate(std::string_view prompt, const GenerateOptions& options,
                                     const TokenCallback& on_token) {
  return run(start(prompt, options), on_token);
}

Expected<Completion> Model::generate(std::span<const int32_t> prompt, const GenerateOptions& options,
                                     const TokenCallback& on_token) {
  return run(start(prompt, options), on_token);
}

std::string_view version() {
  return TESSERA_VERSION;
}

}  // namespace v1
}  // namespace tessera
