// The grammar of precision policies, its refusals, and packing: what is packed while loading is what the encoder makes of the rows.
#include "model/precision.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "arch/load.h"
#include "base/json.h"
#include "formats/format_info.h"
#include "model/pack_weights.h"
#include "tools/random_model.h"

namespace tessera {
namespace {

constexpr const char* kConfig =
    R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 256, "num_hidden_layers": 4,
  "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 288, "vocab_size": 96, "rms_norm_eps": 1e-6,
  "tie_word_embeddings": TIED})";

LoadedSpec spec_of(bool tied) {
  std::string text = kConfig;
  text.replace(text.find("TIED"), 4, tied ? "true" : "false");
  const auto json = parse_json(text, "config.json");
  EXPECT_TRUE(json);
  const auto config = Config::from_hf(*json, "config.json");
  EXPECT_TRUE(config);
  auto spec = load_spec(*config);
  EXPECT_TRUE(spec) << spec.error().message;
  return *std::move(spec);
}

std::string format_of(const std::string& policy, const std::string& slot, bool tied = false) {
  const LoadedSpec loaded = spec_of(tied);
  const auto parsed = PrecisionPolicy::parse_recipe(policy);
  if (!parsed) return parsed.error().message;
  const std::vector<Slot> slots = model_slots(loaded.spec);
  if (const Status status = parsed->check(loaded.spec, slots); !status) return status.error().message;
  for (const Slot& candidate : slots) {
    if (candidate.name != slot) continue;
    const auto format = parsed->format_of(candidate, loaded.spec);
    if (!format) return format.error().message;
    return *format ? format_name(**format) : "as it is";
  }
  return "no such slot";
}

TEST(Precision, Terms) {
  EXPECT_EQ(format_of("q8", "layers.0.attn.q.weight"), "Q8_0");
  EXPECT_EQ(format_of("head=f16", "layers.0.attn.q.weight"), "Q4_0");
  EXPECT_EQ(format_of("head=f16", "head.weight"), "F16");
  EXPECT_EQ(format_of("q8,qkv=q4_k,blk:1-2=bf16", "layers.0.attn.k.weight"), "Q4_K");
  EXPECT_EQ(format_of("q8,qkv=q4_k,blk:1-2=bf16", "layers.2.attn.k.weight"), "BF16");
  EXPECT_EQ(format_of("q8,blk:1-2=bf16,qkv=q4_k", "layers.2.attn.k.weight"), "Q4_K") << "later terms win";
  EXPECT_EQ(format_of("q8,blk:3=f32", "layers.3.ffn.down.weight"), "F32");
  EXPECT_EQ(format_of("q8", "layers.0.attn.norm.weight"), "as it is");
  EXPECT_EQ(format_of("q4,head=q6_k", "embed.weight", true), "Q6_K") << "a tied embedding is the head";
}

TEST(Precision, Recipes) {
  EXPECT_EQ(format_of("q4_k_m", "layers.0.attn.q.weight"), "Q4_K");
  EXPECT_EQ(format_of("q4_k_m", "layers.3.attn.v.weight"), "Q6_K");
  EXPECT_EQ(format_of("q4_k_m", "head.weight"), "Q6_K");
  EXPECT_EQ(format_of("q4_k_m", "layers.1.ffn.down.weight"), "Q5_0") << "288 columns: blocks of 32";
  for (const std::string_view name : PrecisionPolicy::recipe_names())
    EXPECT_NE(format_of(std::string(name), "layers.0.attn.q.weight"), "") << name;
}

TEST(Precision, Refusals) {
  const std::pair<const char*, const char*> kCases[] = {
      {"q9", "precision: unknown format \"q9\""},
      {"q8,heads=q4", "precision: heads=q4: unknown group \"heads\""},
      {"q8,head=q9", "precision: head=q9: unknown format \"q9\""},
      {"q8,q4", "precision: \"q4\": expected GROUP=FORMAT"},
      {"q8,", "precision: \"\": expected GROUP=FORMAT"},
      {"q8,blk:2-1=q4", "precision: blk:2-1=q4: expected a range that rises"},
      {"q8,blk:x=q4", "precision: blk:x=q4: expected a layer number"},
      {"q8,blk:3-4=q4", "precision: blk:3-4=q4: the model has the layers 0 to 3"},
      {"q8,experts=q4", "precision: experts=q4: the model has no such weights"},
      {"q8,down=q4_k",
       "precision: down=q4_k: layers.1.ffn.down.weight has rows of 288 values: Q4_K needs a multiple of 256"},
  };
  for (const auto& [policy, message] : kCases) {
    const std::string found = format_of(policy, "layers.1.ffn.down.weight");
    EXPECT_TRUE(found.starts_with(message)) << policy << ": " << found;
  }
  EXPECT_TRUE(format_of("q8,embed=q4,head=f16", "embed.weight", true).ends_with("one matrix"));
}

TEST(Precision, PacksWhatTheEncoderMakes) {
  const std::string path = ::testing::TempDir() + "/precision_config.json";
  std::string text = kConfig;
  text.replace(text.find("TIED"), 4, "false");
  {
    FILE* file = std::fopen(path.c_str(), "w");
    ASSERT_NE(file, nullptr);
    std::fputs(text.c_str(), file);
    std::fclose(file);
  }
  ThreadPool threads(2);
  const auto config = Config::from_hf_file(path);
  ASSERT_TRUE(config);
  auto packed = random_model(*config, Format::plain(DType::kF32), threads);
  auto plain = random_model(*config, Format::plain(DType::kF32), threads);
  ASSERT_TRUE(packed && plain);
  const auto policy = PrecisionPolicy::parse("q8,gate_up=q4_k");
  ASSERT_TRUE(policy);
  uint64_t last = 0;
  uint64_t all = 0;
  const Status status = pack_weights(
      packed->spec, *policy, threads, nullptr,
      [&](uint64_t done, uint64_t total) { last = done, all = total; }, packed->weights);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(last, all);
  EXPECT_GT(all, 0U);
  int compared = 0;
  for (const BoundSlot& slot : packed->weights.slots()) {
    if (slot.parts.empty()) continue;
    const BoundSlot* source = plain->weights.find(slot.slot.name);
    ASSERT_NE(source, nullptr);
    const Weight& from = source->parts[0];
    const Weight& to = slot.parts[0];
    ASSERT_EQ(to.format,
              Format::block(slot.slot.group == SlotGroup::kGateUp ? FormatKind::kQ4K : FormatKind::kQ8_0));
    std::vector<float> values(static_cast<size_t>(from.columns));
    std::vector<std::byte> blocks(static_cast<size_t>(format_row_bytes(to.format, to.columns)));
    for (const int64_t row : {int64_t{0}, from.rows / 2, from.rows - 1}) {
      decode_row(from, row, 0, from.columns, values.data());
      ASSERT_TRUE(encode_rows(to.format, values.data(), 1, from.columns, blocks.data()));
      EXPECT_EQ(std::memcmp(blocks.data(), to.planes[0].row(row), blocks.size()), 0) << slot.slot.name;
      ++compared;
    }
  }
  EXPECT_GT(compared, 20);
  const auto other = PrecisionPolicy::parse("f16");
  ASSERT_TRUE(other);
  const Status twice = pack_weights(packed->spec, *other, threads, nullptr, nullptr, packed->weights);
  ASSERT_FALSE(twice);
  EXPECT_NE(twice.error().message.find("only unquantised weights are packed"), std::string::npos)
      << twice.error().message;
}

}  // namespace
}  // namespace tessera
