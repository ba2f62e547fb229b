#include "arch/state_space.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace tessera {

Mamba2Spec read_mamba2(ConfigReader& config, const ModelSpec& spec, const NormSpec& norm) {
  Mamba2Spec mamba;
  mamba.heads =
      config.has("mamba_n_heads") ? config.size("mamba_n_heads") : config.size("num_attention_heads");
  const auto expand = static_cast<double>(config.number_or("expand", 2.0));
  const auto inner = static_cast<int64_t>(expand * static_cast<double>(spec.hidden));
  const std::string key = config.has("mamba_d_head") ? "mamba_d_head" : "head_dim";
  const Json* width = config.raw(key);
  mamba.head_dim =
      width != nullptr && width->is_number() ? config.size(key) : std::max<int64_t>(1, inner / mamba.heads);
  mamba.state = config.size_or("state_size", 128);
  mamba.groups = config.size_or("n_groups", 1);
  mamba.kernel = config.size_or("conv_kernel", 4);
  mamba.conv_bias = config.flag_or("use_conv_bias", true) ? Presence::kRequired : Presence::kAbsent;
  mamba.proj_bias = config.presence_or("mamba_proj_bias", false);
  if (const Json* limits = config.raw("time_step_limit");
      limits != nullptr && limits->is_array() && limits->size() == 2) {
    if ((*limits)[0].is_number()) mamba.dt_min = (*limits)[0].get<double>();
    if ((*limits)[1].is_number() && std::isfinite((*limits)[1].get<double>()))
      mamba.dt_max = (*limits)[1].get<double>();
  }
  mamba.norm = norm;
  mamba.norm.group = std::max<int64_t>(1, mamba.inner() / mamba.groups);
  mamba.norm.gain_span = NormSpec::Gain::kPerRow;
  return mamba;
}

}  // namespace tessera
