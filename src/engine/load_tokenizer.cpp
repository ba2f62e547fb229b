// Which tokenizer belongs to a checkpoint.
#include "base/mapped_file.h"
#include "engine/session.h"
#include "text/gguf_vocabulary.h"

namespace tessera {

Result<std::unique_ptr<Tokenizer>> load_tokenizer(const Checkpoint& checkpoint) {
  if (checkpoint.kind() == CheckpointKind::kGguf) {
    Result<GgufVocabulary> vocabulary = read_gguf_vocabulary(checkpoint.metadata());
    if (!vocabulary) return with_context(vocabulary.error(), checkpoint.path());
    TESSERA_TRY(Tokenizer tokenizer, Tokenizer::from_gguf(*vocabulary, checkpoint.path()));
    return std::make_unique<Tokenizer>(std::move(tokenizer));
  }
  const std::optional<std::string> path = checkpoint.companion("tokenizer.json");
  if (!path)
    return fail(ErrorCode::kNotFound, "{}: no tokenizer.json beside it: text needs one", checkpoint.path());
  TESSERA_TRY(Tokenizer tokenizer, Tokenizer::from_folder(path->substr(0, path->find_last_of('/'))));
  return std::make_unique<Tokenizer>(std::move(tokenizer));
}

}  // namespace tessera
