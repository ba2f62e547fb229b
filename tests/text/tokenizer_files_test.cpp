// Vocabularies in other files than tokenizer.json give the same ids: SentencePiece models, tiktoken, tekken, RWKV.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/mapped_file.h"
#include "text/byte_level.h"
#include "text/tokenizer.h"
#include "text/tokenizer_files.h"

namespace tessera {
namespace {

std::string base64(const std::string& bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k) out += i + k <= bytes.size() ? kDigits[bits >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

size_t compare(const Tokenizer& tokenizer, const std::string& vectors_path, int32_t shift) {
  const auto vectors = read_json_file(vectors_path).value();
  EncodeOptions plain;
  plain.specials = SpecialTokens::kOmit;
  size_t cases = 0;
  for (const Json& entry : vectors["cases"]) {
    auto ids = entry["ids"].get<std::vector<int32_t>>();
    for (int32_t& id : ids) id += shift;
    EXPECT_EQ(tokenizer.encode(entry["text"].get<std::string>(), plain).value(), ids)
        << dump_json(entry["text"]);
    EXPECT_EQ(tokenizer.decode(ids), entry["decoded"].get<std::string>());
    ++cases;
  }
  return cases;
}

TEST(SentencePieceModel, SameIdsAsTokenizerJson) {
  const std::string folder = "../shared/tokenizers/llama-2";
  if (!file_exists(folder + "/tokenizer.model")) GTEST_SKIP() << folder << "/tokenizer.model is not there";
  const auto tokenizer = tokenizer_from_sentencepiece(read_file(folder + "/tokenizer.model").value(), folder);
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->bos_id(), 1);
  EXPECT_EQ(tokenizer->eos_id(), 2);
  EXPECT_EQ(tokenizer->unknown_id(), 0);
  EXPECT_EQ(tokenizer->token_count(), 32000u);
  EXPECT_GT(compare(*tokenizer, folder + "/vectors.json", 0), 20u);
}

TEST(SentencePieceModel, BrokenFilesAreErrors) {
  const std::string folder = "../shared/tokenizers/llama-2";
  if (!file_exists(folder + "/tokenizer.model")) GTEST_SKIP() << folder << "/tokenizer.model is not there";
  const std::string file = read_file(folder + "/tokenizer.model").value();
  size_t refused = 0;
  for (size_t size = 0; size < file.size(); size += 4999)
    refused += read_sentencepiece_model(std::string_view(file).substr(0, size)).has_value() ? 0u : 1u;
  EXPECT_GT(refused, 50u);
  EXPECT_FALSE(read_sentencepiece_model("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff").has_value());
  EXPECT_FALSE(read_sentencepiece_model("\x0a\xff\xff\xff\xff\x0f").has_value());
}

// The pieces of a byte-level tokenizer.json in the order of their ids, and the pattern.
struct Ranked {
  std::vector<std::string> pieces;
  std::string pattern;
};

Ranked read_ranked(const std::string& folder) {
  // Not the ordered kind of JSON: it looks up 100,000 keys one after another.
  const auto file = nlohmann::json::parse(read_file(folder + "/tokenizer.json").value(), nullptr, false);
  Ranked out;
  for (const auto& item : file["model"]["vocab"].items()) {
    const auto id = item.value().get<size_t>();
    if (id >= out.pieces.size()) out.pieces.resize(id + 1);
    out.pieces[id] = byte_level_decode(item.key()).value();
  }
  out.pattern = file["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"].get<std::string>();
  return out;
}

TEST(Tiktoken, SameIdsAsTokenizerJson) {
  const std::string folder = "../shared/tokenizers/llama-3.1";
  if (!file_exists(folder + "/vectors.json")) GTEST_SKIP() << folder << " is not there";
  const Ranked ranked = read_ranked(folder);
  std::string file;
  for (size_t id = 0; id < ranked.pieces.size(); ++id)
    file += base64(ranked.pieces[id]) + " " + std::to_string(id) + "\n";
  TiktokenOptions options;
  options.pattern = ranked.pattern;
  const auto config =
      nlohmann::json::parse(read_file(folder + "/tokenizer_config.json").value(), nullptr, false);
  for (const auto& item : config["added_tokens_decoder"].items())
    options.special_tokens.emplace_back(item.value()["content"].get<std::string>(), std::stoi(item.key()));
  const auto tokenizer = tokenizer_from_tiktoken(file, options, "ranks");
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  EXPECT_GT(compare(*tokenizer, folder + "/vectors.json", 0), 20u);
}

TEST(Tekken, SameIdsAsTokenizerJson) {
  const std::string folder = "../shared/tokenizers/llama-3.1";
  if (!file_exists(folder + "/vectors.json")) GTEST_SKIP() << folder << " is not there";
  const Ranked ranked = read_ranked(folder);
  constexpr int kSpecials = 1000;
  std::string file = R"({"config":{"pattern":)" + dump_json(Json(ranked.pattern)) +
                     R"(,"default_vocab_size":)" + std::to_string(ranked.pieces.size() + kSpecials) +
                     R"(,"default_num_special_tokens":1000,"version":"v7"},"special_tokens":[
                     {"rank":0,"token_str":"<unk>","is_control":true},{"rank":1,"token_str":"<s>","is_control":true},
                     {"rank":2,"token_str":"</s>","is_control":true}],"vocab":[)";
  for (size_t rank = 0; rank < ranked.pieces.size(); ++rank)
    file += std::string(rank == 0 ? "" : ",") + R"({"rank":)" + std::to_string(rank) + R"(,"token_bytes":")" +
            base64(ranked.pieces[rank]) + R"(","token_str":null})";
  const auto tokenizer = tokenizer_from_tekken(file + "]}", "tekken.json");
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->bos_id(), 1);
  EXPECT_EQ(tokenizer->encode("<s>").value(), (std::vector<int32_t>{1, 1}));
  const auto vectors = read_json_file(folder + "/vectors.json").value();
  size_t cases = 0;
  EncodeOptions plain;
  plain.specials = SpecialTokens::kOmit;
  for (const Json& entry : vectors["cases"]) {
    auto ids = entry["ids"].get<std::vector<int32_t>>();
    bool special = false;
    for (int32_t& id : ids) {
      special = special || id >= 128000;
      id += kSpecials;
    }
    if (special) continue;
    const auto text = entry["text"].get<std::string>();
    if (text.find("<s>") != std::string::npos || text.find("</s>") != std::string::npos) continue;
    if (text.find("<unk>") != std::string::npos) continue;
    EXPECT_EQ(tokenizer->encode(text, plain).value(), ids) << dump_json(entry["text"]);
    ++cases;
  }
  EXPECT_GT(cases, 20u);
}

TEST(Rwkv, LongestPieceFirst) {
  std::string file;
  for (int byte = 0; byte < 256; ++byte) file += fmt::format("{} b'\\x{:02x}' 1\n", byte + 1, byte);
  file += "257 'ab' 2\n258 'abc' 3\n259 '\\n\\n' 2\n260 \"it's\" 4\n261 '\\xe9' 2\n262 '\\u4f60' 3\n";
  const auto tokenizer = tokenizer_from_rwkv(file, "rwkv_vocab.txt");
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->encode("abcabx\n\nit'sé你").value(),
            (std::vector<int32_t>{258, 257, 'x' + 1, 259, 260, 261, 262}));
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{258, 262, 0xe4 + 1}), "abc你\uFFFD");
  EXPECT_EQ(tokenizer_from_rwkv("1 'ab' 3\n", "x").error().message,
            "x: line 1: expected an id, a piece and its length");
}

}  // namespace
}  // namespace tessera
