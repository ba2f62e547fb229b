// Streaming: decoded text and stop strings, split in every way.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "text/byte_level.h"
#include "text/stop_matcher.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

namespace tessera {
namespace {

// A vocabulary of all bytes, in the byte-level alphabet or as fallback pieces.
Tokenizer byte_tokenizer(bool fallback) {
  std::string vocab;
  for (int byte = 0; byte < 256; ++byte) {
    const auto value = static_cast<unsigned char>(byte);
    std::string piece = fallback ? fallback_piece(value) : unicode::encode(byte_level_character(value));
    if (piece == "\"" || piece == "\\") piece = "\\" + piece;
    vocab += (byte == 0 ? "" : ",") + ("\"" + piece + "\":" + std::to_string(byte));
  }
  TokenizerFiles files;
  files.tokenizer_json =
      fallback
          ? R"({"model":{"type":"BPE","byte_fallback":true,"merges":[],"vocab":{)" + vocab +
                R"(}},"decoder":{"type":"Sequence","decoders":[{"type":"ByteFallback"},{"type":"Fuse"}]}})"
          : R"({"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},"model":{"type":"BPE","merges":[],"vocab":{)" +
                vocab + R"(}},"decoder":{"type":"ByteLevel"}})";
  auto tokenizer = Tokenizer::from_json(files, "bytes");
  EXPECT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  return std::move(*tokenizer);
}

class StreamDecoding : public testing::TestWithParam<bool> {};

TEST_P(StreamDecoding, NeverGivesOutHalfACharacter) {
  const Tokenizer tokenizer = byte_tokenizer(GetParam());
  const std::string text = "aé€😀z";
  StreamDecoder decoder(tokenizer);
  std::string joined;
  const std::vector<int32_t> ids = tokenizer.encode(text).value();
  for (const int32_t id : ids) {
    const std::string part = decoder.push(id);
    EXPECT_TRUE(unicode::is_valid_utf8(part));
    joined += part;
  }
  EXPECT_EQ(joined + decoder.flush(), text);
}

TEST_P(StreamDecoding, IncompleteCharacterBecomesOneReplacement) {
  const Tokenizer tokenizer = byte_tokenizer(GetParam());
  for (const char* bytes : {"\xf0", "\xf0\x9f", "\xf0\x9f\x98", "a\xe2\x82"}) {
    std::vector<int32_t> ids;
    for (const char* c = bytes; *c != 0; ++c) ids.push_back(static_cast<unsigned char>(*c));
    StreamDecoder decoder(tokenizer);
    std::string shown;
    for (const int32_t id : ids) shown += decoder.push(id);
    EXPECT_EQ(shown, ids.front() == 'a' ? "a" : "");
    EXPECT_EQ(decoder.flush(), "\uFFFD");
    EXPECT_EQ(tokenizer.decode(ids), shown + "\uFFFD");
  }
}

TEST_P(StreamDecoding, EqualsDecodingTheWhole) {
  const Tokenizer tokenizer = byte_tokenizer(GetParam());
  uint32_t state = 12345;
  for (int round = 0; round < 2000; ++round) {
    std::vector<int32_t> ids;
    for (int i = 0; i < 12; ++i) {
      state = state * 1664525u + 1013904223u;
      const uint32_t pick = state >> 24;
      ids.push_back(pick < 60 ? 'a' : static_cast<int32_t>(state >> 16 & 0xff) | (pick < 200 ? 0x80 : 0));
    }
    StreamDecoder decoder(tokenizer);
    std::string joined;
    for (const int32_t id : ids) joined += decoder.push(id);
    joined += decoder.flush();
    ASSERT_EQ(joined, tokenizer.decode(ids));
    std::string bytes;
    for (const int32_t id : ids) bytes += static_cast<char>(id);
    ASSERT_EQ(joined, unicode::replace_invalid_utf8(bytes));
  }
}

INSTANTIATE_TEST_SUITE_P(Alphabets, StreamDecoding, testing::Bool(),
                         [](const auto& param) { return param.param ? "ByteFallback" : "ByteLevel"; });

TEST(StreamDecoding, PrimedWithAPromptKeepsTheSpace) {
  TokenizerFiles files;
  files.tokenizer_json =
      R"({"model":{"type":"BPE","merges":[],"vocab":{"▁a":0,"▁b":1}},"decoder":{"type":"Sequence","decoders":[
         {"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"Fuse"},
         {"type":"Strip","content":" ","start":1,"stop":0}]}})";
  const auto tokenizer = Tokenizer::from_json(files, "spaces");
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  StreamDecoder fresh(*tokenizer);
  EXPECT_EQ(fresh.push(1), "b");
  StreamDecoder primed(*tokenizer);
  primed.prime(std::vector<int32_t>{0});
  EXPECT_EQ(primed.push(1), " b");
}

std::string run(std::vector<std::string> stops, const std::vector<std::string>& parts,
                bool* stopped = nullptr) {
  StopMatcher matcher(std::move(stops));
  std::string shown;
  for (const std::string& part : parts) shown += matcher.push(part);
  if (stopped != nullptr) *stopped = matcher.stopped();
  return shown + matcher.flush();
}

TEST(StopMatcher, HoldsBackOnlyWhatCouldBecomeAStop) {
  bool stopped = false;
  StopMatcher matcher({"DEFGHIJ"});
  for (const char* part : {"DEF", "G", "HI"}) EXPECT_EQ(matcher.push(part), "");
  EXPECT_EQ(matcher.push("J"), "");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.stop(), "DEFGHIJ");
  EXPECT_EQ(run({"assistant"}, {"ple", "as"}, &stopped), "pleas");
  EXPECT_FALSE(stopped);
  StopMatcher slow({"abc"});
  EXPECT_EQ(slow.push("xab"), "x");
  EXPECT_EQ(slow.push("abd"), "ababd");
  EXPECT_EQ(slow.flush(), "");
}

TEST(StopMatcher, TextBehindAStopIsGone) {
  EXPECT_EQ(run({"\n\n", "###"}, {"one\n", "\ntwo###"}), "one");
  EXPECT_EQ(run({"b", "ab"}, {"xaby"}), "x");  // both end there: the longer one counts
  EXPECT_EQ(run({""}, {"all"}), "all");
}

TEST(StopMatcher, SameForEverySplit) {
  const std::string text = "say aab aaab, größe größ größer! end";
  const std::vector<std::string> stops = {"aaab,", "größer", "no such"};
  const std::string expected = "say aab ";
  for (size_t i = 0; i <= text.size(); ++i)
    for (size_t j = i; j <= text.size(); ++j)
      ASSERT_EQ(run(stops, {text.substr(0, i), text.substr(i, j - i), text.substr(j)}), expected);
}

TEST(StopMatcher, ShowsWholeCharacters) {
  StopMatcher matcher({"\u00e9a"});
  EXPECT_EQ(matcher.push("x\u00e9"), "x");
  EXPECT_EQ(matcher.push("b"), "\u00e9b");
  // The stop string starts with the second byte of a character that another one has too.
  StopMatcher odd({"\xa9z"});
  EXPECT_EQ(odd.push("\u00e9"), "");
  EXPECT_EQ(odd.push("y"), "\u00e9y");
}

}  // namespace
}  // namespace tessera
