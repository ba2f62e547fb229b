// Mamba and Falcon-Mamba (the same with weightless RMSNorm on dt, B and C), and Mamba-2: one block a layer, no feed-forward.
#include <cmath>

#include "arch/families.h"
#include "arch/state_space.h"

namespace tessera {
namespace {

NormSpec norm_of(ConfigReader& config) {
  NormSpec norm;
  norm.eps = config.number_or("layer_norm_eps", 1e-5);
  return norm;
}

void build_mamba(ConfigReader& config, ModelSpec& spec, bool parameter_norm) {
  read_common(config, spec, {.tied = true, .context = 1048576});
  MambaSpec mamba;
  const auto expand = config.number_or("expand", 2.0);
  mamba.inner =
      config.size_or("intermediate_size", static_cast<int64_t>(expand * static_cast<double>(spec.hidden)));
  mamba.state = config.size_or("state_size", 16);
  mamba.kernel = config.size_or("conv_kernel", 4);
  mamba.dt_rank = config.size_or("time_step_rank", (spec.hidden + 15) / 16);
  mamba.conv_bias = config.flag_or("use_conv_bias", true) ? Presence::kRequired : Presence::kAbsent;
  mamba.proj_bias = config.flag_or("use_bias", false) ? Presence::kRequired : Presence::kAbsent;
  (void)config.choice<bool>("hidden_act", "silu", {{"silu", true}});
  if (parameter_norm) {
    mamba.parameter_norm = NormSpec{};
    mamba.parameter_norm->eps = config.number_or("mixer_rms_eps", 1e-6);
    mamba.parameter_norm->gain = Presence::kAbsent;
  }
  const NormSpec norm = norm_of(config);
  spec.final_norm = norm;
  for (LayerSpec& layer : spec.layers) layer.sublayers = {sequential("attn", norm, mamba)};
}

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  build_mamba(config, spec, false);
}
void build_falcon(ConfigReader& config, ModelSpec& spec, Dialect&) {
  build_mamba(config, spec, true);
}

void build_mamba2(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.context = 1048576});
  const NormSpec norm = norm_of(config);
  Mamba2Spec mamba = read_mamba2(config, spec, norm);
  mamba.proj_bias = config.flag_or("use_bias", false) ? Presence::kRequired : Presence::kAbsent;
  (void)config.choice<bool>("hidden_act", "silu", {{"silu", true}});
  (void)config.count_or("time_step_rank", 0);  // of the first generation; not used
  spec.final_norm = norm;
  for (LayerSpec& layer : spec.layers) layer.sublayers = {sequential("attn", norm, mamba)};
}

Dialect hf() {
  return {.rows = {{{"embed"}, {"embeddings", "embedding"}},
                   {{"final_norm"}, {"norm_f"}},
                   {{"layers.*.attn.norm"}, {"layers.*.norm"}},
                   {{"layers.*.attn.in"}, {"layers.*.mixer.in_proj"}},
                   {{"layers.*.attn.conv"}, {"layers.*.mixer.conv1d"}},
                   {{"layers.*.attn.x_proj"}, {"layers.*.mixer.x_proj"}},
                   {{"layers.*.attn.dt_proj"}, {"layers.*.mixer.dt_proj"}},
                   {{"layers.*.attn.dt_bias"}, {"layers.*.mixer.dt_bias"}},
                   {{"layers.*.attn.decay"}, {"layers.*.mixer.A_log"}, Transform::kNegExp},
                   {{"layers.*.attn.d"}, {"layers.*.mixer.D"}},
                   {{"layers.*.attn.o_norm"}, {"layers.*.mixer.norm"}},
                   {{"layers.*.attn.o"}, {"layers.*.mixer.out_proj"}}},
          .prefixes = {"backbone."},
          .ignored = {}};
}

}  // namespace

const Architecture& mamba_architecture() {
  static const Architecture architecture = {.family = "mamba",
                                            .hf_names = {"MambaForCausalLM", "mamba"},
                                            .gguf_names = {},
                                            .build = build,
                                            .hf = hf(),
                                            .gguf = {}};
  return architecture;
}

const Architecture& falcon_mamba_architecture() {
  static const Architecture architecture = {.family = "falcon_mamba",
                                            .hf_names = {"FalconMambaForCausalLM", "falcon_mamba"},
                                            .gguf_names = {},
                                            .build = build_falcon,
                                            .hf = hf(),
                                            .gguf = {}};
  return architecture;
}

const Architecture& mamba2_architecture() {
  static const Architecture architecture = {.family = "mamba2",
                                            .hf_names = {"Mamba2ForCausalLM", "mamba2"},
                                            .gguf_names = {},
                                            .build = build_mamba2,
                                            .hf = hf(),
                                            .gguf = {}};
  return architecture;
}

}  // namespace tessera
