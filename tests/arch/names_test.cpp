// Checkpoints whose tensors bear other names than the library's: the same numbers must come out.
#include <gtest/gtest.h>

#include <map>

#include "arch/edited_checkpoint.h"
#include "arch/golden_runner.h"
#include "formats/format_info.h"

namespace tessera {
namespace {

// NSE of the whole prompt on the reference backend.
double error_of(const EditedCheckpoint& checkpoint, const std::string& golden_case) {
  const auto finished = checkpoint.finish();
  if (!finished) throw std::runtime_error(finished.error().message);
  CompileOptions options;
  options.activations = ActivationType::kExact;
  options.state = StateType::kF32;
  auto model = GoldenModel::load(*finished, "reference", options);
  if (!model) throw std::runtime_error(model.error().message);
  const auto golden = read_golden("tests/goldens/" + golden_case + "/golden.safetensors");
  const auto logits = (*model)->logits(golden->ids, Way::kWhole);
  if (!logits) throw std::runtime_error(logits.error().message);
  return normalised_squared_error(*logits, golden->logits);
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// Rows of each head of `dim` rows from the half-split order (i, i + dim/2) to the interleaved one (2i, 2i + 1).
std::vector<std::byte> interleaved_rows(const TensorEntry& tensor, int64_t dim) {
  const auto row = tensor.bytes.size() / static_cast<size_t>(tensor.shape[0]);
  std::vector<std::byte> bytes(tensor.bytes.size());
  for (int64_t r = 0; r < tensor.shape[0]; ++r) {
    const int64_t i = r % dim;
    const int64_t source = r - i + i / 2 + i % 2 * (dim / 2);
    std::memcpy(bytes.data() + static_cast<size_t>(r) * row,
                tensor.bytes.data() + static_cast<size_t>(source) * row, row);
  }
  return bytes;
}

TEST(Names, MoshiAsItsAuthorsWriteIt) {
  EditedCheckpoint checkpoint("tests/goldens/arch/moshi");
  const int64_t head_dim = 16;
  for (int layer = 0; layer < 2; ++layer) {
    const std::string hf = "model.layers." + std::to_string(layer) + ".";
    const std::string own = "transformer.layers." + std::to_string(layer) + ".";
    std::vector<std::byte> fused;
    for (const char* part : {"q", "k", "v"}) {
      const std::string name = hf + "self_attn." + part + "_proj.linear.weight";
      const TensorEntry& tensor = checkpoint.at(name);
      const std::vector<std::byte> bytes =
          part[0] == 'v' ? std::vector<std::byte>(tensor.bytes.begin(), tensor.bytes.end())
                         : interleaved_rows(tensor, head_dim);
      fused.insert(fused.end(), bytes.begin(), bytes.end());
    }
    const Format format = checkpoint.at(hf + "self_attn.q_proj.linear.weight").format;
    for (const char* part : {"q", "k", "v"})
      checkpoint.remove(hf + "self_attn." + part + "_proj.linear.weight");
    checkpoint.add(own + "self_attn.in_projs.0.weight", Shape{192, 64}, format, fused);
    for (const auto& [from, to] : std::map<std::string, std::string>{
             {"self_attn.o_proj.linear.weight", "self_attn.out_projs.0.weight"},
             {"mlp.fc1.weight", "gating.linear_in.weight"},
             {"mlp.fc2.weight", "gating.linear_out.weight"}})
      checkpoint.at(hf + from).name = own + to;
    for (const auto& [from, to] : std::map<std::string, std::string>{
             {"input_layernorm.weight", "norm1.alpha"}, {"post_attention_layernorm.weight", "norm2.alpha"}}) {
      checkpoint.at(hf + from).shape = Shape{1, 1, 64};
      checkpoint.at(hf + from).name = own + to;
    }
  }
  checkpoint.at("model.embed_tokens.weight").name = "text_emb.weight";
  checkpoint.at("lm_head.weight").name = "text_linear.weight";
  checkpoint.at("model.norm.weight").shape = Shape{1, 1, 64};
  checkpoint.at("model.norm.weight").name = "out_norm.alpha";
  // What belongs to the audio side is left alone.
  checkpoint.add("emb.0.weight", Shape{2, 64}, Format::plain(DType::kF32), std::vector<std::byte>(512));
  checkpoint.add("depformer_in.0.weight", Shape{2, 64}, Format::plain(DType::kF32),
                 std::vector<std::byte>(512));
  checkpoint.add("linears.0.weight", Shape{2, 64}, Format::plain(DType::kF32), std::vector<std::byte>(512));
  EXPECT_LT(error_of(checkpoint, "arch/moshi"), 1e-9);
}

TEST(Names, MoshiInsideTheWholeModel) {
  EditedCheckpoint checkpoint("tests/goldens/arch/moshi");
  checkpoint.config()["architectures"] = {"MoshiForConditionalGeneration"};
  for (TensorEntry& tensor : checkpoint.tensors()) tensor.name = "decoder." + tensor.name;
  checkpoint.add("embed_tokens.0.weight", Shape{2, 64}, Format::plain(DType::kF32),
                 std::vector<std::byte>(512));
  checkpoint.add("depth_decoder.lm_heads.weight", Shape{2, 64}, Format::plain(DType::kF32),
                 std::vector<std::byte>(512));
  EXPECT_LT(error_of(checkpoint, "arch/moshi"), 1e-9);
}

// A base model's prefix may be there or not, and a multimodal wrapper puts its own before it.
TEST(Names, PrefixesMayBeAbsentOrOthers) {
  struct Case {
    const char* name;
    const char* from;
    const char* to;
  };
  const Case cases[] = {{"gpt2", "transformer.", ""},
                        {"bloom", "transformer.", ""},
                        {"gpt_neox", "gpt_neox.", ""},
                        {"opt", "model.decoder.", "decoder."},
                        {"llama", "model.", ""},
                        {"llama", "model.", "language_model.model."},
                        {"llama", "model.", "model.language_model."},
                        {"gemma3", "model.", "language_model.model."},
                        {"qwen3_moe", "model.", "language_model.model."},
                        {"qwen3_5_moe", "model.", "model.language_model."},
                        {"deepseek_v3", "model.", "language_model.model."},
                        {"gemma4_edge", "model.", "model.language_model."}};
  for (const Case& c : cases) {
    EditedCheckpoint checkpoint("tests/goldens/arch/" + std::string(c.name));
    for (TensorEntry& tensor : checkpoint.tensors()) {
      tensor.name = replaced(tensor.name, c.from, c.to);
      if (std::string_view(c.to) == "language_model.model.")
        tensor.name = replaced(tensor.name, "lm_head", "language_model.lm_head");
    }
    EXPECT_LT(error_of(checkpoint, "arch/" + std::string(c.name)), 1e-9) << c.name << " as " << c.to;
  }
}

// The experts of a checkpoint that holds each on its own, by layer ("model.layers.1.mlp.") and part ("gate_proj").
struct ExpertParts {
  std::map<std::string, std::map<std::string, std::vector<TensorEntry>>> layers;
};

ExpertParts take_experts(EditedCheckpoint& checkpoint) {
  static const std::map<std::string, std::string> kParts = {
      {"w1", "gate_proj"}, {"w2", "down_proj"}, {"w3", "up_proj"}};
  ExpertParts parts;
  std::map<std::string, TensorEntry> found;
  for (const TensorEntry& tensor : checkpoint.tensors()) {
    const size_t at = tensor.name.find(".experts.");
    if (at == std::string::npos) continue;
    const std::string rest = tensor.name.substr(at + 9);  // "3.w1.weight"
    const size_t dot = rest.find('.');
    const size_t number = std::stoul(rest.substr(0, dot));
    std::string part = rest.substr(dot + 1, rest.rfind('.') - dot - 1);
    if (const auto it = kParts.find(part); it != kParts.end()) part = it->second;
    auto& list = parts.layers[tensor.name.substr(0, at + 1)][part];
    if (list.size() <= number) list.resize(number + 1);
    list[number] = tensor;
    found.emplace(tensor.name, tensor);
  }
  for (const auto& [name, tensor] : found) checkpoint.remove(name);
  return parts;
}

// [experts, rows of all the parts, columns]: the parts of one expert after another.
void add_stacked(EditedCheckpoint& checkpoint, const std::string& name,
                 const std::vector<std::vector<TensorEntry>>& parts) {
  std::vector<std::byte> bytes;
  int64_t rows = 0;
  for (const auto& part : parts) rows += part.front().shape[0];
  for (size_t e = 0; e < parts.front().size(); ++e)
    for (const auto& part : parts) bytes.insert(bytes.end(), part[e].bytes.begin(), part[e].bytes.end());
  const TensorEntry& first = parts.front().front();
  const auto experts = static_cast<int64_t>(parts.front().size());
  checkpoint.add(name, Shape{experts, rows, first.shape[1]}, first.format, std::move(bytes));
}

TEST(Names, ExpertsStackedAsMlxWritesThem) {
  for (const char* name : {"qwen3_moe", "qwen2_moe", "olmoe", "deepseek_v2_lite", "deepseek_v3", "glm4_moe",
                           "qwen3_next", "qwen3_5_moe", "mixtral", "phimoe", "jamba", "lfm2_moe"}) {
    EditedCheckpoint checkpoint("tests/goldens/arch/" + std::string(name));
    const ExpertParts experts = take_experts(checkpoint);
    ASSERT_FALSE(experts.layers.empty()) << name;
    for (const auto& [layer, parts] : experts.layers)
      for (const auto& [part, list] : parts)
        add_stacked(checkpoint, layer + "switch_mlp." + part + ".weight", {list});
    EXPECT_LT(error_of(checkpoint, "arch/" + std::string(name)), 1e-9) << name;
  }
}

TEST(Names, ExpertsStackedWithGateAndUpInOne) {
  for (const char* name : {"qwen3_moe", "qwen2_moe", "olmoe", "deepseek_v2_lite", "deepseek_v3", "glm4_moe",
                           "qwen3_next", "qwen3_5_moe"}) {
    EditedCheckpoint checkpoint("tests/goldens/arch/" + std::string(name));
    const ExpertParts experts = take_experts(checkpoint);
    ASSERT_FALSE(experts.layers.empty()) << name;
    for (const auto& [layer, parts] : experts.layers) {
      add_stacked(checkpoint, layer + "experts.gate_up_proj", {parts.at("gate_proj"), parts.at("up_proj")});
      add_stacked(checkpoint, layer + "experts.down_proj", {parts.at("down_proj")});
    }
    EXPECT_LT(error_of(checkpoint, "arch/" + std::string(name)), 1e-9) << name;
  }
}

// [experts, 2 * rows, columns] holding gate's rows, then up's, as two stacks.
TEST(Names, FusedExpertsSplitAsMlxWritesThem) {
  EditedCheckpoint checkpoint("tests/goldens/arch/gemma4_moe");
  for (int layer = 0; layer < 4; ++layer) {
    const std::string stem = "model.layers." + std::to_string(layer) + ".experts.";
    const TensorEntry fused = checkpoint.at(stem + "gate_up_proj");
    const int64_t experts = fused.shape[0];
    const size_t half = fused.bytes.size() / static_cast<size_t>(experts) / 2;
    std::vector<std::byte> parts[2];
    for (size_t i = 0; i < static_cast<size_t>(2 * experts); ++i) {
      const auto bytes = fused.bytes.subspan(i * half, half);
      parts[i % 2].insert(parts[i % 2].end(), bytes.begin(), bytes.end());
    }
    const Shape shape{experts, fused.shape[1] / 2, fused.shape[2]};
    checkpoint.remove(stem + "gate_up_proj");
    checkpoint.add(stem + "switch_glu.gate_proj.weight", shape, fused.format, parts[0]);
    checkpoint.add(stem + "switch_glu.up_proj.weight", shape, fused.format, parts[1]);
    checkpoint.at(stem + "down_proj").name = stem + "switch_glu.down_proj.weight";
  }
  EXPECT_LT(error_of(checkpoint, "arch/gemma4_moe"), 1e-9);
}

// Column c of every matrix [experts, rows, columns] in the first-to-last order of `columns`, as rows.
std::vector<std::byte> turned(const TensorEntry& tensor, int64_t first, int64_t step) {
  const auto size = static_cast<size_t>(dtype_size(tensor.format.element));
  std::vector<std::byte> bytes;
  for (int64_t e = 0; e < tensor.shape[0]; ++e)
    for (int64_t c = first; c < tensor.shape[2]; c += step)
      for (int64_t r = 0; r < tensor.shape[1]; ++r) {
        const auto at = static_cast<size_t>((e * tensor.shape[1] + r) * tensor.shape[2] + c) * size;
        const auto value = tensor.bytes.subspan(at, size);
        bytes.insert(bytes.end(), value.begin(), value.end());
      }
  return bytes;
}

TEST(Names, GptOssAsMlxWritesIt) {
  EditedCheckpoint checkpoint("tests/goldens/arch/gpt_oss");
  for (int layer = 0; layer < 4; ++layer) {
    const std::string stem = "model.layers." + std::to_string(layer) + ".mlp.experts.";
    const TensorEntry fused = checkpoint.at(stem + "gate_up_proj");
    TensorEntry bias = checkpoint.at(stem + "gate_up_proj_bias");
    const TensorEntry down = checkpoint.at(stem + "down_proj");
    const TensorEntry down_bias = checkpoint.at(stem + "down_proj_bias");
    for (const char* part : {"gate_up_proj", "gate_up_proj_bias", "down_proj", "down_proj_bias"})
      checkpoint.remove(stem + part);
    bias.shape = Shape{bias.shape[0], 1, bias.shape[1]};
    const int64_t width = fused.shape[2] / 2;
    for (const auto& [part, first] : {std::pair{"gate_proj", 0}, std::pair{"up_proj", 1}}) {
      checkpoint.add(stem + part + ".weight", Shape{fused.shape[0], width, fused.shape[1]}, fused.format,
                     turned(fused, first, 2));
      checkpoint.add(stem + part + ".bias", Shape{fused.shape[0], width}, bias.format,
                     turned(bias, first, 2));
    }
    checkpoint.add(stem + "down_proj.weight", Shape{down.shape[0], down.shape[2], down.shape[1]}, down.format,
                   turned(down, 0, 1));
    checkpoint.add(stem + "down_proj.bias", down_bias.shape, down_bias.format,
                   {down_bias.bytes.begin(), down_bias.bytes.end()});
  }
  EXPECT_LT(error_of(checkpoint, "arch/gpt_oss"), 1e-9);
}

// Older GGUF files hold kv_b whole, and the lengths of the heads themselves.
TEST(Names, GgufLatentAttentionInOnePiece) {
  EditedCheckpoint checkpoint("tests/goldens/gguf/arch/deepseek_v2_lite.gguf");
  for (int layer = 0; layer < 2; ++layer) {
    const std::string stem = "blk." + std::to_string(layer) + ".";
    const TensorEntry k = checkpoint.at(stem + "attn_k_b.weight");  // [heads, latent, keys]
    const TensorEntry v = checkpoint.at(stem + "attn_v_b.weight");  // [heads, values, latent]
    const std::vector<std::byte> keys = turned(k, 0, 1);
    const auto heads = static_cast<size_t>(k.shape[0]);
    std::vector<std::byte> bytes;
    for (size_t h = 0; h < heads; ++h) {
      const size_t key_share = keys.size() / heads;
      const size_t value_share = v.bytes.size() / heads;
      bytes.insert(bytes.end(), keys.begin() + static_cast<long>(h * key_share),
                   keys.begin() + static_cast<long>((h + 1) * key_share));
      const auto values = v.bytes.subspan(h * value_share, value_share);
      bytes.insert(bytes.end(), values.begin(), values.end());
    }
    checkpoint.remove(stem + "attn_k_b.weight");
    checkpoint.remove(stem + "attn_v_b.weight");
    checkpoint.add(stem + "attn_kv_b.weight", Shape{k.shape[0] * (k.shape[2] + v.shape[1]), k.shape[1]},
                   k.format, std::move(bytes));
  }
  auto& metadata = checkpoint.metadata();
  metadata["deepseek2.attention.key_length"] = metadata.at("deepseek2.attention.key_length_mla");
  metadata["deepseek2.attention.value_length"] = metadata.at("deepseek2.attention.value_length_mla");
  metadata.erase("deepseek2.attention.key_length_mla");
  metadata.erase("deepseek2.attention.value_length_mla");
  EXPECT_LT(error_of(checkpoint, "arch/deepseek_v2_lite"), 1e-9);
}

// A matrix that lies transposed may be quantised along its stored rows: the same numbers as its decoded values.
TEST(Names, TransposedMatricesInBlocks) {
  std::vector<float> logits[2];
  for (const bool quantised : {false, true}) {
    EditedCheckpoint checkpoint("tests/goldens/arch/gpt2");
    const std::string name = "transformer.h.0.mlp.c_fc.weight";
    const TensorEntry original = checkpoint.at(name);
    const int64_t rows = original.shape[0];
    const int64_t columns = original.shape[1];
    const Format blocks = Format::block(FormatKind::kQ8_0);
    std::vector<float> values(static_cast<size_t>(rows * columns));
    std::vector<std::byte> encoded(static_cast<size_t>(rows * format_row_bytes(blocks, columns)));
    Weight weight{original.format, rows, columns, {}};
    weight.planes[0] = {original.bytes.data(), format_row_bytes(original.format, columns)};
    for (int64_t r = 0; r < rows; ++r) decode_row(weight, r, 0, columns, values.data() + r * columns);
    ASSERT_TRUE(encode_rows(blocks, values.data(), rows, columns, encoded.data()));
    Weight coded{blocks, rows, columns, {}};
    coded.planes[0] = {encoded.data(), format_row_bytes(blocks, columns)};
    for (int64_t r = 0; r < rows; ++r) decode_row(coded, r, 0, columns, values.data() + r * columns);
    std::vector<std::byte> plain(values.size() * sizeof(float));
    std::memcpy(plain.data(), values.data(), plain.size());
    checkpoint.remove(name);
    checkpoint.add(name, original.shape, quantised ? blocks : Format::plain(DType::kF32),
                   quantised ? encoded : plain);
    const auto finished = checkpoint.finish();
    ASSERT_TRUE(finished) << finished.error().message;
    CompileOptions options;
    options.activations = ActivationType::kExact;
    auto model = GoldenModel::load(*finished, "reference", options);
    ASSERT_TRUE(model) << model.error().message;
    const auto result = (*model)->logits({3, 4, 5}, Way::kWhole);
    ASSERT_TRUE(result) << result.error().message;
    logits[quantised ? 1 : 0] = *result;
  }
  EXPECT_EQ(logits[0], logits[1]);
}

// What inference does not need is skipped by rule, the head of a tied model included.
TEST(Names, BuffersAndTowersAreSkipped) {
  EditedCheckpoint gpt2("tests/goldens/arch/gpt2");
  gpt2.add("transformer.h.0.attn.bias", Shape{1, 1, 128, 128}, Format::plain(DType::kU8),
           std::vector<std::byte>(128 * 128));
  gpt2.add("lm_head.weight", Shape{128, 64}, Format::plain(DType::kF32),
           std::vector<std::byte>(128 * 64 * 4));
  EXPECT_LT(error_of(gpt2, "arch/gpt2"), 1e-9);
  EditedCheckpoint gemma3("tests/goldens/arch/gemma3");
  gemma3.add("vision_tower.vision_model.post_layernorm.weight", Shape{8}, Format::plain(DType::kF32),
             std::vector<std::byte>(32));
  gemma3.add("multi_modal_projector.mm_soft_emb_norm.weight", Shape{8}, Format::plain(DType::kF32),
             std::vector<std::byte>(32));
  EXPECT_LT(error_of(gemma3, "arch/gemma3"), 1e-9);
}

}  // namespace
}  // namespace tessera
