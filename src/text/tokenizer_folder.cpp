// The tokenizer of a model's folder, in whichever form it is there. tokenizer.json comes first: it says everything.
#include <algorithm>
#include <array>

#include "base/mapped_file.h"
#include "text/tokenizer.h"
#include "text/tokenizer_config.h"
#include "text/tokenizer_files.h"
#include "text/tokenizer_parts.h"

namespace tessera {
namespace {

// The text of a file, or nothing where it is not there.
Result<std::string> read_if_there(const std::string& path) {
  if (!file_exists(path)) return std::string();
  return read_file(path);
}

Result<Tokenizer> read_sentencepiece(const std::string& path, const TokenizerFiles& files) {
  TESSERA_TRY(const std::string file, read_file(path));
  auto vocabulary = read_sentencepiece_model(file);
  if (!vocabulary) return with_context(vocabulary.error(), path);
  TESSERA_TRY(TokenizerParts parts, gguf_tokenizer_parts(*vocabulary, path));
  TESSERA_TRY_STATUS(apply_tokenizer_config(files, path, parts));
  return Tokenizer::assemble(std::move(parts));
}

}  // namespace

Result<Tokenizer> Tokenizer::from_folder(const std::string& path) {
  TokenizerFiles files;
  TESSERA_TRY(files.tokenizer_config_json, read_if_there(path + "/tokenizer_config.json"));
  TESSERA_TRY(files.special_tokens_map_json, read_if_there(path + "/special_tokens_map.json"));
  if (const std::string json = path + "/tokenizer.json"; file_exists(json)) {
    TESSERA_TRY(const std::shared_ptr<MappedFile> file, MappedFile::open(json));
    const auto bytes = file->bytes();
    return from_json_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, TextMemory::kMapped,
                          files, json);
  }
  if (const std::string tekken = path + "/tekken.json"; file_exists(tekken)) {
    TESSERA_TRY(const std::string text, read_file(tekken));
    return tokenizer_from_tekken(text, tekken);
  }
  for (const char* name : {"/tokenizer.model", "/spiece.model", "/sentencepiece.bpe.model"})
    if (file_exists(path + name)) return read_sentencepiece(path + name, files);
  if (is_directory(path)) {
    TESSERA_TRY(const std::vector<std::string> names, list_directory(path));
    for (const std::string& name : names) {
      if (!name.starts_with("rwkv_vocab") || !name.ends_with(".txt")) continue;
      TESSERA_TRY(const std::string text, read_file(path + "/" + name));
      return tokenizer_from_rwkv(text, path + "/" + name);
    }
  }
  return fail(ErrorCode::kNotFound,
              "{}: no tokenizer.json, tekken.json, tokenizer.model, spiece.model or rwkv_vocab*.txt", path);
}

}  // namespace tessera
