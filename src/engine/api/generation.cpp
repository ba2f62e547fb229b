// The public Generation: events of the engine, sorted by whom they are for.
#include "engine/api/state.h"

namespace tessera {
inline namespace v1 {
namespace {

Finish finish_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStopId:
    case FinishReason::kStopString:
      return Finish::kStop;
    case FinishReason::kMaxTokens:
      return Finish::kLength;
    case FinishReason::kContextFull:
      return Finish::kContextFull;
    case FinishReason::kCancelled:
    case FinishReason::kError:
      break;  // an error is reported as one
  }
  return Finish::kCancelled;
}

}  // namespace

void Model::State::hand_out(const Event& event) {
  const auto found = active.find(event.request);
  if (found == active.end()) return;  // its Generation is gone
  Generation::State& generation = *found->second;
  Completion& completion = generation.completion;
  if (event.id >= 0) completion.ids.push_back(event.id);
  completion.text += event.text;
  if (event.id >= 0 || !event.text.empty()) generation.tokens.push_back({event.id, event.text});
  if (!event.finished) return;
  const Report& report = *event.finished;
  generation.finished = true;
  if (report.reason == FinishReason::kError) generation.error = Error{ErrorKind::kDevice, report.error};
  completion.finish = finish_of(report.reason);
  completion.seed = report.seed;
  completion.prompt_seconds = report.prompt_seconds;
  completion.decode_seconds = report.decode_seconds;
  active.erase(found);
}

void Model::State::step() {
  // An error of the step is in the events of every request.
  (void)session->engine().step();
  for (const Event& event : session->engine().events()) hand_out(event);
}

Generation::Generation(std::unique_ptr<State> state) : state_(std::move(state)) {}
Generation::Generation(Generation&&) noexcept = default;

Generation& Generation::operator=(Generation&& other) noexcept {
  std::swap(state_, other.state_);  // what was here is cancelled with `other`
  return *this;
}

Generation::~Generation() {
  if (state_ == nullptr || state_->finished) return;
  state_->model->active.erase(state_->request);
  cancel();
}

Expected<std::optional<Token>> Generation::next() {
  while (state_->tokens.empty() && !state_->finished) state_->model->step();
  if (!state_->tokens.empty()) {
    Token token = std::move(state_->tokens.front());
    state_->tokens.pop_front();
    return std::optional<Token>(std::move(token));
  }
  if (state_->error) return *state_->error;
  return std::optional<Token>();
}

void Generation::cancel() {
  if (!state_->finished) state_->model->session->engine().cancel(state_->request);
}

const Completion& Generation::completion() const {
  return state_->completion;
}

const std::optional<Error>& Generation::error() const {
  return state_->error;
}

Generation::Iterator Generation::begin() {
  Iterator iterator;
  iterator.generation_ = this;
  ++iterator;
  return iterator;
}

Generation::Iterator& Generation::Iterator::operator++() {
  Expected<std::optional<Token>> token = generation_->next();
  if (token && *token) {
    token_ = **std::move(token);
  } else {
    generation_ = nullptr;
  }
  return *this;
}

}  // namespace v1
}  // namespace tessera
