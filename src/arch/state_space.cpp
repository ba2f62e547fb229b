#include "arch/state_space.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace tessera {

MambaSpec read_mamba(ConfigReader& config, const ModelSpec& spec, int64_t inner) {
  MambaSpec mamba;
  mamba.inner = inner;
  mamba.state = config.size_or("state_size", 16);
  mamba.kernel = config.size_or("conv_kernel", 4);
  mamba.dt_rank = config.size_or("time_step_rank", (spec.hidden + 15) / 16);
  mamba.conv_bias = config.presence_or("use_conv_bias", true);
  return mamba;
}

Mamba2Spec read_mamba2(ConfigReader& config, const ModelSpec& spec, const NormSpec& norm) {
  Mamba2Spec mamba;
  if (config.is_gguf()) {  // heads stand under the name of the first generation's rank
    mamba.heads = config.size("time_step_rank");
    const int64_t inner = config.size("inner_size");
    config.require(inner % mamba.heads == 0, "inner_size",
                   "a multiple of the number of heads, " + std::to_string(mamba.heads));
    mamba.head_dim = std::max<int64_t>(1, inner / mamba.heads);
  } else {
    mamba.heads =
        config.has("mamba_n_heads") ? config.size("mamba_n_heads") : config.size("num_attention_heads");
    const auto expand = static_cast<double>(config.number_or("expand", 2.0));
    const auto inner = static_cast<int64_t>(expand * static_cast<double>(spec.hidden));
    const std::string key = config.has("mamba_d_head") ? "mamba_d_head" : "head_dim";
    const Json* width = config.raw(key);
    mamba.head_dim =
        width != nullptr && width->is_number() ? config.size(key) : std::max<int64_t>(1, inner / mamba.heads);
  }
  mamba.state = config.size_or("state_size", 128);
  mamba.groups = config.size_or("n_groups", 1);
  config.require(mamba.heads % mamba.groups == 0, "n_groups",
                 "a divisor of the number of heads, " + std::to_string(mamba.heads));
  mamba.kernel = config.size_or("conv_kernel", 4);
  mamba.conv_bias = config.presence_or("use_conv_bias", true);
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

void add_state_space_rows(Dialect& dialect, const std::string& block, const std::string& module) {
  const std::pair<const char*, const char*> names[] = {
      {"in", "in_proj"},         {"conv", "conv1d"},        {"x_proj", "x_proj"},
      {"dt_proj", "dt_proj"},    {"dt_bias", "dt_bias"},    {"dt_norm", "dt_layernorm"},
      {"b_norm", "b_layernorm"}, {"c_norm", "c_layernorm"}, {"d", "D"},
      {"o_norm", "norm"},        {"o", "out_proj"}};
  for (const auto& [slot, source] : names)
    dialect.rows.push_back({{"layers.*." + block + "." + slot}, {"layers.*." + module + "." + source}});
  dialect.rows.push_back(
      {{"layers.*." + block + ".decay"}, {"layers.*." + module + ".A_log"}, Transform::kNegExp});
}

}  // namespace tessera
