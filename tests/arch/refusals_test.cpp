// What is not understood is refused, with a message that names the file, the key or tensor, what was found and
// what is allowed. One test per kind of refusal, with the whole message.
#include <gtest/gtest.h>

#include <filesystem>

#include "arch/cases.h"
#include "arch/edited_checkpoint.h"
#include "arch/load.h"

namespace tessera {
namespace {

// Loads the reference checkpoint with keys of its config replaced; the message of the refusal.
std::string refusal(const std::string& name, const std::string& changes) {
  EditedCheckpoint checkpoint("tests/goldens/arch/" + name);
  checkpoint.config().merge_patch(Json::parse(changes));
  const auto finished = checkpoint.finish();
  if (!finished) return finished.error().message;
  const auto model = load_model(*finished);
  return model ? "(accepted)" : model.error().message;
}

std::string refusal_of(const EditedCheckpoint& checkpoint) {
  const auto finished = checkpoint.finish();
  if (!finished) return finished.error().message;
  const auto model = load_model(*finished);
  return model ? "(accepted)" : model.error().message;
}

TEST(Refusal, TheUnchangedCheckpointIsAccepted) {
  EXPECT_EQ(refusal("llama", "{}"), "(accepted)");
}

TEST(Refusal, UnknownArchitecture) {
  const std::string message =
      refusal("llama", R"({"architectures": ["LlamoForCausalLM"], "model_type": "llamo"})");
  EXPECT_EQ(message.substr(0, message.find(" are ") + 5),
            "config.json: architecture LlamoForCausalLM is not supported; supported are ");
  for (const Architecture* architecture : architectures())
    EXPECT_NE(message.find(architecture->hf_names.front()), std::string::npos) << architecture->family;
}

TEST(Refusal, NoArchitecture) {
  EXPECT_EQ(refusal("llama", R"({"architectures": null, "model_type": null})"),
            "config.json: neither architectures nor model_type says what the model is");
}

TEST(Refusal, UnknownRopeType) {
  EXPECT_EQ(refusal("llama", R"({"rope_parameters": {"rope_type": "spiral", "factor": 2.0}})"),
            "config.json: rope_scaling: expected rope_type default, linear, dynamic, llama3, yarn, longrope, "
            "mrope or proportional, found spiral");
}

TEST(Refusal, UnknownRopeKey) {
  EXPECT_EQ(refusal("llama", R"({"rope_parameters": {"rope_type": "default", "twist": 2.0}})"),
            "config.json: rope_parameters: expected only keys that are understood, found twist");
}

TEST(Refusal, LongRopeListOfTheWrongLength) {
  EXPECT_EQ(
      refusal("phi3_longrope", R"({"rope_parameters": {"short_factor": [1.0, 2.0]}})"),
      "config.json: rope_scaling: expected 8 positive numbers, one a pair, found 2 values in short_factor");
}

TEST(Refusal, UnknownActivation) {
  EXPECT_EQ(
      refusal("llama", R"({"hidden_act": "mish"})"),
      "config.json: hidden_act: expected silu, swish, gelu, gelu_new, gelu_fast, gelu_pytorch_tanh, relu, "
      "relu2, found mish");
}

TEST(Refusal, UnknownLayerType) {
  EXPECT_EQ(
      refusal("gemma3", R"({"layer_types": ["sliding_attention", "spiral_attention", "full_attention"]})"),
      "config.json: layer_types: expected full_attention or sliding_attention in each entry, found "
      R"(["sliding_attention","spiral_attention","full_attention"])");
}

TEST(Refusal, LayerTypesOfTheWrongLength) {
  EXPECT_EQ(refusal("gemma3", R"({"layer_types": ["full_attention"]})"),
            R"(config.json: layer_types: expected one entry per layer, 3, found ["full_attention"])");
}

TEST(Refusal, HeadsNotDivisible) {
  EXPECT_EQ(refusal("llama", R"({"num_key_value_heads": 3})"),
            "config.json: num_key_value_heads: expected a divisor of num_attention_heads, 4, found 3");
}

TEST(Refusal, HiddenSizeNotDivisibleByHeads) {
  EXPECT_EQ(refusal("llama", R"({"head_dim": null, "num_attention_heads": 6, "num_key_value_heads": 2})"),
            "config.json: num_attention_heads: expected a divisor of hidden_size, 64, found 6");
}

TEST(Refusal, OddRotaryWidth) {
  EXPECT_EQ(
      refusal("phi", R"({"rope_parameters": {"partial_rotary_factor": 0.3125}})"),
      "config.json: partial_rotary_factor: expected an even number of rotated values, from 2 to the head "
      "width 16, found 5");
}

TEST(Refusal, AKeyOfAnotherFamilyThatIsNotNeutral) {
  EXPECT_EQ(
      refusal("llama", R"({"clip_qkv": 8.0})"),
      "config.json: clip_qkv = 8.0 is not understood for architecture LlamaForCausalLM: it would change "
      "the result");
  EXPECT_EQ(refusal("llama", R"({"clip_qkv": null, "qk_layernorm": false, "logit_scale": 1.0})"),
            "(accepted)");
}

TEST(Refusal, NotANumber) {
  EditedCheckpoint checkpoint("tests/goldens/arch/llama");
  checkpoint.config()["rms_norm_eps"] = std::nan("");
  EXPECT_EQ(refusal_of(checkpoint), "config.json: rms_norm_eps: expected a finite number, found NaN");
  checkpoint.config()["rms_norm_eps"] = -INFINITY;
  EXPECT_EQ(refusal_of(checkpoint), "config.json: rms_norm_eps: expected a finite number, found -Infinity");
}

TEST(Refusal, NumbersOutOfRange) {
  EXPECT_EQ(refusal("llama", R"({"num_hidden_layers": -2})"),
            "config.json: num_hidden_layers: expected an integer from 0 to 2147483647, found -2");
  EXPECT_EQ(refusal("llama", R"({"hidden_size": 0})"),
            "config.json: hidden_size: expected a positive integer, found 0");
  EXPECT_EQ(refusal("llama", R"({"num_hidden_layers": 99999999})"),
            "config.json: num_hidden_layers: expected at most 4096 layers, found 99999999");
  EXPECT_EQ(refusal("llama", R"({"hidden_size": "64"})"),
            R"(config.json: hidden_size: expected an integer from 0 to 2147483647, found "64")");
}

TEST(Refusal, MissingKey) {
  EXPECT_EQ(refusal("llama", R"({"hidden_size": null})"), "config.json: hidden_size is missing");
}

TEST(Refusal, SpellingsThatDisagree) {
  EXPECT_EQ(refusal("llama", R"({"n_embd": 32})"),
            "config.json: n_embd is 32, but another spelling of it (hidden_size) is 64");
}

TEST(Refusal, MissingTensor) {
  EditedCheckpoint checkpoint("tests/goldens/arch/llama");
  checkpoint.remove("model.layers.1.mlp.up_proj.weight");
  EXPECT_EQ(refusal_of(checkpoint),
            "edited.safetensors: layers.1.ffn.up.weight is missing: expected a tensor named "
            "layers.1.mlp.up_proj.weight, layers.1.feed_forward.up_proj.weight, "
            "layers.1.feed_forward.w3.weight, layers.1.mlp.gate_up_proj.weight");
}

// Where a name stands for another norm in other families, it is not taken twice.
TEST(Refusal, MissingNormOfFour) {
  EditedCheckpoint checkpoint("tests/goldens/arch/glm4");
  checkpoint.remove("model.layers.0.post_self_attn_layernorm.weight");
  EXPECT_EQ(refusal_of(checkpoint),
            "edited.safetensors: layers.0.ffn.norm.weight is missing: expected a tensor named "
            "layers.0.pre_feedforward_layernorm.weight, layers.0.pre_ff_layernorm.weight, "
            "layers.0.post_attention_layernorm.weight");
}

TEST(Refusal, LeftOverTensor) {
  EditedCheckpoint checkpoint("tests/goldens/arch/llama");
  checkpoint.add("model.layers.0.self_attn.sinks", Shape{4}, Format::plain(DType::kF32),
                 std::vector<std::byte>(16));
  EXPECT_EQ(refusal_of(checkpoint),
            "edited.safetensors: 1 tensor of the file belongs to no part of architecture llama: "
            "model.layers.0.self_attn.sinks");
}

TEST(Refusal, WrongShape) {
  EditedCheckpoint checkpoint("tests/goldens/arch/llama");
  TensorEntry& up = checkpoint.at("model.layers.0.mlp.up_proj.weight");
  up.shape = Shape{up.shape[1], up.shape[0]};
  EXPECT_EQ(
      refusal_of(checkpoint),
      "edited.safetensors: layers.0.ffn.up.weight (model.layers.0.mlp.up_proj.weight): expected [96, 64], "
      "found [64, 96]");
}

TEST(Refusal, WrongKindOfTensor) {
  EditedCheckpoint checkpoint("tests/goldens/arch/llama");
  checkpoint.remove("model.layers.0.mlp.up_proj.weight");
  checkpoint.add("model.layers.0.mlp.up_proj.weight", Shape{96, 64}, Format::plain(DType::kI32),
                 std::vector<std::byte>(96 * 64 * 4));
  EXPECT_EQ(refusal_of(checkpoint),
            "edited.safetensors: layers.0.ffn.up.weight (model.layers.0.mlp.up_proj.weight): expected "
            "floating-point or quantised weights, found I32");
}

TEST(Refusal, DuplicateNames) {
  EditedCheckpoint twice("tests/goldens/arch/llama");
  twice.add("model.norm.weight", Shape{64}, Format::plain(DType::kF32), std::vector<std::byte>(256));
  EXPECT_EQ(refusal_of(twice), "edited.safetensors: tensor model.norm.weight: expected once, found twice");
  // With and without the prefix of the base model it is one name.
  EditedCheckpoint prefixed("tests/goldens/arch/llama");
  prefixed.add("norm.weight", Shape{64}, Format::plain(DType::kF32), std::vector<std::byte>(256));
  EXPECT_EQ(refusal_of(prefixed),
            "edited.safetensors: model.norm.weight and norm.weight are the same tensor under two names");
}

TEST(Refusal, UnknownScoringFunction) {
  EXPECT_EQ(refusal("deepseek_v2_lite", R"({"scoring_func": "tanh"})"),
            "config.json: scoring_func: expected softmax, found tanh");
  EXPECT_EQ(refusal("deepseek_v3", R"({"scoring_func": "softmax"})"),
            "config.json: scoring_func: expected sigmoid, found softmax");
  EXPECT_EQ(refusal("glm4_moe", R"({"scoring_func": "tanh"})"),
            "config.json: scoring_func: expected sigmoid, found tanh");
}

TEST(Refusal, UnknownTopKMethod) {
  EXPECT_EQ(refusal("deepseek_v2_lite", R"({"topk_method": "random"})"),
            "config.json: topk_method: expected greedy, group_limited_greedy, found random");
  EXPECT_EQ(refusal("deepseek_v3", R"({"topk_method": "greedy"})"),
            "config.json: topk_method: expected noaux_tc, found greedy");
}

TEST(Refusal, ActivationsThatABlockDoesNotHave) {
  for (const char* name : {"mamba", "mamba2"})
    EXPECT_EQ(refusal(name, R"({"hidden_act": "gelu"})"),
              "config.json: hidden_act: expected silu, found gelu");
  EXPECT_EQ(refusal("falcon7b", R"({"activation": "relu"})"),
            "config.json: activation: expected gelu, found relu");
}

TEST(Refusal, UnknownRecurrentLayerType) {
  EXPECT_EQ(refusal("lfm2", R"({"layer_types": ["conv", "spiral", "conv", "full_attention"]})"),
            "config.json: layer_types: expected full_attention or conv in each entry, found "
            R"(["conv","spiral","conv","full_attention"])");
  EXPECT_EQ(refusal("granitemoehybrid", R"({"layer_types": ["mamba", "attention", "conv"]})"),
            "config.json: layer_types: expected full_attention or mamba in each entry, found "
            R"(["mamba","attention","conv"])");
  EXPECT_EQ(refusal("qwen3_5", R"({"layer_types": ["linear_attention", "conv", "conv", "full_attention"]})"),
            "config.json: layer_types: expected full_attention or linear_attention in each entry, found "
            R"(["linear_attention","conv","conv","full_attention"])");
}

TEST(Refusal, UnknownPositions) {
  EXPECT_EQ(refusal("granitemoehybrid", R"({"position_embedding_type": "alibi"})"),
            "config.json: position_embedding_type: expected nope, rope, found alibi");
}

TEST(Refusal, OddHeadWidth) {
  EXPECT_EQ(refusal("llama", R"({"head_dim": 15})"),
            "config.json: head_dim: expected an even number of rotated values, from 2 to the head width 15, "
            "found 15");
  EXPECT_EQ(refusal("deepseek_v2_lite", R"({"qk_rope_head_dim": 15, "head_dim": 15, "qk_head_dim": 31})"),
            "config.json: head_dim: expected an even number of rotated values, from 2 to the head width 15, "
            "found 15");
}

TEST(Refusal, HeadPartsThatDoNotAddUp) {
  EXPECT_EQ(refusal("deepseek_v2_lite", R"({"qk_head_dim": 40})"),
            "config.json: qk_head_dim: expected qk_nope_head_dim + qk_rope_head_dim, found 40");
}

TEST(Refusal, GroupsNotDividing) {
  for (const char* name : {"deepseek_v2_group", "deepseek_v3", "glm4_moe"})
    EXPECT_EQ(refusal(name, R"({"n_group": 3})"),
              "config.json: n_group: expected a divisor of the number of experts, 8, found 3");
  EXPECT_EQ(refusal("deepseek_v3", R"({"topk_group": 5})"),
            "config.json: topk_group: expected from 1 to the number of groups, 4, found 5");
  EXPECT_EQ(refusal("mamba2", R"({"n_groups": 3})"),
            "config.json: n_groups: expected a divisor of the number of heads, 4, found 3");
  EXPECT_EQ(
      refusal("qwen3_5", R"({"linear_num_key_heads": 3})"),
      "config.json: linear_num_value_heads: expected a multiple of the number of key heads, 3, found 4");
}

TEST(Refusal, MoreExpertsChosenThanThereAre) {
  EXPECT_EQ(refusal("qwen3_moe", R"({"num_experts_per_tok": 5})"),
            "config.json: num_experts_per_tok: expected at most num_experts, 4, found 5");
}

// The same for GGUF files: there the message has the key as the file spells it.
std::string gguf_refusal(const std::string& name, const std::string& key, GgufValue value) {
  EditedCheckpoint checkpoint("tests/goldens/gguf/arch/" + name + ".gguf");
  checkpoint.metadata()[key] = std::move(value);
  return refusal_of(checkpoint);
}

TEST(Refusal, GgufValues) {
  EXPECT_EQ(gguf_refusal("llama", "llama.attention.head_count", {uint64_t{4}}), "(accepted)");
  const std::string unknown = gguf_refusal("llama", "general.architecture", {std::string("llamo")});
  EXPECT_EQ(unknown.substr(0, unknown.find(" are ") + 5),
            "edited.gguf: architecture llamo is not supported; supported are ");
  EXPECT_EQ(
      gguf_refusal("llama_yarn", "llama.rope.scaling.type", {std::string("spiral")}),
      "edited.gguf: llama.rope.scaling: expected rope_type default, linear, dynamic, llama3, yarn, longrope, "
      "mrope or proportional, found spiral");
  EXPECT_EQ(gguf_refusal("glm4_moe", "glm4moe.expert_gating_func", {uint64_t{1}}),
            "edited.gguf: glm4moe.expert_gating_func: expected sigmoid, found softmax");
  EXPECT_EQ(gguf_refusal("lfm2_moe", "lfm2moe.expert_gating_func", {uint64_t{9}}),
            "edited.gguf: lfm2moe.expert_gating_func: expected sigmoid, found 9");
  EXPECT_EQ(
      gguf_refusal("llama", "llama.attention.head_count_kv", {uint64_t{3}}),
      "edited.gguf: llama.attention.head_count_kv: expected a divisor of num_attention_heads, 4, found 3");
  EXPECT_EQ(gguf_refusal("qwen3", "qwen3.attention.key_length", {uint64_t{15}}),
            "edited.gguf: qwen3.attention.key_length: expected an even number of rotated values, from 2 to "
            "the head "
            "width 15, found 15");
  EXPECT_EQ(
      gguf_refusal("deepseek_v2_group", "deepseek2.expert_group_count", {uint64_t{3}}),
      "edited.gguf: deepseek2.expert_group_count: expected a divisor of the number of experts, 8, found 3");
  EXPECT_EQ(gguf_refusal("mamba2", "mamba2.ssm.group_count", {uint64_t{3}}),
            "edited.gguf: mamba2.ssm.group_count: expected a divisor of the number of heads, 4, found 3");
  EXPECT_EQ(gguf_refusal("glm4_moe", "glm4moe.nextn_predict_layers", {uint64_t{3}}),
            "edited.gguf: glm4moe.nextn_predict_layers: expected fewer layers than the model has, found 3");
  EXPECT_EQ(gguf_refusal("gemma4_edge", "gemma4.feed_forward_length", {GgufArray{{uint64_t{96}}}}),
            "edited.gguf: gemma4.feed_forward_length: expected an entry for layer 1, found [96]");
}

TEST(Refusal, GgufKeysThatAreMissing) {
  for (const auto& [name, key] :
       {std::pair{"llama", "llama.block_count"}, std::pair{"mamba2", "mamba2.ssm.inner_size"},
        std::pair{"qwen3_5", "qwen35.ssm.group_count"}}) {
    EditedCheckpoint checkpoint("tests/goldens/gguf/arch/" + std::string(name) + ".gguf");
    checkpoint.metadata().erase(key);
    EXPECT_EQ(refusal_of(checkpoint), "edited.gguf: " + std::string(key) + " is missing");
  }
}

// GGUF files whose metadata contradicts or lacks what their tensors need.
TEST(Refusal, GgufFilesThatLackAFact) {
  int refused = 0;
  for (const RefusedCase& refused_case : kRefusedCases) {
    const auto checkpoint = Checkpoint::open("tests/goldens/" + std::string(refused_case.file));
    ASSERT_TRUE(checkpoint) << checkpoint.error().message;
    const auto model = load_model(*checkpoint);
    ASSERT_FALSE(model) << refused_case.file;
    EXPECT_EQ(model.error().message,
              "tests/goldens/" + std::string(refused_case.file) + ": " + std::string(refused_case.message));
    ++refused;
  }
  EXPECT_EQ(refused, static_cast<int>(std::size(kRefusedCases)));
}

// No file is left unsaid: each is compared, loaded with a reason why it cannot be compared, or refused.
TEST(Refusal, EveryGgufFileIsListed) {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/goldens/gguf/arch")) {
    const std::string name = entry.path().stem().string();
    int listed = 0;
    for (const GoldenCase& golden : kGoldenCases)
      listed += golden.folder == "gguf/arch" && golden.name == name;
    for (const RefusedCase& refused : kRefusedCases) listed += refused.file == "gguf/arch/" + name + ".gguf";
    EXPECT_EQ(listed, 1) << name;
    ++files;
  }
  EXPECT_GE(files, 72U);
}

}  // namespace
}  // namespace tessera
