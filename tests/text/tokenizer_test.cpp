// What tokenizers do besides the ids of ordinary text: long inputs, invalid input, text that must not be trusted,
// settings beside tokenizer.json, and files that cannot be read.
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "base/mapped_file.h"
#include "text/regex.h"
#include "text/tokenizer.h"

namespace tessera {
namespace {

Result<Tokenizer> from_text(const std::string& json, const std::string& config = "") {
  TokenizerFiles files;
  files.tokenizer_json = json;
  files.tokenizer_config_json = config;
  return Tokenizer::from_json(files, "tokenizer.json");
}

Result<Tokenizer> from_data(const std::string& name) {
  return from_text(read_file("tests/text/data/" + name + ".tokenizer.json").value());
}

std::string repeat(const std::string& part, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += part;
  return out;
}

class LongInput : public testing::TestWithParam<const char*> {};

// Time grows with the length, and nothing recurses.
TEST_P(LongInput, IsLinear) {
  const std::string name = GetParam();
  const bool own = name.find('/') == std::string::npos;
  const std::string path = "../shared/" + name + "/tokenizer.json";
  if (!own && !file_exists(path)) GTEST_SKIP() << path << " is not there";
  const auto tokenizer = own ? from_data(name) : from_text(read_file(path).value());
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  for (const char* part :
       {"Z", "z", "\n", " ", "你", "한", "0", ".", "é", "e\u0301", "न", "नम", "\u094d", "a ", "😀"}) {
    const std::string text = repeat(part, 131072);
    const auto start = std::chrono::steady_clock::now();
    const auto ids = tokenizer->encode(text);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    ASSERT_TRUE(ids.has_value()) << ids.error().message;
    EXPECT_LT(seconds.count(), 10.0) << part;  // generous: machines are shared; the benchmark has the figures
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, LongInput,
                         testing::Values("bytelevel_gpt2", "split_cl100k", "split_o200k", "bpe_byte_fallback",
                                         "unigram_bytes", "wordpiece_bert", "tokenizers/llama-3.1",
                                         "tokenizers/qwen3", "tokenizers/deepseek-v3", "tokenizers/llama-2",
                                         "tokenizers/t5-small"),
                         [](const auto& param) {
                           std::string name = param.param;
                           for (char& c : name)
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           return name;
                         });

TEST(Tokenizer, InvalidUtf8IsReplaced) {
  const auto tokenizer = from_data("bytelevel_gpt2");
  ASSERT_TRUE(tokenizer.has_value());
  const std::pair<const char*, const char*> cases[] = {
      {"a\xff"
       "b",
       "a\uFFFDb"},
      {"\xe4\xbd", "\uFFFD"},                  // cut short: one
      {"\xe4\xbdx\xa0", "\uFFFDx\uFFFD"},      // a stray continuation
      {"\xc0\x80", "\uFFFD\uFFFD"},            // overlong
      {"\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD"},  // a surrogate
      {"\xf4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
      {"\xf0\x9f\x98", "\uFFFD"},
  };
  for (const auto& [bytes, repaired] : cases)
    EXPECT_EQ(tokenizer->encode(bytes).value(), tokenizer->encode(repaired).value());
}

TEST(Tokenizer, UntrustedTextGivesNoControlTokens) {
  const auto tokenizer = from_data("split_cl100k");
  ASSERT_TRUE(tokenizer.has_value());
  const std::string text = "hi<|eos|> <tool>";
  EncodeOptions options;
  options.specials = SpecialTokens::kOmit;
  const auto count = [&](AddedTokenText mode, const char* piece) {
    options.added_tokens = mode;
    const auto ids = tokenizer->encode(text, options).value();
    EXPECT_EQ(tokenizer->decode(ids).find("hi<|eos|>"), 0u);
    return std::count(ids.begin(), ids.end(), tokenizer->token_to_id(piece).value());
  };
  EXPECT_EQ(count(AddedTokenText::kParse, "<|eos|>"), 1);
  EXPECT_EQ(count(AddedTokenText::kParse, "<tool>"), 1);
  EXPECT_EQ(count(AddedTokenText::kPlainSpecial, "<|eos|>"), 0);
  EXPECT_EQ(count(AddedTokenText::kPlainSpecial, "<tool>"), 1);
  EXPECT_EQ(count(AddedTokenText::kPlain, "<|eos|>"), 0);
  EXPECT_EQ(count(AddedTokenText::kPlain, "<tool>"), 0);
}

// Models that look whole strings up would find a control token's spelling in their vocabulary.
TEST(Tokenizer, ModelsDoNotForgeControlTokens) {
  const auto unigram = from_text(
      R"({"added_tokens":[{"id":1,"content":"</s>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],
          "model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["</s>",0],["<",-3],["/",-3],["s",-3],[">",-3]]},"decoder":{"type":"Fuse"}})");
  ASSERT_TRUE(unigram.has_value()) << unigram.error().message;
  EncodeOptions plain;
  plain.added_tokens = AddedTokenText::kPlain;
  EXPECT_EQ(unigram->encode("</s>").value(), (std::vector<int32_t>{1}));
  EXPECT_EQ(unigram->encode("</s>", plain).value(), (std::vector<int32_t>{2, 3, 4, 5}));
}

TEST(Tokenizer, ConfigSaysWhichTokensBeginAndEnd) {
  const std::string file = read_file("tests/text/data/bpe_byte_fallback.tokenizer.json").value();
  const auto tokenizer = from_text(
      file,
      R"({"tokenizer_class":"LlamaTokenizer","add_bos_token":true,"add_eos_token":false,"bos_token":"<s>",
                "eos_token":{"content":"</s>","lstrip":false},"unk_token":"<unk>","model_max_length":Infinity})");
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->bos_id(), 1);
  EXPECT_EQ(tokenizer->eos_id(), 2);
  EXPECT_EQ(tokenizer->template_ids(), (std::vector<int32_t>{1}));
  EXPECT_EQ(from_text(file)->template_ids(), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(from_text(file, R"({"tokenizer_class":"Other","add_eos_token":false})")->template_ids(),
            (std::vector<int32_t>{1, 2}));
}

TEST(Tokenizer, ManyThreadsOneTokenizer) {
  const auto tokenizer = from_data("split_cl100k");
  ASSERT_TRUE(tokenizer.has_value());
  const std::string text = repeat("Hello world, don't stop. ", 200);
  const auto expected = tokenizer->encode(text).value();
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) wrong[t] += tokenizer->encode(text).value() == expected ? 0 : 1;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

TEST(Tokenizer, ErrorsNameWhatIsWrong) {
  const std::string model = R"("model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]})";
  const std::pair<std::string, std::string> cases[] = {
      {"", "tokenizer.json: "},
      {"{}", "tokenizer.json: model is missing"},
      {"{" + model + "} x", "tokenizer.json: "},
      {"{" + model + R"(,"colour":1})", "tokenizer.json: unknown option \"colour\""},
      {R"({"model":{"type":"Abacus","vocab":{},"merges":[]}})",
       "tokenizer.json: model: unknown model \"Abacus\""},
      {"{" + model + R"(,"normalizer":{"type":"Shout"}})",
       "tokenizer.json: normalizer: unknown normalizer \"Shout\""},
      {"{" + model + R"(,"normalizer":{"type":"Sequence","normalizers":[{"type":"NFC","loud":true}]}})",
       "tokenizer.json: normalizer.0: unknown option \"loud\""},
      {"{" + model + R"(,"pre_tokenizer":{"type":"Split","pattern":{"Regex":"a("},"behavior":"Isolated"}})",
       "tokenizer.json: pre_tokenizer: regex /a(/"},
      {"{" + model + R"(,"pre_tokenizer":{"type":"Split","pattern":{"Regex":"a"},"behavior":"Sideways"}})",
       "tokenizer.json: pre_tokenizer: unknown behavior \"Sideways\""},
      {"{" + model + R"(,"decoder":{"type":"Guess"}})", "tokenizer.json: decoder: unknown decoder \"Guess\""},
      {"{" + model + R"(,"post_processor":{"type":"Stamp"}})",
       "tokenizer.json: post_processor: unknown post-processor \"Stamp\""},
      {R"({"model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":["a b"]}})",
       "tokenizer.json: model: merge 0: \"ab\" is not in the vocabulary"},
      {R"({"model":{"type":"BPE","vocab":{"a":-1},"merges":[]}})", "expected an id in [0,"},
      {R"({"model":{"type":"BPE","vocab":{"a":99999999},"merges":[]}})", "expected an id in [0,"},
      {R"({"model":{"type":"BPE","dropout":0.1,"vocab":{"a":0},"merges":[]}})", "dropout"},
      {R"({"version":"2.0",)" + model + "}", "tokenizer.json: version: expected \"1.0\", found \"2.0\""},
  };
  for (const auto& [text, message] : cases) {
    const auto loaded = from_text(text);
    ASSERT_FALSE(loaded.has_value()) << text;
    EXPECT_NE(loaded.error().message.find(message), std::string::npos) << loaded.error().message;
  }
}

