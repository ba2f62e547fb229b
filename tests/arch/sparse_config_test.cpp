// Published configs leave out what equals their class's default. Minimal configs by hand, and the facts of the
// spec that must come out of them.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "arch/load.h"

namespace tessera {
namespace {

ModelSpec spec_of(const std::string& text) {
  const auto json = parse_json(text, "config.json");
  if (!json) throw std::runtime_error(json.error().message);
  const auto config = Config::from_hf(*json, "config.json");
  if (!config) throw std::runtime_error(config.error().message);
  auto loaded = load_spec(*config);
  if (!loaded) throw std::runtime_error(loaded.error().message);
  return std::move(loaded->spec);
}

// A config of `layers` layers with the sizes every class is given, and `more`.
std::string config(const std::string& architecture, int layers, const std::string& more = "") {
  return R"({"architectures": [")" + architecture + R"("], "vocab_size": 100, "hidden_size": 64,)" +
         R"("num_attention_heads": 4, "intermediate_size": 96, "num_hidden_layers": )" +
         std::to_string(layers) + (more.empty() ? "}" : ", " + more + "}");
}

// The attention or feed-forward block of a layer.
template <class Spec>
const Spec& block(const ModelSpec& spec, size_t layer) {
  for (const Sublayer& sublayer : spec.layers.at(layer).sublayers)
    for (const Branch& branch : sublayer.branches)
      if (const Spec* found = std::get_if<Spec>(&branch.block)) return *found;
  throw std::runtime_error("no such block");
}

const AttentionSpec& attention(const ModelSpec& spec, size_t layer) {
  return block<AttentionSpec>(spec, layer);
}

const RopeSpec& rope(const ModelSpec& spec, size_t layer) {
  return spec.ropes.at(static_cast<size_t>(attention(spec, layer).rope.value()));
}

std::vector<int64_t> windows(const ModelSpec& spec) {
  std::vector<int64_t> list;
  for (size_t i = 0; i < spec.layers.size(); ++i) list.push_back(attention(spec, i).window);
  return list;
}

TEST(SparseConfig, Gemma3WithEightKeysUnderTextConfig) {
  const ModelSpec spec = spec_of(R"({
    "architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "eos_token_id": [1, 106],
    "boi_token_index": 255999, "eoi_token_index": 256000, "image_token_index": 262144,
    "mm_tokens_per_image": 256, "initializer_range": 0.02, "torch_dtype": "bfloat16",
    "text_config": {"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text",
      "num_hidden_layers": 34, "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024},
    "vision_config": {"hidden_size": 1152, "num_attention_heads": 16}})");
  EXPECT_EQ(spec.vocabulary, 262208);
  EXPECT_EQ(spec.hidden, 2560);
  EXPECT_EQ(spec.context, 131072);
  EXPECT_EQ(spec.head.tie, HeadTie::kTied);
  EXPECT_EQ(spec.stop_ids, (std::vector<int32_t>{1, 106}));
  EXPECT_FLOAT_EQ(static_cast<float>(spec.embedding.scale), std::sqrt(2560.0f));
  const AttentionSpec& first = attention(spec, 0);
  EXPECT_EQ(first.heads, 8);
  EXPECT_EQ(first.kv_heads, 4);
  EXPECT_EQ(first.head_dim, 256);
  EXPECT_DOUBLE_EQ(first.scale, 1.0 / 16);
  EXPECT_EQ(first.softcap, 0.0);
  EXPECT_EQ(block<FfnSpec>(spec, 0).activation, Activation::kGeluTanh);
  for (size_t i = 0; i < 34; ++i) {
    const bool global = (i + 1) % 6 == 0;
    EXPECT_EQ(attention(spec, i).window, global ? 0 : 1024) << i;
    EXPECT_EQ(rope(spec, i).theta, global ? 1e6 : 1e4) << i;
    EXPECT_EQ(rope(spec, i).scaling, global ? RopeScaling::kLinear : RopeScaling::kNone) << i;
  }
}

TEST(SparseConfig, Gemma2AlternatesFromAWindowOn) {
  const ModelSpec spec = spec_of(config("Gemma2ForCausalLM", 4));
  EXPECT_EQ(windows(spec), (std::vector<int64_t>{4096, 0, 4096, 0}));
  EXPECT_EQ(attention(spec, 0).head_dim, 256);
  EXPECT_DOUBLE_EQ(attention(spec, 0).scale, 1.0 / 16);
  EXPECT_EQ(attention(spec, 0).softcap, 50.0);
  EXPECT_EQ(spec.head.softcap, 30.0);
  EXPECT_EQ(spec.head.tie, HeadTie::kTied);
  // null is not "missing": no cap.
  const ModelSpec uncapped = spec_of(
      config("Gemma2ForCausalLM", 2, R"("attn_logit_softcapping": null, "final_logit_softcapping": null)"));
  EXPECT_EQ(attention(uncapped, 0).softcap, 0.0);
  EXPECT_EQ(uncapped.head.softcap, 0.0);
}

TEST(SparseConfig, GemmaMeansTheTanhFormWhenItSaysGelu) {
  EXPECT_EQ(block<FfnSpec>(spec_of(config("GemmaForCausalLM", 1, R"("hidden_act": "gelu")")), 0).activation,
            Activation::kGeluTanh);
  EXPECT_EQ(
      block<FfnSpec>(spec_of(config("GemmaForCausalLM", 1, R"("hidden_activation": "gelu")")), 0).activation,
      Activation::kGeluErf);
}

TEST(SparseConfig, Cohere2IsGlobalWithoutRopeEveryFourthLayer) {
  const ModelSpec spec =
      spec_of(config("Cohere2ForCausalLM", 8, R"("position_embedding_type": "rope_gptj")"));
  EXPECT_EQ(windows(spec), (std::vector<int64_t>{4096, 4096, 4096, 0, 4096, 4096, 4096, 0}));
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(attention(spec, i).rope.has_value(), i % 4 != 3) << i;
  EXPECT_EQ(rope(spec, 0).layout, RopeLayout::kInterleaved);
  EXPECT_DOUBLE_EQ(spec.head.scale, 0.0625);
  EXPECT_EQ(windows(spec_of(config("Cohere2ForCausalLM", 3, R"("sliding_window_pattern": 2)"))),
            (std::vector<int64_t>{4096, 0, 4096}));
}

TEST(SparseConfig, Exaone4ReadsItsPatternAsNumberOrWord) {
  const std::vector<int64_t> expected = {512, 512, 0, 512};
  EXPECT_EQ(windows(spec_of(config("Exaone4ForCausalLM", 4,
                                   R"("sliding_window": 512, "sliding_window_pattern": "LLG")"))),
            expected);
  EXPECT_EQ(windows(spec_of(
                config("Exaone4ForCausalLM", 4, R"("sliding_window": 512, "sliding_window_pattern": 3)"))),
            expected);
  EXPECT_EQ(windows(spec_of(config("Exaone4ForCausalLM", 4))), (std::vector<int64_t>{4096, 4096, 4096, 0}));
  // Without a window every layer is global and rotates.
  const ModelSpec plain =
      spec_of(config("Exaone4ForCausalLM", 4, R"("sliding_window": null, "sliding_window_pattern": null)"));
  EXPECT_EQ(windows(plain), (std::vector<int64_t>(4, 0)));
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(attention(plain, i).rope.has_value());
}

TEST(SparseConfig, Olmo3StretchesTheGlobalLayersOnly) {
  const ModelSpec spec = spec_of(
      config("Olmo3ForCausalLM", 4,
             R"("rope_theta": 500000, "max_position_embeddings": 65536, "rope_scaling": {"rope_type": "yarn",
         "factor": 8.0, "original_max_position_embeddings": 8192, "attention_factor": 1.2})"));
  EXPECT_EQ(windows(spec), (std::vector<int64_t>{4096, 4096, 4096, 0}));
  EXPECT_EQ(rope(spec, 0).scaling, RopeScaling::kNone);
  EXPECT_EQ(rope(spec, 3).scaling, RopeScaling::kYarn);
  EXPECT_EQ(rope(spec, 0).theta, 5e5);
  EXPECT_DOUBLE_EQ(rope(spec, 3).amplitude, 1.2);
}

TEST(SparseConfig, FalconFlags) {
  const std::string sizes =
      R"({"architectures": ["FalconForCausalLM"], "vocab_size": 100, "hidden_size": 64,
          "n_head": 4, "n_layer": 1)";
  const ModelSpec b7 = spec_of(sizes + R"(, "multi_query": true, "parallel_attn": true, "bias": false})");
  EXPECT_EQ(attention(b7, 0).kv_heads, 1);
  EXPECT_EQ(b7.layers[0].sublayers.size(), 1u);
  EXPECT_TRUE(b7.layers[0].sublayers[0].pre.has_value());
  EXPECT_EQ(block<FfnSpec>(b7, 0).width, 256);
  EXPECT_EQ(spec_of(sizes + "}").layers[0].sublayers.size(), 1u);  // parallel and multi-query by default
  const ModelSpec b40 = spec_of(sizes + R"(, "new_decoder_architecture": true, "n_head_kv": 2})");
  EXPECT_EQ(attention(b40, 0).kv_heads, 2);
  EXPECT_FALSE(b40.layers[0].sublayers[0].pre.has_value());
  EXPECT_TRUE(b40.layers[0].sublayers[0].branches[1].pre.has_value());
  const ModelSpec b11 = spec_of(
      sizes + R"(, "new_decoder_architecture": true, "num_kv_heads": 2, "num_ln_in_parallel_attn": 1})");
  EXPECT_TRUE(b11.layers[0].sublayers[0].pre.has_value());
  const ModelSpec rw =
      spec_of(sizes + R"(, "multi_query": false, "parallel_attn": false, "alibi": true, "bias": true})");
  EXPECT_EQ(attention(rw, 0).kv_heads, 4);
  EXPECT_EQ(attention(rw, 0).alibi, Alibi::kBeforeScale);
  EXPECT_FALSE(attention(rw, 0).rope.has_value());
  EXPECT_EQ(rw.layers[0].sublayers.size(), 2u);
  EXPECT_EQ(attention(rw, 0).qkv_bias, Presence::kRequired);
}

TEST(SparseConfig, Phi3KeepsTheWholeHeadAndNoWindow) {
  const ModelSpec spec = spec_of(config("Phi3ForCausalLM", 1));
  EXPECT_EQ(windows(spec), (std::vector<int64_t>{0}));
  EXPECT_EQ(rope(spec, 0).dim, 16);
  EXPECT_DOUBLE_EQ(spec.final_norm->eps, 1e-5);
  const ModelSpec su = spec_of(
      config("Phi3ForCausalLM", 1,
             R"("max_position_embeddings": 131072, "original_max_position_embeddings": 4096, "rope_scaling":
         {"type": "su", "short_factor": [1,1,1,1,1,1,1,1], "long_factor": [2,2,2,2,2,2,2,2]})"));
  EXPECT_EQ(rope(su, 0).scaling, RopeScaling::kLongRope);
  EXPECT_EQ(rope(su, 0).original_context, 4096);
  EXPECT_NEAR(rope(su, 0).amplitude, std::sqrt(1.0 + std::log(32.0) / std::log(4096.0)), 1e-12);
}

TEST(SparseConfig, PartialRotationByDefault) {
  EXPECT_EQ(rope(spec_of(config("PhiForCausalLM", 1)), 0).dim, 8);
  EXPECT_EQ(rope(spec_of(config("GPTNeoXForCausalLM", 1)), 0).dim, 4);
  EXPECT_EQ(rope(spec_of(config("StableLmForCausalLM", 1)), 0).dim, 4);
  EXPECT_EQ(rope(spec_of(config("NemotronForCausalLM", 1)), 0).dim, 8);
  EXPECT_EQ(rope(spec_of(config("GlmForCausalLM", 1)), 0).dim, 64);  // of heads of 128
  // The nested number wins over the flat one.
  EXPECT_EQ(rope(spec_of(config("PhiForCausalLM", 1,
                                R"("partial_rotary_factor": 1.0, "rope_parameters":
                                   {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.25})")),
                 0)
                .dim,
            4);
}

TEST(SparseConfig, HeadsWidthsAndTies) {
  struct Case {
    const char* architecture;
    int64_t kv_heads;
    int64_t head_dim;
    HeadTie tie;
    double eps;
  };
  const Case cases[] = {{"CohereForCausalLM", 4, 16, HeadTie::kTied, 1e-5},
                        {"Ernie4_5ForCausalLM", 2, 128, HeadTie::kTied, 1e-5},
                        {"GemmaForCausalLM", 4, 256, HeadTie::kTied, 1e-6},
                        {"Glm4ForCausalLM", 2, 128, HeadTie::kUntied, 1.5625e-7},
                        {"GraniteForCausalLM", 4, 16, HeadTie::kUntied, 1e-6},
                        {"HunYuanDenseV1ForCausalLM", 4, 16, HeadTie::kUntied, 1e-5},
                        {"MoshiForCausalLM", 4, 16, HeadTie::kUntied, 1e-8},
                        {"Olmo2ForCausalLM", 4, 16, HeadTie::kUntied, 1e-5},
                        {"Starcoder2ForCausalLM", 2, 16, HeadTie::kTied, 1e-5}};
  for (const Case& c : cases) {
    const ModelSpec spec = spec_of(config(c.architecture, 1));
    EXPECT_EQ(attention(spec, 0).kv_heads, c.kv_heads) << c.architecture;
    EXPECT_EQ(attention(spec, 0).head_dim, c.head_dim) << c.architecture;
    EXPECT_EQ(spec.head.tie, c.tie) << c.architecture;
    EXPECT_DOUBLE_EQ(spec.final_norm->eps, c.eps) << c.architecture;
  }
  EXPECT_EQ(attention(spec_of(config("MoshiForCausalLM", 1)), 0).window, 3000);
  EXPECT_EQ(spec_of(config("MoshiForCausalLM", 1)).embedding.rows, 101);
  const ModelSpec seed = spec_of(config("SeedOssForCausalLM", 1, R"("num_key_value_heads": 2)"));
  EXPECT_EQ(attention(seed, 0).head_dim, 128);
  EXPECT_EQ(attention(seed, 0).qkv_bias, Presence::kRequired);
  EXPECT_EQ(attention(seed, 0).o_bias, Presence::kAbsent);
}

TEST(SparseConfig, ModelsOfTheFirstYears) {
  const ModelSpec gpt2 = spec_of(
      R"({"model_type": "gpt2", "vocab_size": 100, "n_embd": 64, "n_head": 4, "n_layer": 2, "n_ctx": 128})");
  EXPECT_EQ(gpt2.embedding.learned_positions, 128);
  EXPECT_EQ(block<FfnSpec>(gpt2, 0).width, 256);
  EXPECT_EQ(gpt2.head.tie, HeadTie::kTied);
  const ModelSpec bloom = spec_of(
      R"({"model_type": "bloom", "vocab_size": 100, "n_embed": 64, "num_attention_heads": 4, "n_layer": 2})");
  EXPECT_EQ(attention(bloom, 1).alibi, Alibi::kAfterScale);
  EXPECT_TRUE(bloom.embedding.norm.has_value());
  const ModelSpec opt = spec_of(R"({"model_type": "opt", "vocab_size": 100, "hidden_size": 64, "ffn_dim": 96,
                                    "num_attention_heads": 4, "num_hidden_layers": 1})");
  EXPECT_EQ(opt.embedding.learned_positions, 2050);
  EXPECT_EQ(opt.embedding.position_offset, 2);
  EXPECT_EQ(block<FfnSpec>(opt, 0).activation, Activation::kRelu);
  EXPECT_TRUE(opt.final_norm.has_value());
}

TEST(SparseConfig, EverythingTakenByDefaultIsListed) {
  const auto json = parse_json(config("PhiForCausalLM", 1), "config.json");
  const auto loaded = load_spec(*Config::from_hf(*json, "config.json"));
  ASSERT_TRUE(loaded);
  const auto listed = [&](const std::string& line) {
    return std::find(loaded->defaults.begin(), loaded->defaults.end(), line) != loaded->defaults.end();
  };
  EXPECT_TRUE(listed("layer_norm_eps = 1e-05"));
  EXPECT_TRUE(listed("hidden_act = gelu_new"));
  EXPECT_TRUE(listed("max_position_embeddings = 2048"));
}

}  // namespace
}  // namespace tessera
