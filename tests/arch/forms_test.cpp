// What a step may look like beside ids and one position: embedding rows, three position axes; and the two forms of latent
// attention and of recurrences, each forced. All on reference checkpoints and every backend.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "arch/cases.h"
#include "arch/golden_runner.h"

namespace tessera {
namespace {

CompileOptions exact_options() {
  CompileOptions options;
  options.activations = ActivationType::kExact;
  options.state = StateType::kF32;
  options.threads = 2;
  return options;
}

struct Loaded {
  std::unique_ptr<GoldenModel> model;
  Golden golden;
  std::string name;
  double bound = 0;
};

Loaded load(const GoldenCase& golden, const std::string& backend, const CompileOptions& options) {
  const GoldenPaths paths = golden_paths(golden, has_two_configs(golden) ? "config.json" : "");
  auto model = GoldenModel::load(paths.checkpoint, paths.config, backend, options);
  EXPECT_TRUE(model) << model.error().message;
  auto expected = read_golden(paths.golden);
  EXPECT_TRUE(expected);
  return {*std::move(model), *std::move(expected),
          fmt::format("{}/{} on {}", golden.folder, golden.name, backend), golden.bound};
}

const GoldenCase& case_named(std::string_view folder, std::string_view name) {
  for (const GoldenCase& golden : kGoldenCases)
    if (golden.folder == folder && golden.name == name) return golden;
  ADD_FAILURE() << "no case " << folder << "/" << name;
  return kGoldenCases[0];
}

template <class T>
int count_ops(const Plan& plan) {
  int count = 0;
  for (const Op& op : plan.ops) count += std::holds_alternative<T>(op) ? 1 : 0;
  return count;
}

// Every case that holds the ops, with each of the options, in all four ways.
template <class... Ops>
int hold_to_the_goldens(const std::vector<CompileOptions>& forms) {
  int compared = 0;
  for (const GoldenCase& golden : kGoldenCases) {
    if (!golden.load_only.empty()) continue;
    if (golden.folder != "arch" && golden.folder != "arch_more") continue;
    for (const CompileOptions& options : forms) {
      const Loaded loaded = load(golden, "cpu", options);
      if ((count_ops<Ops>(loaded.model->plan()) + ...) == 0) break;
      for (const Way way : kWays) {
        const auto logits = loaded.model->logits(loaded.golden.ids, way);
        EXPECT_TRUE(logits);
        EXPECT_LT(normalised_squared_error(*logits, loaded.golden.logits), loaded.bound)
            << loaded.name << " " << way_name(way);
        ++compared;
      }
    }
  }
  return compared;
}

TEST(Forms, AbsorbedAndExpandedLatentAttention) {
  std::vector<CompileOptions> forms(2, exact_options());
  forms[0].latent_form = LatentForm::kAbsorbed;
  forms[1].latent_form = LatentForm::kExpanded;
  EXPECT_GE(hold_to_the_goldens<MlaAttendOp>(forms), 4 * 2 * 4);
}

TEST(Forms, RecurrencesByTokensAndByBlocks) {
  std::vector<CompileOptions> forms(2, exact_options());
  forms[0].sequence_form = SequenceForm::kTokens;
  forms[1].sequence_form = SequenceForm::kBlocks;
  EXPECT_GE((hold_to_the_goldens<DeltaRuleOp, HeadScanOp>(forms)), 8 * 2 * 4);
}

// The rows of the table, given as embeddings, are the same model: bit for bit.
TEST(Embeddings, RowsOfTheTableEqualIds) {
  int compared = 0;
  int by_id = 0;
  for (const GoldenCase& golden : kGoldenCases) {
    if (golden.folder != "arch" && golden.folder != "arch_more") continue;
    for (const std::string& backend : backend_names()) {
      const Loaded loaded = load(golden, backend, exact_options());
      const bool needs_ids = count_ops<EmbedOp>(loaded.model->plan()) > 1;
      const auto from_ids = loaded.model->logits(loaded.golden.ids, Way::kRagged);
      ASSERT_TRUE(from_ids) << loaded.name;
      loaded.model->set_feed({needs_ids ? Feed::Rows::kEmbeddingsWithIds : Feed::Rows::kEmbeddings, nullptr});
      const auto from_rows = loaded.model->logits(loaded.golden.ids, Way::kRagged);
      ASSERT_TRUE(from_rows) << loaded.name << ": " << from_rows.error().message;
      EXPECT_EQ(*from_ids, *from_rows) << loaded.name;
      ++compared;
      if (!needs_ids) continue;
      // Tables that are looked up by id cannot be fed by embeddings alone.
      loaded.model->set_feed({Feed::Rows::kEmbeddings, nullptr});
      const auto refused = loaded.model->logits(loaded.golden.ids, Way::kWhole);
      ASSERT_FALSE(refused) << loaded.name;
      EXPECT_NE(refused.error().message.find("is looked up by token id"), std::string::npos)
          << refused.error().message;
      ++by_id;
    }
  }
  EXPECT_GE(compared, 190);
  EXPECT_GE(by_id, 4);  // per-layer embeddings
}

std::array<int32_t, 3> equal_axes(int32_t position) {
  return {position, position, position};
}
// An image of 4 x 3 patches after five tokens, then text again, as multimodal callers lay positions out.
std::array<int32_t, 3> image_axes(int32_t position) {
  if (position < 5) return {position, position, position};
  if (position < 17) return {5, 5 + (position - 5) / 3, 5 + (position - 5) % 3};
  const int32_t after = 9 + position - 17;
  return {after, after, after};
}

TEST(Axes, AreRefusedWhereTheModelKnowsOne) {
  for (const std::string backend : {"reference", "cpu"}) {
    const Loaded loaded = load(case_named("arch", "llama"), backend, exact_options());
    loaded.model->set_feed({Feed::Rows::kIds, equal_axes});
    ASSERT_TRUE(loaded.model->logits(loaded.golden.ids, Way::kWhole));
    loaded.model->set_feed({Feed::Rows::kIds, image_axes});
    const auto refused = loaded.model->logits(loaded.golden.ids, Way::kWhole);
    ASSERT_FALSE(refused) << backend;
    EXPECT_NE(refused.error().message.find("the model has no rope sections"), std::string::npos)
        << refused.error().message;
  }
}

TEST(Axes, EqualAxesAreOneAndOthersAgreeWithTheReference) {
  int compared = 0;
  for (const char* name : {"qwen3_5_vl", "glm_ocr_text"}) {
    std::vector<float> reference;
    for (const std::string backend : {"reference", "cpu"}) {
      const Loaded loaded = load(case_named("arch", name), backend, exact_options());
      bool sections = false;
      for (const RopeSpec& rope : loaded.model->plan().ropes) sections |= !rope.sections.empty();
      ASSERT_TRUE(sections) << loaded.name;
      const auto one = loaded.model->logits(loaded.golden.ids, Way::kWhole);
      ASSERT_TRUE(one);
      loaded.model->set_feed({Feed::Rows::kIds, equal_axes});
      const auto equal = loaded.model->logits(loaded.golden.ids, Way::kWhole);
      ASSERT_TRUE(equal);
      EXPECT_EQ(*one, *equal) << loaded.name;
      loaded.model->set_feed({Feed::Rows::kEmbeddings, image_axes});
      for (const Way way : kWays) {
        const auto image = loaded.model->logits(loaded.golden.ids, way);
        ASSERT_TRUE(image);
        EXPECT_GT(normalised_squared_error(*image, *one), 1e-6) << loaded.name << ": the axes change nothing";
        if (reference.empty()) reference = *image;
        EXPECT_LT(normalised_squared_error(*image, reference), 1e-10) << loaded.name << " " << way_name(way);
        ++compared;
      }
    }
  }
  EXPECT_EQ(compared, 2 * 2 * 4);
}

}  // namespace
}  // namespace tessera
