// OLMo 2 and 3: RMSNorm after each block only, and over the whole projections of q and k. OLMo 3 has a window
// on three layers of four and stretches the rope of the global ones only; a GGUF file of it calls itself OLMo
// 2 and holds the windows.
#include "arch/common.h"
#include "arch/families.h"

namespace tessera {
namespace {

// `window`: 0: no layer has one.
void build_layers(ConfigReader& config, ModelSpec& spec, double theta, int64_t window) {
  read_common(config, spec, {.context = 2048});
  AttentionSpec attention = read_attention(config, spec);
  const NormSpec norm = rms_norm(config, 1e-5);
  attention.q_norm = attention.k_norm = norm;  // of the whole row
  const RopeDefaults defaults = {.theta = theta};
  const int global = spec.add_rope(read_rope(config, attention.head_dim, defaults, "full_attention").rope);
  const int local =
      window > 0 ? spec.add_rope(read_rope(config, attention.head_dim, defaults, "sliding_attention").rope)
                 : global;
  const std::vector<int64_t> windows = patterned_windows(config, spec, window, 4);
  const FfnSpec ffn = read_gated_ffn(config);
  spec.final_norm = norm;
  add_decoder_layers(spec, {{}, norm, {}}, attention, ffn, windows, {local, global});
}

void build_olmo2(ConfigReader& config, ModelSpec& spec, Dialect&) {
  const int64_t window = config.is_gguf() ? config.count_or("sliding_window", 0) : 0;
  build_layers(config, spec, 1e4, window);
}

void build_olmo3(ConfigReader& config, ModelSpec& spec, Dialect&) {
  build_layers(config, spec, 5e5, config.size_or("sliding_window", 4096));
}

}  // namespace

const Architecture& olmo2_architecture() {
  static const Architecture architecture = {.family = "olmo2",
                                            .hf_names = {"Olmo2ForCausalLM", "Olmo2Model", "olmo2"},
                                            .gguf_names = {"olmo2"},
                                            .build = build_olmo2};
  return architecture;
}

const Architecture& olmo3_architecture() {
  static const Architecture architecture = {
      .family = "olmo3", .hf_names = {"Olmo3ForCausalLM", "Olmo3Model", "olmo3"}, .build = build_olmo3};
  return architecture;
}

}  // namespace tessera
