// The public interface, used as a program outside of the repository would: only <tessera/tessera.h>, and a model
// folder made on the spot.
#include <gtest/gtest.h>

#include "cli/tiny_model.h"

// After the library's own headers, which know another Error.
#include <tessera/tessera.h>

namespace {

class Api : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { folder() = tessera::test::TinyModel().write("api"); }
  static void TearDownTestSuite() { tessera::test::TinyModel::remove_all(); }
  static std::string& folder() {
    static std::string path;
    return path;
  }
  static tessera::Model load(const tessera::LoadOptions& options = {}) {
    tessera::Expected<tessera::Model> model = tessera::Model::load(folder(), options);
    if (!model) ADD_FAILURE() << model.error().message;
    return *std::move(model);
  }
};

constexpr tessera::Arithmetic kExact = tessera::Arithmetic::kExact;

TEST_F(Api, Describes) {
  const tessera::Model model = load({.context = 64});
  const tessera::ModelInfo& info = model.info();
  EXPECT_EQ(info.path, folder());
  EXPECT_EQ(info.vocabulary, 96);
  EXPECT_EQ(info.hidden, 32);
  EXPECT_EQ(info.layers, 2);
  EXPECT_EQ(info.trained_context, 128);
  EXPECT_EQ(info.context, 64);
  EXPECT_EQ(info.state_bytes_per_position, 128u);
  EXPECT_EQ(info.stop_ids, (std::vector<int32_t>{2}));
  EXPECT_GT(info.parameters, 10000);
  EXPECT_GE(info.weight_bytes, static_cast<uint64_t>(info.parameters) * 4);
  EXPECT_FALSE(info.backend.empty());
}

TEST_F(Api, TokenizesAndBack) {
  const tessera::Model model = load();
  const auto ids = model.tokenize("Hello");
  ASSERT_TRUE(ids);
  EXPECT_EQ(ids->size(), 6u);
  EXPECT_EQ(model.tokenize("Hello", tessera::Specials::kNone)->size(), 5u);
  EXPECT_EQ(*model.detokenize(*ids), "Hello");
}

TEST_F(Api, CallbackIteratorAndWholeAnswerAgree) {
  tessera::Model model = load();
  const tessera::GenerateOptions options{.max_tokens = 30, .temperature = 0, .ignore_end_of_sequence = true};
  const auto whole = model.generate("Hello", options);
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ(whole->ids.size(), 30u);
  EXPECT_EQ(whole->finish, tessera::Finish::kLength);
  EXPECT_EQ(whole->prompt_tokens, 6);

  std::string streamed;
  const auto again = model.generate("Hello", options, [&](const tessera::Token& token) {
    streamed += token.text;
    return true;
  });
  ASSERT_TRUE(again);
  EXPECT_EQ(streamed, whole->text);
  EXPECT_EQ(again->ids, whole->ids);

  auto generation = model.start("Hello", options);
  ASSERT_TRUE(generation);
  std::vector<int32_t> ids;
  for (const tessera::Token& token : *generation) ids.push_back(token.id);
  EXPECT_FALSE(generation->error());
  EXPECT_EQ(ids, whole->ids);
  EXPECT_EQ(generation->completion().text, whole->text);

  const auto prompt = model.tokenize("Hello");
  EXPECT_EQ(model.generate(std::span<const int32_t>(*prompt), options)->ids, whole->ids);
}

TEST_F(Api, AnswersUnderWayTogetherAreWhatTheyAreAlone) {
  tessera::Model model = load({.arithmetic = kExact, .cache = tessera::CacheType::kF32});
  const std::vector<std::string> prompts = {"Hello", "a", "The quick brown fox", ""};
  std::vector<std::vector<int32_t>> alone;
  tessera::GenerateOptions options{
      .max_tokens = 25, .temperature = 1.1, .seed = 3, .ignore_end_of_sequence = true};
  for (const std::string& prompt : prompts) alone.push_back(model.generate(prompt, options)->ids);
  std::vector<tessera::Generation> generations;
  for (const std::string& prompt : prompts) generations.push_back(*model.start(prompt, options));
  bool open = true;
  while (open) {
    open = false;
    for (tessera::Generation& generation : generations) {
      const auto token = generation.next();
      ASSERT_TRUE(token) << token.error().message;
      open = open || token->has_value();
    }
  }
  for (size_t i = 0; i < prompts.size(); ++i) EXPECT_EQ(generations[i].completion().ids, alone[i]) << i;
}

TEST_F(Api, EndsWhenItIsToldTo) {
  tessera::Model model = load();
  const tessera::GenerateOptions options{.max_tokens = 50, .temperature = 0, .ignore_end_of_sequence = true};
  int seen = 0;
  const auto cancelled = model.generate("Hello", options, [&](const tessera::Token&) { return ++seen < 5; });
  ASSERT_TRUE(cancelled);
  EXPECT_EQ(cancelled->finish, tessera::Finish::kCancelled);
  EXPECT_EQ(cancelled->ids.size(), 5u);
  {
    auto dropped = model.start("Hello", options);
    ASSERT_TRUE(dropped);
    ASSERT_TRUE(dropped->next());
  }  // cancelled; the model goes on
  EXPECT_EQ(model.generate("Hello", options)->ids.size(), 50u);
}

TEST_F(Api, AGenerationKeepsItsModel) {
  auto model = std::make_unique<tessera::Model>(load());
  auto generation =
      model->start("Hello", {.max_tokens = 5, .temperature = 0, .ignore_end_of_sequence = true});
  ASSERT_TRUE(generation);
  model.reset();
  int tokens = 0;
  for ([[maybe_unused]] const tessera::Token& token : *generation) ++tokens;
  EXPECT_EQ(tokens, 5);
}

TEST_F(Api, ErrorsAreValues) {
  const auto missing = tessera::Model::load("no/such/model");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, tessera::ErrorKind::kNotFound);
  EXPECT_NE(missing.error().message.find("no/such/model"), std::string::npos);
  EXPECT_FALSE(tessera::Model::load(folder(), {.backend = "abacus"}));
  tessera::Model model = load();
  EXPECT_EQ(model.generate("Hello", {.temperature = -1}).error().kind, tessera::ErrorKind::kInvalidArgument);
  EXPECT_FALSE(model.generate(std::string(200, 'a')));
  EXPECT_FALSE(model.generate(std::span<const int32_t>()));
  const std::vector<int32_t> beyond = {96};
  EXPECT_FALSE(model.start(beyond));
  EXPECT_TRUE(model.generate("Hello", {.max_tokens = 1}));
  EXPECT_FALSE(tessera::version().empty());
}

}  // namespace
