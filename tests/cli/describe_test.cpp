// What `inspect`, `models` and `bench --random` say without a model file: every preset builds with a plan on every backend, every
// kind of block is described, and the blocks that the registry states for a family are those its checkpoints hold.
#include "tools/describe.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "arch/cases.h"
#include "engine/state_pool.h"
#include "tools/describe_blocks.h"
#include "tools/presets.h"
#include "tools/random_model.h"

namespace tessera {
namespace {

Json describe(const LoadedModel& model, const Plan& plan, const CompileOptions& options, int64_t context) {
  const auto backend = make_backend("cpu");
  return describe_model(model, plan, (*backend)->memory_needs(plan, model.weights, options), options,
                        context);
}

TEST(Presets, EveryOneBuildsAPlanThatEveryBackendComputes) {
  std::set<std::string> kinds;
  int built = 0;
  for (const Preset& preset : presets()) {
    const auto config = preset_config(std::string(preset.name));
    ASSERT_TRUE(config) << config.error().message;
    const auto model = outline_model(*config, Format::block(FormatKind::kQ8_0));
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_TRUE(model->warnings.empty()) << preset.name << ": " << model->warnings.front();
    const auto plan = build_plan(model->spec, model->weights);
    ASSERT_TRUE(plan) << plan.error().message;
    for (const std::string& name : backend_names()) {
      const auto backend = make_backend(name);
      const Status supported = (*backend)->supports(*plan, model->weights);
      EXPECT_TRUE(supported) << preset.name << " on " << name << ": " << supported.error().message;
    }
    for (const LayerSpec& layer : model->spec.layers)
      for (const Sublayer& sublayer : layer.sublayers)
        for (const Branch& branch : sublayer.branches) kinds.insert(block_kind(branch.block));
    const Json json = describe(*model, *plan, {}, 1024);
    EXPECT_GT(json["parameters"].get<int64_t>(), 500'000'000) << preset.name;
    ++built;
  }
  EXPECT_EQ(built, 11);  // the ten models of the registry and the shape of the benchmark
  for (const char* kind :
       {"attention", "latent attention", "gated delta rule", "experts", "gated feed-forward"})
    EXPECT_TRUE(kinds.contains(kind)) << kind;
}

TEST(Presets, AnUnknownNameListsWhatThereIs) {
  const auto config = preset_config("qwen3-5b");
  ASSERT_FALSE(config);
  for (const std::string& name : preset_names())
    EXPECT_NE(config.error().message.find(name), std::string::npos) << config.error().message;
}

// Random weights of every family of blocks compute finite logits: the presets' dimensions with few layers, experts and ids.
TEST(Presets, RandomWeightsCompute) {
  ThreadPool threads(2);
  for (const char* name : {"qwen3.5-4b", "deepseek-v2-lite", "qwen3.6-35b-a3b", "llama-3.2-1b"}) {
    for (const Preset& preset : presets()) {
      if (preset.name != name) continue;
      Json json = *parse_json(preset.config, name);
      Json& text = json.contains("text_config") ? json["text_config"] : json;
      text["num_hidden_layers"] = 4;
      text["vocab_size"] = 1000;
      text["hidden_size"] = 256;
      if (text.contains("eos_token_id")) text["eos_token_id"] = 2;
      for (const char* key : {"n_routed_experts", "num_experts"})
        if (text.contains(key)) text[key] = 12;
      if (text.contains("layer_types"))
        text["layer_types"].erase(text["layer_types"].begin() + 4, text["layer_types"].end());
      const auto config = Config::from_hf(json, name);
      ASSERT_TRUE(config) << config.error().message;
      const auto model = random_model(*config, Format::block(FormatKind::kQ8_0), threads);
      ASSERT_TRUE(model) << model.error().message;
      const auto plan = build_plan(model->spec, model->weights);
      ASSERT_TRUE(plan) << plan.error().message;
      const auto backend = make_backend("cpu");
      CompileOptions options;
      options.threads = 2;
      options.max_tokens = 64;
      auto executable = (*backend)->compile(*plan, model->weights, options);
      ASSERT_TRUE(executable) << executable.error().message;
      auto pool = StatePool::create(**executable, plan->states, capacity_for(plan->states, 16, {40, 1, 40}));
      ASSERT_TRUE(pool);
      SequenceState state = (*pool)->make_state();
      ASSERT_TRUE((*pool)->extend(state, 0, 40));
      std::vector<int32_t> ids, positions;
      for (int32_t i = 0; i < 40; ++i) {
        ids.push_back(i * 17 % 1000);
        positions.push_back(i);
      }
      const std::vector<int32_t> offsets{0, 40}, past{0}, lengths{40}, slots{std::max(state.slot, 0)},
          rows{39};
      std::vector<std::vector<int32_t>> page_offsets;
      for (const auto& group : state.groups)
        page_offsets.push_back({0, static_cast<int32_t>(group.pages.size())});
      std::vector<PageTable> tables;
      for (size_t g = 0; g < state.groups.size(); ++g)
        tables.push_back({state.groups[g].pages, page_offsets[g]});
      StepInput input;
      input.state = &(*pool)->storage();
      input.tokens = ids;
      input.positions = positions;
      input.sequence_offsets = offsets;
      input.past = past;
      input.rope_lengths = lengths;
      input.page_tables = tables;
      input.read_slots = slots;
      input.write_slots = slots;
      input.output_rows = rows;
      const auto ticket = (*executable)->submit(input);
      ASSERT_TRUE(ticket) << ticket.error().message;
      const auto output = (*executable)->wait(*ticket);
      float largest = 0;
      for (const float logit : output->logits) {
        ASSERT_TRUE(std::isfinite(logit)) << name;
        largest = std::max(largest, std::fabs(logit));
      }
      EXPECT_GT(largest, 0) << name;
    }
  }
}

TEST(Registry, StatesTheBlocksThatCheckpointsHold) {
  std::map<std::string, std::set<std::string>> found;
  const auto look = [&found](const LoadedSpec& loaded) {
    std::set<std::string>& kinds = found[std::string(loaded.architecture->family)];
    for (const LayerSpec& layer : loaded.spec.layers)
      for (const Sublayer& sublayer : layer.sublayers)
        for (const Branch& branch : sublayer.branches) {
          kinds.insert(block_kind(branch.block));
          EXPECT_FALSE(block_text(branch.block).empty());
        }
  };
  int cases = 0;
  for (const GoldenCase& golden : kGoldenCases) {
    if (golden.folder != "arch" && golden.folder != "arch_more") continue;
    const auto config =
        Config::from_hf_file(fmt::format("tests/goldens/{}/{}/config.json", golden.folder, golden.name));
    ASSERT_TRUE(config) << config.error().message;
    const auto loaded = load_spec(*config);
    ASSERT_TRUE(loaded) << loaded.error().message;
    look(*loaded);
    ++cases;
  }
  for (const Preset& preset : presets()) {
    const auto config = preset_config(std::string(preset.name));
    ASSERT_TRUE(config);
    const auto loaded = load_spec(*config);
    ASSERT_TRUE(loaded) << loaded.error().message;
    look(*loaded);
  }
  EXPECT_GE(cases, 98);
  for (const Architecture* architecture : architectures()) {
    std::set<std::string> stated;
    for (const std::string_view block : architecture->blocks) stated.emplace(block);
    const std::set<std::string>& held = found[std::string(architecture->family)];
    EXPECT_FALSE(held.empty()) << architecture->family << " has no case";
    EXPECT_EQ(stated, held) << architecture->family << " holds {"
                            << fmt::format("{}", fmt::join(held, "\", \"")) << "}";
  }
}

// A windowed layer's bytes end with window + one step, and latent attention counts what is re-laid.
TEST(Describe, StateAsItIsAllocated) {
  const auto outline = [](const char* text) {
    const auto json = parse_json(text, "config.json");
    const auto config = Config::from_hf(*json, "config.json");
    return outline_model(*config, Format::plain(DType::kBF16));
  };
  const auto windowed =
      outline(R"({"architectures": ["MistralForCausalLM"], "vocab_size": 128, "hidden_size": 64,
      "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
      "sliding_window": 100, "max_position_embeddings": 100000, "rope_theta": 10000.0, "rms_norm_eps": 1e-5})");
  ASSERT_TRUE(windowed) << windowed.error().message;
  const auto plan = build_plan(windowed->spec, windowed->weights);
  ASSERT_TRUE(plan);
  CompileOptions options;
  options.max_tokens = 60;
  const Json json = describe(*windowed, *plan, options, 100000);
  const Json& group = json["state"][0];
  EXPECT_EQ(group["kind"], "windowed");
  EXPECT_EQ(group["bytes_per_position"], 3 * 2 * 2 * 16 * 2);  // layers, k and v, heads, width, float16
  EXPECT_EQ(group["positions_held"], 176);                     // (100 + 60) / 16 pages, and one more
  EXPECT_EQ(group["bytes_held"], 176 * 3 * 2 * 2 * 16 * 2);
  EXPECT_EQ(json["memory"]["state"], group["bytes_held"]);

  const auto config = preset_config("deepseek-v2-lite");
  ASSERT_TRUE(config);
  const auto latent = outline_model(*config, Format::plain(DType::kBF16));
  ASSERT_TRUE(latent) << latent.error().message;
  const auto latent_plan = build_plan(latent->spec, latent->weights);
  ASSERT_TRUE(latent_plan);
  const Json mla = describe(*latent, *latent_plan, {}, 4096);
  EXPECT_EQ(mla["state"][0]["bytes_per_position"], 27 * 576 * 2);  // latent and shared key, once a layer
  EXPECT_EQ(mla["memory"]["relaid_weights"], int64_t{27} * 16 * 128 * 512 * 2);
  const std::string text = mla["layers"][0]["sublayers"][0]["branches"][0]["block"];
  EXPECT_EQ(
      text.find("latent attention, 16 heads of 128 + 64 rotated, values of 128, latent of 512 + 64 shared"),
      0u)
      << text;
}

}  // namespace
}  // namespace tessera
