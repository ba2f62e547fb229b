// See rope_config.h. Formulas of the attention factor: YaRN (arXiv 2309.00071, section 3.4) and LongRoPE
// (2402.13753), with the two mscale exponents that some checkpoints add to the former.
#include "model/rope_config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace tessera {
namespace {

// What may stand inside rope_parameters or rope_scaling; anything else would be dropped silently.
constexpr std::string_view kKnownKeys[] = {"rope_type",
                                           "type",
                                           "rope_theta",
                                           "partial_rotary_factor",
                                           "factor",
                                           "original_max_position_embeddings",
                                           "low_freq_factor",
                                           "high_freq_factor",
                                           "beta_fast",
                                           "beta_slow",
                                           "truncate",
                                           "attention_factor",
                                           "mscale",
                                           "mscale_all_dim",
                                           "short_factor",
                                           "long_factor",
                                           "mrope_section",
                                           "mrope_interleaved",
                                           "llama_4_scaling_beta",
                                           "yarn_log_multiplier",
                                           "finetuned",
                                           "alpha",
                                           "max_position_embeddings"};

double yarn_magnitude(double factor, double mscale) {
  return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

class RopeReader {
 public:
  RopeReader(ConfigReader& config, int64_t head_dim, const RopeDefaults& defaults,
             std::string_view layer_type)
      : config_(config), head_dim_(head_dim), defaults_(defaults), layer_type_(layer_type) {}

  RopeResult read() {
    find_object();
    RopeSpec& rope = result_.rope;
    rope.layout = defaults_.layout;
    rope.head_dim = head_dim_;
    rope.theta = read_theta();
    double fraction = config_.has("partial_rotary_factor") ? config_.number_or("partial_rotary_factor", 1.0)
                                                           : defaults_.fraction;
    if (object_ != nullptr && json_find(*object_, "partial_rotary_factor") != nullptr)
      fraction = number("partial_rotary_factor", fraction);
    const std::string type = read_type();
    rope.dim = static_cast<int64_t>(std::floor(fraction * static_cast<double>(head_dim_)));
    const bool local = layer_type_ == "sliding_attention" && config_.has("rotary_dim_local");
    if (local || config_.has("rotary_dim"))
      rope.dim = config_.size_or(local ? "rotary_dim_local" : "rotary_dim", rope.dim);
    if (type == "proportional") {  // every pair of the head has a place in the table; those past the fraction
                                   // do not turn
      rope.rotated_fraction = fraction;
      rope.dim = head_dim_;
    }
    if (rope.dim < 2 || rope.dim % 2 != 0 || rope.dim > head_dim_ || rope.theta <= 0)
      config_.refuse(
          fraction == 1.0 ? "head_dim" : "partial_rotary_factor", std::to_string(rope.dim),
          "an even number of rotated values, from 2 to the head width " + std::to_string(head_dim_));
    (void)config_.has("original_max_position_embeddings");  // says nothing without a scaling
    read_scaling(type);
    read_sections();
    if (object_ != nullptr && json_find(*object_, "llama_4_scaling_beta") != nullptr) {
      result_.query_scale_beta = number("llama_4_scaling_beta", 0.0);
      result_.query_scale_context = original_context();
    }
    return result_;
  }

 private:
  // rope_parameters (or its entry for the layer type), else rope_scaling; both spellings may not contradict
  // each other.
  void find_object() {
    const Json* parameters = config_.object("rope_parameters");
    const Json* scaling = config_.object("rope_scaling");
    where_ = parameters != nullptr ? "rope_parameters" : "rope_scaling";
    if (parameters != nullptr) {
      nested_ = json_find(*parameters, "full_attention") != nullptr ||
                json_find(*parameters, "sliding_attention") != nullptr;
      if (nested_) {
        const std::string type(layer_type_.empty() ? "full_attention" : layer_type_);
        object_ = json_find(*parameters, type);
        where_ += "." + type;
        if (object_ == nullptr || !object_->is_object())
          config_.refuse("rope_parameters", "none", "an entry for " + type);
        if (object_ != nullptr && !object_->is_object()) object_ = nullptr;
      } else {
        object_ = parameters;
      }
    } else if (layer_type_ != "sliding_attention") {
      object_ = scaling;  // a flat rope_scaling stretches the global layers only
    }
    if (object_ == nullptr) return;
    for (const auto& [key, value] : object_->items()) {
      if (value.is_null()) continue;
      if (std::find(std::begin(kKnownKeys), std::end(kKnownKeys), key) == std::end(kKnownKeys))
        config_.refuse(
            where_.substr(0, where_.find('.')) == "rope_parameters" ? "rope_parameters" : "rope_scaling", key,
            "only keys that are understood");
    }
  }

  double number(std::string_view key, std::optional<double> fallback) {
    return object_ == nullptr ? fallback.value_or(1.0) : config_.number_in(*object_, where_, key, fallback);
  }

  double read_theta() {
    const double flat =
        config_.has("rope_theta") ? config_.number_or("rope_theta", defaults_.theta) : defaults_.theta;
    // The nested theta belongs to this layer type and wins; the flat local one next.
    if (object_ != nullptr && json_find(*object_, "rope_theta") != nullptr) return number("rope_theta", flat);
    const bool has_local = config_.has("rope_local_base_freq");
    if (!nested_ && layer_type_ == "sliding_attention" && (has_local || defaults_.local_theta > 0))
      return config_.number_or("rope_local_base_freq", defaults_.local_theta);
    if (!config_.has("rope_theta"))
      (void)config_.number_or("rope_theta", defaults_.theta);  // noted among the defaults
    return flat;
  }

  std::string read_type() {
    if (config_.has_tensor("rope_factors_long.weight")) return "longrope";  // a GGUF file says it only so
    if (object_ == nullptr) return "default";
    for (const char* key : {"rope_type", "type"}) {
      const Json* value = json_find(*object_, key);
      if (value != nullptr && value->is_string()) return value->get<std::string>();
    }
    if (json_find(*object_, "factor") != nullptr)
      config_.refuse("rope_scaling", "no rope_type", "a rope_type beside factor");
    return "default";
  }

  int64_t original_context() {
    const auto fallback = static_cast<double>(config_.has("original_max_position_embeddings")
                                                  ? config_.size_or("original_max_position_embeddings", 1)
                                                  : config_.size_or("max_position_embeddings", 1));
    return std::max<int64_t>(1, static_cast<int64_t>(number("original_max_position_embeddings", fallback)));
  }

  std::vector<float> factor_list(const char* key) {
    std::vector<float> values;
    const Json* list = json_find(*object_, key);
    if (list != nullptr && list->is_array())
      for (const Json& item : *list)
        if (item.is_number() && std::isfinite(item.get<double>()) && item.get<double>() > 0)
          values.push_back(item.get<float>());
    if (static_cast<int64_t>(values.size()) != result_.rope.dim / 2)
      config_.refuse("rope_scaling", std::to_string(values.size()) + " values in " + key,
                     std::to_string(result_.rope.dim / 2) + " positive numbers, one a pair");
    return values;
  }

  void read_scaling(const std::string& type) {
    RopeSpec& rope = result_.rope;
    if (type == "default" || type == "mrope") return;
    rope.original_context = original_context();
    if (type == "proportional") {
      rope.scaling = RopeScaling::kProportional;
      rope.factor = number("factor", 1.0);
    } else if (type == "linear") {
      rope.scaling = RopeScaling::kLinear;
      rope.factor = number("factor", std::nullopt);
    } else if (type == "llama3") {
      rope.scaling = RopeScaling::kWavelengthRamp;
      rope.factor = number("factor", std::nullopt);
      rope.low_freq_factor = number("low_freq_factor", std::nullopt);
      rope.high_freq_factor = number("high_freq_factor", std::nullopt);
      if (rope.high_freq_factor <= rope.low_freq_factor)
        config_.refuse("rope_scaling", std::to_string(rope.high_freq_factor),
                       "high_freq_factor above low_freq_factor");
    } else if (type == "dynamic" && number("alpha", 0.0) != 0.0) {
      // A fixed alpha in place of the length: the base grows once and for all.
      const auto width = static_cast<double>(rope.dim);
      rope.theta *= std::pow(number("alpha", 1.0), width / (width - 2.0));
      if (rope.dim <= 2 || !(rope.theta > 0))
        config_.refuse("rope_scaling", std::to_string(number("alpha", 1.0)), "a positive alpha");
    } else if (type == "dynamic") {
      rope.scaling = RopeScaling::kDynamic;
      rope.factor = number("factor", 1.0);
    } else if (type == "yarn") {
      read_yarn();
    } else if (type == "longrope" || type == "su") {
      read_long_rope();
    } else {
      config_.refuse("rope_scaling", type,
                     "rope_type default, linear, dynamic, llama3, yarn, longrope, mrope or proportional");
    }
    if (rope.factor <= 0) config_.refuse("rope_scaling", std::to_string(rope.factor), "a positive factor");
  }

  void read_yarn() {
    RopeSpec& rope = result_.rope;
    rope.scaling = RopeScaling::kYarn;
    rope.factor = number("factor", std::nullopt);
    rope.beta_fast = number("beta_fast", 32.0);
    rope.beta_slow = number("beta_slow", 1.0);
    const Json* truncate = json_find(*object_, "truncate");
    rope.truncate =
        truncate == nullptr || !truncate->is_boolean() ? defaults_.truncate : truncate->get<bool>();
    const double mscale = number("mscale", 0.0);
    // A GGUF file names 0.1 * mscale_all_dim, and stands for equal exponents.
    const double multiplier = number("yarn_log_multiplier", 0.0);
    const double mscale_all = number("mscale_all_dim", multiplier * 10.0);
    rope.amplitude = yarn_magnitude(rope.factor, 1.0);
    if (mscale != 0.0 && mscale_all != 0.0)
      rope.amplitude = yarn_magnitude(rope.factor, mscale) / yarn_magnitude(rope.factor, mscale_all);
    if (multiplier != 0.0) rope.amplitude = 1.0;
    rope.amplitude = number("attention_factor", rope.amplitude);
    if (mscale_all != 0.0) {
      const double magnitude = yarn_magnitude(rope.factor, mscale_all);
      result_.softmax_scale = magnitude * magnitude;
    }
  }

  void read_long_rope() {
    RopeSpec& rope = result_.rope;
    rope.scaling = RopeScaling::kLongRope;
    if (!config_.has_tensor("rope_factors_long.weight")) {
      rope.short_factors = factor_list("short_factor");
      rope.long_factors = factor_list("long_factor");
    }
    const auto trained = static_cast<double>(config_.size_or("max_position_embeddings", 1));
    const auto original = static_cast<double>(rope.original_context);
    const double stretch = number("factor", trained / original);
    rope.amplitude = stretch <= 1.0 ? 1.0 : std::sqrt(1.0 + std::log(stretch) / std::log(original));
    rope.amplitude = number("attention_factor", rope.amplitude);
  }

  void read_sections() {
    RopeSpec& rope = result_.rope;
    rope.sections_interleaved = defaults_.sections_interleaved;
    if (object_ != nullptr) {
      if (const Json* list = json_find(*object_, "mrope_section"); list != nullptr && list->is_array())
        for (const Json& item : *list)
          if (item.is_number_integer()) rope.sections.push_back(item.get<int64_t>());
      const Json* interleaved = json_find(*object_, "mrope_interleaved");
      if (interleaved != nullptr && interleaved->is_boolean())
        rope.sections_interleaved = interleaved->get<bool>();
    }
    if (rope.sections.empty())  // GGUF: four numbers, of which the last belongs to no axis
      for (const double section : config_.numbers("rope_sections"))
        rope.sections.push_back(static_cast<int64_t>(section));
    if (rope.sections.size() == 4 && rope.sections.back() == 0) rope.sections.pop_back();
    if (rope.sections.empty()) {
      rope.sections_interleaved = false;
      return;
    }
    const int64_t width = rope.dim / 2;
    if (rope.sections_interleaved && rope.sections.size() == 3) clip_sections(width);
    int64_t pairs = 0;
    for (const int64_t section : rope.sections) pairs += section;
    if (rope.sections.size() != 3 || pairs != width)
      config_.refuse("rope_scaling", std::to_string(pairs) + " pairs in mrope_section",
                     "three sections of " + std::to_string(width) + " pairs in all");
  }

  // Interleaved, pair 3i + a belongs to axis a (1 or 2) while i is below that axis' section, and all others to axis 0: sections that
  // reach past the rotated pairs end with them, as in the reference.
  void clip_sections(int64_t width) {
    auto& sections = result_.rope.sections;
    for (const size_t axis : {size_t{1}, size_t{2}})
      sections[axis] = std::min(sections[axis], (width - static_cast<int64_t>(axis) + 2) / 3);
    if (sections[0] > width - sections[1] - sections[2]) sections[0] = width - sections[1] - sections[2];
  }

  ConfigReader& config_;
  int64_t head_dim_;
  RopeDefaults defaults_;
  std::string_view layer_type_;
  const Json* object_ = nullptr;
  std::string where_;
  bool nested_ = false;
  RopeResult result_;
};

}  // namespace

RopeResult read_rope(ConfigReader& config, int64_t head_dim, const RopeDefaults& defaults,
                     std::string_view layer_type) {
  return RopeReader(config, head_dim, defaults, layer_type).read();
}

}  // namespace tessera
