// EXAONE 4 (2025): norms after each block only, RMSNorm on the heads of q and k; three layers of four have a
// window and rope, the fourth is global without rope. Models without a window rotate everywhere.
#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.context = 2048});
  AttentionSpec attention = read_attention(config, spec);
  attention.q_norm = attention.k_norm = head_rms_norm(config, attention.head_dim, 1e-5);
  const int rope = spec.add_rope(read_rope(config, attention.head_dim, {}).rope);
  const int64_t window = config.nullable_count_or("sliding_window", 4096);
  const std::vector<int64_t> windows = patterned_windows(config, spec, window, 4);
  const FfnSpec ffn = read_gated_ffn(config);
  const NormSpec norm = rms_norm(config, 1e-5);
  spec.final_norm = norm;
  const std::optional<int> global = window == 0 ? std::optional<int>(rope) : std::nullopt;
  add_decoder_layers(spec, {{}, norm, {}}, attention, ffn, windows, {rope, global});
}

}  // namespace

const Architecture& exaone4_architecture() {
  static const Architecture architecture = {.family = "exaone4",
                                            .hf_names = {"Exaone4ForCausalLM", "Exaone4Model", "exaone4"},
                                            .gguf_names = {"exaone4"},
                                            .build = build};
  return architecture;
}

}  // namespace tessera
