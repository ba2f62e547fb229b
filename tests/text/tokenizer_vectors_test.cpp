// Real tokenizers against answers of the HuggingFace library: ids with and without special tokens, and decoded
// texts. The folders lie beside the repository; one that is not there is skipped by name.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/mapped_file.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"

namespace tessera {
namespace {

const char* const kFolders[] = {"tokenizers/bert-base-uncased",
                                "tokenizers/deepseek-v3",
                                "tokenizers/falcon",
                                "tokenizers/gemma-3",
                                "tokenizers/gpt-neox-20b",
                                "tokenizers/gpt2",
                                "tokenizers/llama-2",
                                "tokenizers/llama-3.1",
                                "tokenizers/mistral-7b-v0.1",
                                "tokenizers/phi-2",
                                "tokenizers/phi-3-mini",
                                "tokenizers/qwen2.5",
                                "tokenizers/qwen3",
                                "tokenizers/roberta-base",
                                "tokenizers/t5-small",
                                "models/stories260k",
                                "models/tinystories-656k",
                                "models/fable"};  // in the repository itself

class TokenizerVectors : public testing::TestWithParam<const char*> {};

// The text as a stream would show it, token by token.
std::string stream(const Tokenizer& tokenizer, const std::vector<int32_t>& ids, DecodeSpecial special) {
  StreamDecoder decoder(tokenizer, special);
  std::string text;
  for (const int32_t id : ids) text += decoder.push(id);
  return text + decoder.flush();
}

TEST_P(TokenizerVectors, AllEqual) {
  const bool own = file_exists(std::string(GetParam()) + "/tokenizer_vectors.json");
  const std::string folder = std::string(own ? "" : "../shared/") + GetParam();
  const std::string file = folder + (own ? "/tokenizer_vectors.json" : "/vectors.json");
  if (!file_exists(file)) GTEST_SKIP() << file << " is not there";
  const auto vectors = read_json_file(file);
  ASSERT_TRUE(vectors.has_value()) << vectors.error().message;
  // The answers come from tokenizer.json alone.
  TokenizerFiles files;
  files.tokenizer_json = read_file(folder + "/tokenizer.json").value();
  const auto loaded = Tokenizer::from_json(files, folder + "/tokenizer.json");
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  const Tokenizer& tokenizer = *loaded;
  EXPECT_EQ(static_cast<int64_t>(tokenizer.token_count()), json_integer(*vectors, "vocab", folder).value());
  EncodeOptions plain;
  plain.specials = SpecialTokens::kOmit;
  size_t cases = 0;
  for (const Json& entry : (*vectors)["cases"]) {
    const auto text = entry["text"].get<std::string>();
    const auto ids = entry["ids"].get<std::vector<int32_t>>();
    const auto ids_special = entry["ids_special"].get<std::vector<int32_t>>();
    const auto found = tokenizer.encode(text, plain);
    ASSERT_TRUE(found.has_value()) << found.error().message;
    EXPECT_EQ(*found, ids) << dump_json(entry["text"]);
    EXPECT_EQ(tokenizer.encode(text).value(), ids_special) << dump_json(entry["text"]);
    EXPECT_EQ(tokenizer.decode(ids), entry["decoded"].get<std::string>()) << dump_json(entry["text"]);
    EXPECT_EQ(tokenizer.decode(ids_special, DecodeSpecial::kSkip), entry["decoded_skip"].get<std::string>())
        << dump_json(entry["text"]);
    EXPECT_EQ(stream(tokenizer, ids, DecodeSpecial::kKeep), entry["decoded"].get<std::string>());
    ++cases;
  }
  EXPECT_GT(cases, 20u);
  RecordProperty("cases", static_cast<int>(cases));
}

INSTANTIATE_TEST_SUITE_P(Folders, TokenizerVectors, testing::ValuesIn(kFolders), [](const auto& param) {
  std::string name = param.param;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
});

}  // namespace
}  // namespace tessera