TEST(Tokenizer, TruncatedFilesAreErrors) {
  const std::string file = read_file("tests/text/data/split_cl100k.tokenizer.json").value();
  size_t refused = 0;
  for (size_t size = 0; size + 3 < file.size(); size += 61)
    refused += from_text(file.substr(0, size)) ? 0u : 1u;
  EXPECT_EQ(refused, (file.size() - 3 + 60) / 61);
}

TEST(RegexSyntax, TranslatesTheOtherDialect) {
  RegexScratch scratch;
  const auto matches = [&](std::string_view pattern, std::string_view text) {
    const auto regex = Regex::compile(pattern);
    EXPECT_TRUE(regex.has_value()) << regex.error().message;
    std::vector<std::string> out;
    if (!regex) return out;
    auto cursor = regex->find_all(text, scratch);
    Regex::Match match;
    while (cursor.next(&match).value()) out.emplace_back(text.substr(match.begin, match.end - match.begin));
    return out;
  };
  using List = std::vector<std::string>;
  EXPECT_EQ(matches(R"(\p{N}{1,3}+)", "1234567"), (List{"1234567"}));  // the interval repeats
  EXPECT_EQ(matches(R"(\p{N}{1,3})", "1234567"), (List{"123", "456", "7"}));
  EXPECT_EQ(matches(R"((?:ab){,2}c)", "ababcabc"), (List{"ababc", "abc"}));
  EXPECT_EQ(matches(R"(\h+)", "xff g"), (List{"ff"}));
  EXPECT_EQ(matches(R"([a-z&&[^aeiou]]+)", "hello"), (List{"h", "ll"}));
  EXPECT_EQ(matches(R"([\p{L}&&[^\p{Han}]]+)", "ab你c"), (List{"ab", "c"}));
  EXPECT_EQ(matches(R"([[a-c]x]+)", "abxy"), (List{"abx"}));
  EXPECT_EQ(matches(R"(\s)", "\u180e\u0085\u3000"), (List{"\u0085", "\u3000"}));
  EXPECT_EQ(matches(R"(\p{Letter}+)", "aé1"), (List{"aé"}));
  EXPECT_EQ(matches(R"(a.b)", "a\nb"), List{});
  EXPECT_EQ(matches(R"((?m:a.b))", "a\nb"), (List{"a\nb"}));
  EXPECT_EQ(matches(R"(^b$)", "a\nb\nc"), (List{"b"}));
  EXPECT_EQ(matches("", "ab"), (List{"", "", ""}));
  EXPECT_FALSE(Regex::compile("a)").has_value());
  EXPECT_FALSE(Regex::compile("[a").has_value());
  EXPECT_FALSE(Regex::compile("\\").has_value());
}

}  // namespace
}  // namespace tessera
