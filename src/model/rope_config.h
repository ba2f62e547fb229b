// Reading rope parameters in either spelling: flat (rope_theta, rope_scaling, partial_rotary_factor,
// rope_local_base_freq) or nested (rope_parameters, one dict or one per layer type), and GGUF's keys.
#pragma once

#include <string_view>

#include "model/config_reader.h"
#include "model/rope.h"

namespace tessera {

struct RopeDefaults {
  double theta = 10000.0;
  double local_theta = 0;  // of "sliding_attention" layers where the config does not say; 0: as the others
  double fraction = 1.0;   // of the head that is rotated
  RopeLayout layout = RopeLayout::kHalfSplit;
  bool truncate = true;               // yarn's ramp, where the file does not say
  bool sections_interleaved = false;  // likewise: the axes of M-RoPE take turns
};

// What a scaling does beside the table: a factor on the softmax scale (yarn's mscale_all_dim), a scale of
// queries by position.
struct RopeResult {
  RopeSpec rope;
  double softmax_scale = 1.0;
  double query_scale_beta = 0.0;
  int64_t query_scale_context = 0;
};

// `layer_type` chooses among nested dicts ("full_attention", "sliding_attention"); "" where there is only
// one.
[[nodiscard]] RopeResult read_rope(ConfigReader& config, int64_t head_dim, const RopeDefaults& defaults,
                                   std::string_view layer_type = "");

}  // namespace tessera
