// The model of the repository against transformers (models/fable/golden.json, written when the model was made): the prompts' ids
// from our tokenizer, and 64 greedy ids from every backend in float32.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "arch/golden_runner.h"
#include "base/json.h"
#include "text/tokenizer.h"

namespace tessera {
namespace {

const char* const kFolder = "models/fable";

TEST(Fable, ContinuesAsTheReferenceDoes) {
  const auto golden = read_json_file("models/fable/golden.json");
  ASSERT_TRUE(golden) << golden.error().message;
  const auto tokenizer = Tokenizer::from_folder(kFolder);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  int compared = 0;
  for (const std::string& backend : backend_names()) {
    CompileOptions options;
    options.activations = ActivationType::kExact;
    options.state = StateType::kF32;
    options.threads = 2;
    auto model = GoldenModel::load(kFolder, "", backend, options);
    ASSERT_TRUE(model) << model.error().message;
    for (const Json& entry : (*golden)["cases"]) {
      const auto prompt = entry["prompt_ids"].get<std::vector<int32_t>>();
      const std::string text = entry.contains("rendered") ? entry["rendered"].get<std::string>()
                                                          : entry["text"].get<std::string>();
      EncodeOptions encode;
      encode.specials = entry["add_special_tokens"].get<bool>() ? SpecialTokens::kAdd : SpecialTokens::kOmit;
      const auto encoded = tokenizer->encode(text, encode);
      ASSERT_TRUE(encoded) << encoded.error().message;
      EXPECT_EQ(*encoded, prompt) << entry["name"];
      const auto expected = entry["greedy_ids"].get<std::vector<int32_t>>();
      const auto greedy = (*model)->greedy(prompt, expected.size(), 0.0);
      ASSERT_TRUE(greedy) << greedy.error().message;
      EXPECT_EQ(*greedy, expected) << entry["name"] << " on " << backend;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 3 * static_cast<int>(backend_names().size()));
}

}  // namespace
}  // namespace tessera
