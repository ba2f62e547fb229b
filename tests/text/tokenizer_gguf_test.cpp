// Vocabularies in GGUF's form. The real one of a small model, and published vocabularies rewritten in that form:
// the ids must be those of their tokenizer.json.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/mapped_file.h"
#include "checkpoint/checkpoint.h"
#include "text/gguf_pretokenizers.h"
#include "text/gguf_vocabulary.h"
#include "text/tokenizer.h"

namespace tessera {
namespace {

// Compares with the cases of a vectors.json. `skip` says which cases do not hold for this form.
template <class Skip>
size_t compare(const Tokenizer& tokenizer, const std::string& vectors_path, SpecialTokens specials,
               Skip skip) {
  const auto vectors = read_json_file(vectors_path).value();
  EncodeOptions plain;
  plain.specials = SpecialTokens::kOmit;
  size_t cases = 0;
  for (const Json& entry : vectors["cases"]) {
    const auto text = entry["text"].get<std::string>();
    if (skip(text)) continue;
    EXPECT_EQ(tokenizer.encode(text, plain).value(), entry["ids"].get<std::vector<int32_t>>())
        << dump_json(entry["text"]);
    if (specials == SpecialTokens::kAdd) {
      EXPECT_EQ(tokenizer.encode(text).value(), entry["ids_special"].get<std::vector<int32_t>>());
    }
    EXPECT_EQ(tokenizer.decode(entry["ids"].get<std::vector<int32_t>>()),
              entry["decoded"].get<std::string>());
    ++cases;
  }
  return cases;
}

// The kind of JSON that keeps no order: looking up 100,000 keys in the other takes minutes.
nlohmann::json read_large_json(const std::string& path) {
  return nlohmann::json::parse(read_file(path).value(), nullptr, false);
}

bool nothing(const std::string&) {
  return false;
}

TEST(TokenizerGguf, FileOfASmallModel) {
  const std::string folder = "../shared/models/stories260k";
  const std::string path = folder + "/stories260K-f32.gguf";
  if (!file_exists(path)) GTEST_SKIP() << path << " is not there";
  const auto checkpoint = Checkpoint::open(path);
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  const auto vocabulary = read_gguf_vocabulary((*checkpoint)->metadata());
  ASSERT_TRUE(vocabulary.has_value()) << vocabulary.error().message;
  const auto tokenizer = Tokenizer::from_gguf(*vocabulary, path);
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->bos_id(), 1);
  EXPECT_EQ(tokenizer->eos_id(), 2);
  EXPECT_GT(compare(*tokenizer, folder + "/vectors.json", SpecialTokens::kAdd, nothing), 20u);
}

struct Published {
  const char* folder;
  const char* pre;
};

class TokenizerGgufBpe : public testing::TestWithParam<Published> {};

// tokenizer.json as GGUF has it: all tokens by id, types, merges.
GgufVocabulary rewrite(const nlohmann::json& file, const std::string& pre) {
  GgufVocabulary out;
  out.model = "gpt2";
  out.pre = pre;
  const auto put = [&](size_t id, const std::string& piece, GgufTokenType type) {
    if (id >= out.tokens.size()) {
      out.tokens.resize(id + 1);
      out.types.resize(id + 1, GgufTokenType::kUnused);
    }
    out.tokens[id] = piece;
    out.types[id] = type;
  };
  for (const auto& item : file["model"]["vocab"].items())
    put(item.value().get<size_t>(), item.key(), GgufTokenType::kNormal);
  for (const auto& token : file["added_tokens"])
    put(token["id"].get<size_t>(), token["content"].get<std::string>(),
        token["special"].get<bool>() ? GgufTokenType::kControl : GgufTokenType::kUserDefined);
  for (size_t id = 0; id < out.tokens.size(); ++id)
    if (out.tokens[id].empty()) out.tokens[id] = "[PAD" + std::to_string(id) + "]";
  for (const auto& merge : file["model"]["merges"])
    out.merges.push_back(merge.is_string() ? merge.get<std::string>()
                                           : merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  return out;
}

TEST_P(TokenizerGgufBpe, SameIdsAsTokenizerJson) {
  const std::string folder = std::string("../shared/tokenizers/") + GetParam().folder;
  if (!file_exists(folder + "/vectors.json")) GTEST_SKIP() << folder << " is not there";
  const auto file = read_large_json(folder + "/tokenizer.json");
  const auto tokenizer = Tokenizer::from_gguf(rewrite(file, GetParam().pre), folder);
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  EXPECT_GT(compare(*tokenizer, folder + "/vectors.json", SpecialTokens::kOmit, nothing), 20u);
}

INSTANTIATE_TEST_SUITE_P(Names, TokenizerGgufBpe,
                         testing::Values(Published{"gpt2", "gpt-2"}, Published{"llama-3.1", "llama-bpe"},
                                         Published{"qwen3", "qwen2"}, Published{"qwen2.5", "qwen2"},
                                         Published{"deepseek-v3", "deepseek-v3"},
                                         Published{"falcon", "falcon"}, Published{"gpt-neox-20b", "olmo"},
                                         Published{"phi-2", "phi-2"}),
                         [](const auto& param) {
                           std::string name = param.param.folder;
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

TEST(TokenizerGguf, Unigram) {
  const std::string folder = "../shared/tokenizers/t5-small";
  if (!file_exists(folder + "/vectors.json")) GTEST_SKIP() << folder << " is not there";
  const auto file = read_large_json(folder + "/tokenizer.json");
  GgufVocabulary vocabulary;
  vocabulary.model = "t5";
  vocabulary.remove_extra_whitespaces = true;
  for (const auto& entry : file["model"]["vocab"]) {
    vocabulary.tokens.push_back(entry[0].get<std::string>());
    vocabulary.scores.push_back(entry[1].get<float>());
    vocabulary.types.push_back(GgufTokenType::kNormal);
  }
  for (const auto& token : file["added_tokens"])
    vocabulary.types[token["id"].get<size_t>()] = GgufTokenType::kControl;
  const auto tokenizer = Tokenizer::from_gguf(vocabulary, folder);
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->encode("Hello  world ").value(), (std::vector<int32_t>{8774, 296, 1}));
}

TEST(TokenizerGguf, EveryPreTokenizerIsReadable) {
  size_t names = 0;
  for (const std::string_view name : gguf_pretokenizer_names()) {
    const auto pre = gguf_pretokenizer(name);
    EXPECT_TRUE(pre.has_value()) << name << ": " << pre.error().message;
    ++names;
  }
  EXPECT_GT(names, 80u);
}

TEST(TokenizerGguf, RefusesWhatItDoesNotKnow) {
  GgufVocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.tokens = {"a", "b"};
  vocabulary.merges = {"a b"};
  auto refused = Tokenizer::from_gguf(vocabulary, "x.gguf");
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("tokenizer.ggml.pre is missing"), std::string::npos);
  vocabulary.pre = "no-such";
  refused = Tokenizer::from_gguf(vocabulary, "x.gguf");
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("\"no-such\""), std::string::npos);
  vocabulary.model = "abacus";
  refused = Tokenizer::from_gguf(vocabulary, "x.gguf");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(refused.error().message.find("\"abacus\""), std::string::npos);
}

// The fewest metadata that count as a vocabulary, and what breaks them.
TEST(TokenizerGguf, ReadsAndChecksMetadata) {
  GgufMetadata metadata;
  EXPECT_EQ(read_gguf_vocabulary(metadata).error().code, ErrorCode::kNotFound);
  metadata["tokenizer.ggml.model"] = {std::string("llama")};
  metadata["tokenizer.ggml.tokens"] = {
      GgufArray{{std::string("<unk>")}, {std::string("<s>")}, {std::string("a")}}};
  metadata["tokenizer.ggml.scores"] = {GgufArray{{0.0}, {0.0}, {-1.0}}};
  metadata["tokenizer.ggml.token_type"] = {GgufArray{{int64_t{2}}, {int64_t{3}}, {int64_t{1}}}};
  metadata["tokenizer.ggml.bos_token_id"] = {uint64_t{1}};
  metadata["tokenizer.ggml.eos_token_id"] = {uint64_t{99}};
  const auto read = read_gguf_vocabulary(metadata);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->tokens.size(), 3u);
  EXPECT_EQ(read->bos_id, 1);
  EXPECT_EQ(read->eos_id, std::nullopt);
  EXPECT_EQ(read->type(1), GgufTokenType::kControl);
  metadata["tokenizer.ggml.scores"] = {GgufArray{{0.0}}};
  EXPECT_EQ(read_gguf_vocabulary(metadata).error().message,
            "tokenizer.ggml.scores: expected 3 entries, found 1");
  metadata["tokenizer.ggml.scores"] = {std::string("no")};
  EXPECT_EQ(read_gguf_vocabulary(metadata).error().message, "tokenizer.ggml.scores: expected an array");
}

}  // namespace
}  // namespace tessera
