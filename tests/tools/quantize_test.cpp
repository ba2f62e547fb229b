// Quantised files load again with the same names, metadata and shapes, and hold what the encoders make of the rows.
#include "tools/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "formats/format_info.h"
#include "temporary_folder.h"

namespace tessera {
namespace {

Result<LoadedModel> open(const std::string& path) {
  TESSERA_TRY(const std::shared_ptr<const Checkpoint> checkpoint, Checkpoint::open(path));
  return load_model(checkpoint);
}

// Root of the mean squared difference over the root of the mean square.
double relative_error(const TensorEntry& before, const TensorEntry& after) {
  const Weight from = matrix_view(before);
  const Weight to = matrix_view(after);
  std::vector<float> a(static_cast<size_t>(from.columns));
  std::vector<float> b(static_cast<size_t>(from.columns));
  double difference = 0;
  double size = 0;
  for (int64_t row = 0; row < from.rows; ++row) {
    decode_row(from, row, 0, from.columns, a.data());
    decode_row(to, row, 0, to.columns, b.data());
    for (size_t i = 0; i < a.size(); ++i) {
      difference += (a[i] - b[i]) * static_cast<double>(a[i] - b[i]);
      size += static_cast<double>(a[i]) * a[i];
    }
  }
  return std::sqrt(difference / size);
}

struct Case {
  const char* model;
  const char* recipe;
  double bound;  // of the relative error of a matrix
};

class Quantize : public ::testing::TestWithParam<Case> {};

TEST_P(Quantize, ReadsBackWhatItWrote) {
  const Case& param = GetParam();
  const TemporaryFolder folder;
  const std::string output = folder.file("out.gguf");
  const auto model = open(std::string("tests/goldens/gguf/arch/") + param.model + ".gguf");
  ASSERT_TRUE(model) << model.error().message;
  const auto policy = PrecisionPolicy::parse_recipe(param.recipe);
  ASSERT_TRUE(policy) << policy.error().message;
  ThreadPool threads(2);
  const auto report = quantize_gguf(*model, *policy, {}, threads, nullptr, output);
  ASSERT_TRUE(report) << report.error().message;
  const Status verified = verify_quantized(*model, *policy, {}, threads, nullptr, output);
  ASSERT_TRUE(verified) << verified.error().message;

  const auto written = open(output);
  ASSERT_TRUE(written) << written.error().message;
  for (const auto& [key, value] : model->checkpoint->metadata())
    EXPECT_TRUE(written->checkpoint->metadata().contains(key)) << key;
  int changed = 0;
  for (const TensorEntry& before : model->checkpoint->tensors()) {
    const TensorEntry* after = written->checkpoint->find(before.name);
    ASSERT_NE(after, nullptr) << before.name;
    if (after->format == before.format) continue;
    ++changed;
    EXPECT_LT(relative_error(before, *after), param.bound)
        << before.name << " as " << format_name(after->format);
  }
  EXPECT_GT(changed, 5);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1)
      << "a temporary file was left";
}

INSTANTIATE_TEST_SUITE_P(Recipes, Quantize,
                         ::testing::Values(Case{"llama", "q8_0", 0.01}, Case{"llama", "q4_0", 0.12},
                                           Case{"llama", "q4_k_m", 0.12}, Case{"qwen3_moe", "q4_k_m", 0.12},
                                           Case{"gemma2", "q5_0", 0.06}, Case{"qwen3", "f16", 0.005}),
                         [](const auto& item) {
                           return std::string(item.param.model) + "_" + item.param.recipe;
                         });

TEST(QuantizeRefusals, NameWhatIsWrong) {
  const TemporaryFolder folder;
  const auto model = open("tests/goldens/gguf/arch/llama.gguf");
  ASSERT_TRUE(model) << model.error().message;
  ThreadPool threads(1);
  const auto policy = PrecisionPolicy::parse_recipe("q8_0,blk:90=q4_0");
  ASSERT_TRUE(policy);
  const auto report = quantize_gguf(*model, *policy, {}, threads, nullptr, folder.file("out.gguf"));
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("blk:90=q4_0"), std::string::npos) << report.error().message;
  EXPECT_FALSE(std::filesystem::exists(folder.file("out.gguf")));
  const auto q8 = PrecisionPolicy::parse_recipe("q8_0");
  ASSERT_TRUE(q8);
  const auto nowhere =
      quantize_gguf(*model, *q8, {}, threads, nullptr, folder.file("no/such/folder/out.gguf"));
  ASSERT_FALSE(nowhere);
  EXPECT_NE(nowhere.error().message.find("no/such/folder"), std::string::npos) << nowhere.error().message;
}

}  // namespace
}  // namespace tessera
