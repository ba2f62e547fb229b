// 20,000 random strings for each tokenizer against the answers of the HuggingFace library: ids with and without
// special tokens, offsets, type ids, decoded texts, pairs. The answers are checksums of blocks of strings, made by
// tests/text/tools/answers.mjs; for a block that differs, our side is printed as JSON.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/mapped_file.h"
#include "text/random_strings.h"
#include "text/tokenizer.h"

namespace tessera {
namespace {

constexpr uint32_t kBlock = 25;
constexpr size_t kTokens = 40;

class Checksum {
 public:
  void add(uint32_t value) {
    hash_ = (hash_ ^ value) * 0x9e3779b1u;
    hash_ ^= hash_ >> 15;
  }
  void list(const std::vector<int32_t>& values) {
    add(static_cast<uint32_t>(values.size()));
    for (const int32_t value : values) add(static_cast<uint32_t>(value));
  }
  void offsets(const std::vector<SourceRange>& ranges) {
    add(static_cast<uint32_t>(ranges.size() * 2));
    for (const SourceRange& range : ranges) {
      add(range.begin);
      add(range.end);
    }
  }
  void text(const std::string& text) {
    add(static_cast<uint32_t>(text.size()));
    for (const char c : text) add(static_cast<unsigned char>(c));
  }
  [[nodiscard]] std::string hex() const { return fmt::format("{:08x}", hash_); }

 private:
  uint32_t hash_ = 0x811c9dc5u;
};

Json offsets_json(const Encoding& encoding) {
  Json list = Json::array();
  for (const SourceRange& range : encoding.offsets) list.push_back({range.begin, range.end});
  return list;
}

// Adds the answers for string `i`; `shown` takes them as JSON when it is given.
void add_answers(const Tokenizer& tokenizer, const RandomStrings& strings, uint32_t i, Checksum& sum,
                 Json* shown) {
  const std::string text = strings.make(i);
  EncodeOptions options;
  options.truncation = Truncation::kAsFileSays;
  EncodeOptions plain = options;
  plain.specials = SpecialTokens::kOmit;
  const auto full = tokenizer.encode_details(text, options, OffsetUnit::kCharacters);
  const auto bare = tokenizer.encode(text, plain);
  Result<Encoding> pair = Encoding();
  if (i % 8 == 0) pair = tokenizer.encode_pair(text, strings.make(i + 1), options, OffsetUnit::kCharacters);
  if (shown != nullptr) *shown = {{"i", i}, {"text", text}};
  if (!full || !bare || !pair) {
    sum.add(0xffffffffu);
    if (shown != nullptr)
      (*shown)["error"] = (!full ? full.error() : !bare ? bare.error() : pair.error()).message;
    return;
  }
  const std::string skipped = tokenizer.decode(full->ids, DecodeSpecial::kSkip);
  const std::string decoded = tokenizer.decode(*bare);
  sum.list(full->ids);
  sum.offsets(full->offsets);
  sum.list(full->type_ids);
  sum.list(*bare);
  sum.text(skipped);
  sum.text(decoded);
  if (i % 8 == 0) {
    sum.list(pair->ids);
    sum.offsets(pair->offsets);
    sum.list(pair->type_ids);
  }
  if (shown == nullptr) return;
  (*shown)["ids"] = full->ids;
  (*shown)["offsets"] = offsets_json(*full);
  (*shown)["types"] = full->type_ids;
  (*shown)["bare"] = *bare;
  (*shown)["skipped"] = skipped;
  (*shown)["decoded"] = decoded;
  if (i % 8 != 0) return;
  (*shown)["pair"] = pair->ids;
  (*shown)["pairOffsets"] = offsets_json(*pair);
  (*shown)["pairTypes"] = pair->type_ids;
}

struct Case {
  std::string name;
  std::string blocks;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

std::vector<Case> cases() {
  std::vector<Case> out;
  const auto file = read_json_file("tests/text/data/answers.json");
  if (!file) return out;
  for (const auto& item : file->items()) out.push_back({item.key(), item.value().get<std::string>()});
  return out;
}

class TokenizerDifferential : public testing::TestWithParam<Case> {};

TEST_P(TokenizerDifferential, SameAnswers) {
  const auto& [name, blocks] = GetParam();
  const bool own = name.find('/') == std::string::npos;
  const std::string path =
      own ? "tests/text/data/" + name + ".tokenizer.json" : "../shared/" + name + "/tokenizer.json";
  if (!own && !file_exists(path)) GTEST_SKIP() << path << " is not there";
  TokenizerFiles files;
  files.tokenizer_json = read_file(path).value();
  const auto tokenizer = Tokenizer::from_json(files, path);
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  std::vector<std::string> tokens;
  for (const AddedToken& token : tokenizer->added_tokens())
    if (tokens.size() < kTokens) tokens.push_back(token.content);
  const RandomStrings strings(tokens);
  const auto count = static_cast<uint32_t>(blocks.size() / 8);
  ASSERT_EQ(count, 800u);
  int wrong = 0;
  for (uint32_t block = 0; block < count; ++block) {
    Checksum sum;
    for (uint32_t k = 0; k < kBlock; ++k) add_answers(*tokenizer, strings, block * kBlock + k, sum, nullptr);
    if (sum.hex() == blocks.substr(block * 8, 8)) continue;
    if (++wrong > 1) continue;
    for (uint32_t k = 0; k < kBlock; ++k) {
      Json shown;
      add_answers(*tokenizer, strings, block * kBlock + k, sum, &shown);
      std::printf("%s\n", dump_json(shown).c_str());
    }
  }
  EXPECT_EQ(wrong, 0) << "of " << count << " blocks";
}

INSTANTIATE_TEST_SUITE_P(Answers, TokenizerDifferential, testing::ValuesIn(cases()), [](const auto& param) {
  std::string name = param.param.name;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
});

// The answers must be there: an instantiation without cases would pass.
TEST(TokenizerDifferentialAnswers, AreThere) {
  EXPECT_GE(cases().size(), 60u);
}

}  // namespace
}  // namespace tessera
