// A complete model folder made on the spot: config.json, model.safetensors with random weights, tokenizer.json. Every
// part can be changed before it is written, so that each fault is one line of a test.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "base/json.h"

namespace tessera::test {

struct TinyTensor {
  std::vector<int64_t> shape;
  std::vector<float> values;
};

class TinyModel {
 public:
  static constexpr int64_t kVocabulary = 96;

  TinyModel() {
    config = {{"architectures", {"LlamaForCausalLM"}},
              {"model_type", "llama"},
              {"hidden_size", 32},
              {"intermediate_size", 64},
              {"num_hidden_layers", 2},
              {"num_attention_heads", 4},
              {"num_key_value_heads", 2},
              {"vocab_size", kVocabulary},
              {"max_position_embeddings", 128},
              {"rms_norm_eps", 1e-5},
              {"rope_theta", 10000.0},
              {"hidden_act", "silu"},
              {"tie_word_embeddings", true},
              {"bos_token_id", 1},
              {"eos_token_id", 2}};
    add("model.embed_tokens.weight", {kVocabulary, 32}, 1.0f);
    for (int layer = 0; layer < 2; ++layer) {
      const std::string prefix = "model.layers." + std::to_string(layer) + ".";
      add(prefix + "input_layernorm.weight", {32}, 1.0f);
      add(prefix + "self_attn.q_proj.weight", {32, 32}, 0.3f);
      add(prefix + "self_attn.k_proj.weight", {16, 32}, 0.3f);
      add(prefix + "self_attn.v_proj.weight", {16, 32}, 0.3f);
      add(prefix + "self_attn.o_proj.weight", {32, 32}, 0.3f);
      add(prefix + "post_attention_layernorm.weight", {32}, 1.0f);
      add(prefix + "mlp.gate_proj.weight", {64, 32}, 0.3f);
      add(prefix + "mlp.up_proj.weight", {64, 32}, 0.3f);
      add(prefix + "mlp.down_proj.weight", {32, 64}, 0.3f);
    }
    add("model.norm.weight", {32}, 1.0f);
    make_tokenizer(kVocabulary);
  }

  // Ids: <unk>, <s>, </s>, then printable ASCII one character a token, a blank first.
  void make_tokenizer(int64_t size) {
    Json vocabulary = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}};
    for (int64_t id = 3; id < size; ++id) {
      const auto code = static_cast<char>(' ' + id - 3);
      vocabulary[id < 98 ? std::string(1, code) : "extra" + std::to_string(id)] = id;
    }
    Json added = Json::array();
    for (int id = 0; id < 3; ++id)
      added.push_back({{"id", id},
                       {"content", id == 0   ? "<unk>"
                                   : id == 1 ? "<s>"
                                             : "</s>"},
                       {"special", true},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false}});
    tokenizer = {{"version", "1.0"},
                 {"truncation", nullptr},
                 {"padding", nullptr},
                 {"added_tokens", added},
                 {"normalizer", nullptr},
                 {"pre_tokenizer", nullptr},
                 {"post_processor",
                  {{"type", "TemplateProcessing"},
                   {"single",
                    {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
                     {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
                   {"pair", Json::array()},
                   {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {1}}, {"tokens", {"<s>"}}}}}}}},
                 {"decoder", {{"type", "Fuse"}}},
                 {"model",
                  {{"type", "BPE"},
                   {"dropout", nullptr},
                   {"unk_token", "<unk>"},
                   {"continuing_subword_prefix", nullptr},
                   {"end_of_word_suffix", nullptr},
                   {"fuse_unk", false},
                   {"byte_fallback", false},
                   {"vocab", vocabulary},
                   {"merges", Json::array()}}}};
  }

  void add(const std::string& name, std::vector<int64_t> shape, float scale) {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    TinyTensor tensor{std::move(shape), {}};
    std::uniform_real_distribution<float> distribution(-scale, scale);
    const bool gain = tensor.shape.size() == 1;
    for (int64_t i = 0; i < count; ++i) tensor.values.push_back(gain ? scale : distribution(random_));
    tensors[name] = std::move(tensor);
  }

  // The folder's path.
  [[nodiscard]] std::string write(const std::string& name) const {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("tessera-cli-" + std::to_string(getpid())) / name;
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    write_text(folder / "config.json", config.dump());
    if (!tokenizer.is_null()) write_text(folder / "tokenizer.json", tokenizer.dump());
    Json header = Json::object();
    std::string data;
    for (const auto& [tensor_name, tensor] : tensors) {
      const size_t bytes = tensor.values.size() * sizeof(float);
      header[tensor_name] = {
          {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {data.size(), data.size() + bytes}}};
      data.append(reinterpret_cast<const char*>(tensor.values.data()), bytes);
    }
    const std::string text = header.dump();
    const auto length = static_cast<uint64_t>(text.size());
    std::string file(reinterpret_cast<const char*>(&length), sizeof(length));
    write_text(folder / "model.safetensors", file + text + data);
    return folder.string();
  }

  static void write_text(const std::filesystem::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  static void remove_all() {
    std::filesystem::remove_all(std::filesystem::temp_directory_path() /
                                ("tessera-cli-" + std::to_string(getpid())));
  }

  Json config;
  Json tokenizer;
  std::map<std::string, TinyTensor> tensors;

 private:
  std::mt19937 random_{7};
};

}  // namespace tessera::test
