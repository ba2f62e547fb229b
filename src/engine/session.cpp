#include "engine/session.h"

#include <algorithm>
#include <utility>

namespace tessera {

Result<std::unique_ptr<Backend>> choose_backend(std::string_view name) {
  if (name != "auto") return make_backend(name);
  return make_backend(backend_names().front());
}

Result<std::unique_ptr<Session>> Session::load(const std::string& path, const SessionOptions& options) {
  TESSERA_TRY(std::shared_ptr<const Checkpoint> checkpoint, Checkpoint::open(path));
  TESSERA_TRY(LoadedModel model, load_model(checkpoint, options.strictness));
  if (options.precision) {
    const int threads = options.compile.threads > 0 ? options.compile.threads : available_processors();
    ThreadPool pool(threads);
    if (Status packed =
            pack_weights(model.spec, *options.precision, pool, checkpoint.get(), options.pack, model.weights);
        !packed)
      return with_context(packed.error(), path);
  } else if (options.page_in) {
    page_in(*checkpoint, options.page_in);
  }
  return create(std::move(model), options);
}

Result<std::unique_ptr<Session>> Session::create(LoadedModel model, const SessionOptions& options) {
  std::unique_ptr<Session> session(new Session());
  session->model_ = std::move(model);
  session->warnings_ = session->model_.warnings;
  TESSERA_TRY(session->plan_, build_plan(session->model_.spec, session->model_.weights));
  TESSERA_TRY(session->backend_, choose_backend(options.backend));
  TESSERA_TRY_STATUS(session->backend_->supports(session->plan_, session->model_.weights));

  if (session->model_.checkpoint != nullptr) {
    const Checkpoint& checkpoint = *session->model_.checkpoint;
    TESSERA_TRY(session->generation_, read_generation_config(checkpoint));
    Result<std::unique_ptr<Tokenizer>> tokenizer = load_tokenizer(checkpoint);
    if (tokenizer) {
      session->tokenizer_ = *std::move(tokenizer);
    } else {
      session->tokenizer_error_ = std::move(tokenizer).error();
    }
  } else {
    session->tokenizer_error_ = {ErrorCode::kNotFound, "a model of random weights has no tokenizer"};
  }
  if (session->tokenizer_ != nullptr) {
    for (const std::string& note : session->tokenizer_->notes()) session->warnings_.push_back(note);
    const int64_t ids = session->tokenizer_->vocabulary_size();
    if (ids > session->spec().vocabulary)
      session->warnings_.push_back(fmt::format(
          "the tokenizer has {} ids, the embedding {} rows: ids beyond are refused when they are used", ids,
          session->spec().vocabulary));
  }
  session->find_stop_ids(options.engine.stop_ids);

  CompileOptions compile = options.compile;
  compile.max_sequences = std::max<int64_t>(1, options.engine.max_running);
  compile.max_outputs = compile.max_sequences;
  compile.max_tokens = std::max(compile.max_tokens, compile.max_sequences);
  TESSERA_TRY(session->executable_,
              session->backend_->compile(session->plan_, session->model_.weights, compile));

  EngineOptions engine = options.engine;
  engine.stop_ids = session->stop_ids_;
  const EmbeddingSpec& embedding = session->spec().embedding;
  const int64_t learned = embedding.learned_positions - embedding.position_offset;
  if (embedding.learned_positions > 0 && engine.context > learned)
    return fail(ErrorCode::kInvalidArgument,
                "context: expected at most the {} positions that the model has learned, found {}", learned,
                engine.context);
  if (engine.context > session->spec().context)
    session->warnings_.push_back(
        fmt::format("a context of {} positions is more than the {} the model was trained for", engine.context,
                    session->spec().context));
  EngineModel served{session->plan_, session->spec().context, 0};
  for (const Op& op : session->plan_.ops)
    if (const auto* embed = std::get_if<EmbedOp>(&op))
      served.embedding_rows = session->model_.weights.at(embed->table).rows();
  TESSERA_TRY(session->engine_,
              Engine::create(served, *session->executable_, session->tokenizer_.get(), std::move(engine)));
  return session;
}

void Session::find_stop_ids(const std::vector<int32_t>& more) {
  const auto add = [this](const std::vector<int32_t>& ids) {
    stop_ids_.insert(stop_ids_.end(), ids.begin(), ids.end());
  };
  add(model_.spec.stop_ids);
  add(generation_.stop_ids);
  if (tokenizer_ != nullptr) add(tokenizer_->end_ids());
  add(more);
  std::sort(stop_ids_.begin(), stop_ids_.end());
  stop_ids_.erase(std::unique(stop_ids_.begin(), stop_ids_.end()), stop_ids_.end());
}

Result<const Tokenizer*> Session::tokenizer() const {
  if (tokenizer_ == nullptr) return Failure(tokenizer_error_);
  return tokenizer_.get();
}

Result<std::vector<int32_t>> Session::encode_prompt(std::string_view text) const {
  TESSERA_TRY(const Tokenizer* tokenizer, this->tokenizer());
  TESSERA_TRY(std::vector<int32_t> ids, tokenizer->encode(text));
  if (!ids.empty()) return ids;
  if (spec().bos_id) return std::vector<int32_t>{*spec().bos_id};
  if (tokenizer->bos_id()) return std::vector<int32_t>{*tokenizer->bos_id()};
  return fail(ErrorCode::kInvalidArgument,
              "the prompt is empty, and the model has no token to begin a text with: give a prompt");
}

}  // namespace tessera
