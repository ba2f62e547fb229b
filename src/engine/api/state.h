// What stands behind the public classes: a Session, and which Generation every event belongs to.
#pragma once

#include "engine/session.h"

namespace tessera {
using InternalError = Error;  // while there is only one Error: the public header adds another
}

#include <deque>
#include <map>

#include "tessera/tessera.h"

namespace tessera {
inline namespace v1 {

struct Generation::State {
  std::shared_ptr<Model::State> model;
  RequestId request = 0;
  std::deque<Token> tokens;  // come, and not taken yet
  Completion completion;
  bool finished = false;
  std::optional<Error> error;
};

struct Model::State {
  std::unique_ptr<Session> session;
  ModelInfo info;
  std::map<RequestId, Generation::State*> active;

  [[nodiscard]] Expected<Generation> start(std::vector<int32_t> prompt, const GenerateOptions& options,
                                           const std::shared_ptr<State>& self);
  // One step of the engine; every event goes to the generation it is for.
  void step();
  void hand_out(const Event& event);
};

[[nodiscard]] Error public_error(const InternalError& error);

}  // namespace v1
}  // namespace tessera
