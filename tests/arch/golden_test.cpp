// Every reference checkpoint x config spelling x backend x way: logits against the reference and the ways
// against each other.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "arch/cases.h"
#include "arch/golden_runner.h"
#include "base/mapped_file.h"

namespace tessera {
namespace {

struct Param {
  GoldenCase golden;
  std::string config;  // "config.json", "config.legacy.json", "": what the checkpoint brings along
  std::string backend;
};

void PrintTo(const Param& param, std::ostream* out) {
  *out << param.golden.folder << "/" << param.golden.name << " " << param.config << " on " << param.backend;
}

std::vector<Param> all_params() {
  std::vector<Param> params;
  for (const GoldenCase& golden : kGoldenCases) {
    for (const std::string& backend : backend_names()) {
      if (!has_two_configs(golden)) {
        params.push_back({golden, "", backend});
      } else {
        params.push_back({golden, "config.json", backend});
        params.push_back({golden, "config.legacy.json", backend});
      }
    }
  }
  return params;
}

std::string param_name(const ::testing::TestParamInfo<Param>& info) {
  std::string name = std::string(info.param.golden.folder) + "_" + std::string(info.param.golden.name) + "_" +
                     (info.param.config.find("legacy") != std::string::npos ? "legacy_" : "") +
                     info.param.backend;
  for (char& c : name)
    if (c == '/' || c == '.') c = '_';
  return name;
}

class GoldenTest : public ::testing::TestWithParam<Param> {};

TEST_P(GoldenTest, EqualsTheReferenceInAllFourWays) {
  const Param& param = GetParam();
  const GoldenPaths paths = golden_paths(param.golden, param.config);
  CompileOptions options;
  options.activations = ActivationType::kExact;
  options.state = StateType::kF32;
  options.threads = 2;
  auto model = GoldenModel::load(paths.checkpoint, paths.config, param.backend, options);
  ASSERT_TRUE(model) << model.error().message;
  if (!param.golden.load_only.empty()) {
    ASSERT_TRUE((*model)->logits({3, 4, 5}, Way::kWhole));
    return;
  }
  const auto golden = read_golden(paths.golden);
  ASSERT_TRUE(golden);
  std::vector<float> whole;
  for (const Way way : kWays) {
    const auto logits = (*model)->logits(golden->ids, way);
    ASSERT_TRUE(logits) << logits.error().message;
    EXPECT_LT(normalised_squared_error(*logits, golden->logits), param.golden.bound) << way_name(way);
    if (way == Way::kWhole)
      whole = *logits;
    else
      EXPECT_LT(normalised_squared_error(*logits, whole), 1e-10) << way_name(way) << " against whole";
  }
  bool base_follows_length = false;
  for (const RopeSpec& rope : (*model)->plan().ropes)
    base_follows_length |= rope.scaling == RopeScaling::kDynamic;
  if (golden->greedy.empty()) return;
  if (base_follows_length) return;  // its greedy ids were made with another length than the engine's
  const auto greedy = (*model)->greedy(golden->ids, golden->greedy.size(), 1e-3);
  ASSERT_TRUE(greedy) << greedy.error().message;
  ASSERT_FALSE(greedy->empty());
  EXPECT_EQ(*greedy, std::vector<int32_t>(golden->greedy.begin(),
                                          golden->greedy.begin() + static_cast<long>(greedy->size())));
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTest, ::testing::ValuesIn(all_params()), param_name);

// Lossy defaults of a backend stay within their bound and the ways agree.
class GoldenDefaultTest : public ::testing::TestWithParam<Param> {};

TEST_P(GoldenDefaultTest, StaysWithinTheBoundOfQuantisedActivations) {
  const Param& param = GetParam();
  const GoldenPaths paths = golden_paths(param.golden, param.config);
  CompileOptions options;
  options.threads = 2;
  auto model = GoldenModel::load(paths.checkpoint, paths.config, param.backend, options);
  ASSERT_TRUE(model) << model.error().message;
  if (!param.golden.load_only.empty()) return;
  const auto golden = read_golden(paths.golden);
  std::vector<float> whole;
  for (const Way way : kWays) {
    const auto logits = (*model)->logits(golden->ids, way);
    ASSERT_TRUE(logits) << logits.error().message;
    EXPECT_LT(normalised_squared_error(*logits, golden->logits), param.golden.default_bound) << way_name(way);
    if (way == Way::kWhole)
      whole = *logits;
    else
      EXPECT_LT(normalised_squared_error(*logits, whole), 1e-3) << way_name(way) << " against whole";
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenDefaultTest, ::testing::ValuesIn(all_params()), param_name);

// The plan of every case is checked in: a change that moves an op is seen. TESSERA_UPDATE_PLANS=1 writes them anew.
TEST(PlanDump, EqualsTheCheckedInText) {
  int compared = 0;
  for (const GoldenCase& golden : kGoldenCases) {
    const GoldenPaths paths = golden_paths(golden, "config.json");
    const auto checkpoint = Checkpoint::open(paths.checkpoint);
    ASSERT_TRUE(checkpoint) << checkpoint.error().message;
    auto model = load_model(*checkpoint);
    ASSERT_TRUE(model) << model.error().message;
    const auto plan = build_plan(model->spec, model->weights);
    ASSERT_TRUE(plan);
    const std::string text = dump_plan(*plan, model->weights);
    std::string file = std::string(golden.folder) + "_" + std::string(golden.name) + ".txt";
    std::replace(file.begin(), file.end(), '/', '_');
    const std::string path = "tests/arch/plans/" + file;
    if (std::getenv("TESSERA_UPDATE_PLANS") != nullptr) std::ofstream(path) << text;
    const auto expected = read_file(path);
    ASSERT_TRUE(expected) << expected.error().message;
    EXPECT_EQ(text, *expected) << path;
    ++compared;
  }
  EXPECT_EQ(compared, static_cast<int>(std::size(kGoldenCases)));
}

// What is not registered is refused by name, never run as something similar.
TEST(Unregistered, IsRefusedWithTheListOfWhatIsSupported) {
  int refused = 0;
  for (const char* folder : {"arch", "arch_more"}) {
    for (const auto& entry : std::filesystem::directory_iterator(std::string("tests/goldens/") + folder)) {
      const std::string name = entry.path().filename().string();
      bool listed = false;
      for (const GoldenCase& golden : kGoldenCases) listed |= golden.folder == folder && golden.name == name;
      if (listed) continue;
      const auto checkpoint = Checkpoint::open(entry.path().string());
      ASSERT_TRUE(checkpoint) << checkpoint.error().message;
      const auto model = load_model(*checkpoint);
      ASSERT_FALSE(model) << name;
      EXPECT_NE(model.error().message.find("is not supported; supported are"), std::string::npos)
          << model.error().message;
      ++refused;
    }
  }
  EXPECT_GT(refused + static_cast<int>(std::size(kGoldenCases)), 90);
}

}  // namespace
}  // namespace tessera
