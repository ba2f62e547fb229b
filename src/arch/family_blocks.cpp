// What differs from attention and a gated feed-forward block. A test holds every row to the family's checkpoints.
#include "arch/family_blocks.h"

#include "arch/architecture.h"

namespace tessera {
namespace {

struct Row {
  std::string_view family;
  std::vector<std::string_view> blocks;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> list = {
      {"bloom", {"attention", "plain feed-forward"}},
      {"deepseek_v2", {"latent attention", "gated feed-forward", "experts"}},
      {"deepseek_v3", {"latent attention", "gated feed-forward", "experts"}},
      {"falcon", {"attention", "plain feed-forward"}},
      {"falcon_h1", {"attention", "state space by heads", "gated feed-forward"}},
      {"falcon_mamba", {"selective scan"}},
      {"gemma3n", {"attention", "gated feed-forward", "identity", "low-rank"}},
      {"gemma4", {"attention", "gated feed-forward", "experts", "per-layer input"}},
      {"glm4_moe", {"attention", "gated feed-forward", "experts"}},
      {"gpt2", {"attention", "plain feed-forward"}},
      {"gpt_neox", {"attention", "plain feed-forward"}},
      {"gpt_oss", {"attention", "experts"}},
      {"granitemoe", {"attention", "experts"}},
      {"granitemoehybrid", {"attention", "state space by heads", "gated feed-forward", "experts"}},
      {"jamba", {"attention", "selective scan", "gated feed-forward", "experts"}},
      {"lfm2", {"attention", "short convolution", "gated feed-forward", "experts"}},
      {"mamba", {"selective scan"}},
      {"mamba2", {"state space by heads"}},
      {"mixtral", {"attention", "experts"}},
      {"nemotron", {"attention", "plain feed-forward"}},
      {"olmoe", {"attention", "experts"}},
      {"opt", {"attention", "plain feed-forward"}},
      {"phi", {"attention", "plain feed-forward"}},
      {"phimoe", {"attention", "experts"}},
      {"qwen2_moe", {"attention", "gated feed-forward", "experts"}},
      {"qwen3_5", {"attention", "gated delta rule", "gated feed-forward", "experts"}},
      {"qwen3_moe", {"attention", "experts"}},
      {"qwen3_next", {"attention", "gated delta rule", "gated feed-forward", "experts"}},
      {"rwkv4", {"time mix", "channel mix"}},
      {"starcoder2", {"attention", "plain feed-forward"}},
  };
  return list;
}

}  // namespace

std::vector<std::string_view> family_blocks(const Architecture& architecture) {
  for (const Row& row : rows())
    if (row.family == architecture.family) return row.blocks;
  return {"attention", "gated feed-forward"};
}

}  // namespace tessera
