// Mamba and Falcon-Mamba (the same with weightless RMSNorm on dt, B and C), and Mamba-2: one block a layer, no feed-forward.
#include "arch/families.h"
#include "arch/state_space.h"

namespace tessera {
namespace {

// The norm before each block; GGUF files have its eps under another name, and sizes of parts that these models lack.
NormSpec read_norm(ConfigReader& config) {
  NormSpec norm;
  norm.eps = config.number_or(config.is_gguf() ? "rms_norm_eps" : "layer_norm_eps", 1e-5);
  (void)config.choice<bool>("hidden_act", "silu", {{"silu", true}});
  return norm;
}

void add_layers(ModelSpec& spec, const NormSpec& norm, const Block& block) {
  spec.final_norm = norm;
  for (LayerSpec& layer : spec.layers) layer.sublayers = {sequential("attn", norm, block)};
}

void build_mamba(ConfigReader& config, ModelSpec& spec, bool parameter_norm) {
  read_common(config, spec, {.tied = true, .context = 1048576});
  const double expand = config.number_or("expand", 2.0);
  const char* width = config.is_gguf() ? "inner_size" : "intermediate_size";
  MambaSpec mamba = read_mamba(
      config, spec, config.size_or(width, static_cast<int64_t>(expand * static_cast<double>(spec.hidden))));
  mamba.proj_bias = config.presence_or("use_bias", false);
  if (config.flag_or("dt_b_c_rms", parameter_norm)) {
    mamba.parameter_norm = NormSpec{};
    mamba.parameter_norm->eps = config.number_or("mixer_rms_eps", 1e-6);
    mamba.parameter_norm->gain = Presence::kAbsent;
  }
  add_layers(spec, read_norm(config), mamba);
}

void build(ConfigReader& config, ModelSpec& spec, Dialect&) {
  build_mamba(config, spec, false);
}
void build_falcon(ConfigReader& config, ModelSpec& spec, Dialect&) {
  build_mamba(config, spec, true);
}

void build_mamba2(ConfigReader& config, ModelSpec& spec, Dialect&) {
  read_common(config, spec, {.context = 1048576});
  const NormSpec norm = read_norm(config);
  Mamba2Spec mamba = read_mamba2(config, spec, norm);
  mamba.proj_bias = config.presence_or("use_bias", false);
  (void)config.raw("time_step_rank");  // in a config: of the first generation, not used
  add_layers(spec, norm, mamba);
}

Dialect hf() {
  Dialect dialect = {.rows = {{{"embed"}, {"embeddings", "embedding"}},
                              {{"final_norm"}, {"norm_f"}},
                              {{"layers.*.attn.norm"}, {"layers.*.norm"}}},
                     .prefixes = {"backbone."}};
  add_state_space_rows(dialect, "attn", "mixer");
  return dialect;
}

}  // namespace

const Architecture& mamba_architecture() {
  static const Architecture architecture = {.family = "mamba",
                                            .hf_names = {"MambaForCausalLM", "mamba"},
                                            .gguf_names = {"mamba"},
                                            .build = build,
                                            .blocks = {"selective scan"},
                                            .hf = hf()};
  return architecture;
}

const Architecture& falcon_mamba_architecture() {
  static const Architecture architecture = {.family = "falcon_mamba",
                                            .hf_names = {"FalconMambaForCausalLM", "falcon_mamba"},
                                            .build = build_falcon,
                                            .blocks = {"selective scan"},
                                            .hf = hf()};
  return architecture;
}

const Architecture& mamba2_architecture() {
  static const Architecture architecture = {.family = "mamba2",
                                            .hf_names = {"Mamba2ForCausalLM", "mamba2"},
                                            .gguf_names = {"mamba2"},
                                            .build = build_mamba2,
                                            .blocks = {"state space by heads"},
                                            .hf = hf()};
  return architecture;
}

}  // namespace tessera
