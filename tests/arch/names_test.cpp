// Checkpoints whose tensors bear other names than the library's: the same numbers must come out.
#include <gtest/gtest.h>

#include <map>

#include "arch/edited_checkpoint.h"
#include "arch/golden_runner.h"

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
                        {"gemma3", "model.", "language_model.model."}};
  for (const Case& c : cases) {
    EditedCheckpoint checkpoint("tests/goldens/arch/" + std::string(c.name));
    for (TensorEntry& tensor : checkpoint.tensors()) tensor.name = replaced(tensor.name, c.from, c.to);
    EXPECT_LT(error_of(checkpoint, "arch/" + std::string(c.name)), 1e-9) << c.name << " as " << c.to;
  }
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
