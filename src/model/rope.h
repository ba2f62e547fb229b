// Rotary position embedding (Su et al., 2021) as data: which pairs are rotated, by which frequencies, and how
// a longer context was bought. The frequencies are computed here once, in float64 rounded to float32 as the
// reference does, for every backend.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera {

enum class RopeLayout : uint8_t {
  kHalfSplit,    // pairs (i, i + dim/2)
  kInterleaved,  // pairs (2i, 2i + 1)
};

enum class RopeScaling : uint8_t {
  kNone,
  kLinear,          // positions divided by factor
  kWavelengthRamp,  // long wavelengths divided by factor, short kept, a ramp between
  kYarn,            // Peng et al., 2023
  kDynamic,         // NTK: the base grows with the length once it exceeds the original context
  kLongRope,        // two lists of divisors, chosen by length (Ding et al., 2024)
  kProportional,    // the exponents run over the full head width, the unrotated tail has frequency 0
};

struct RopeSpec {
  RopeLayout layout = RopeLayout::kHalfSplit;
  int64_t dim = 0;       // values of a head that are rotated, from its start; even
  int64_t head_dim = 0;  // the whole head (kProportional)
  double theta = 10000.0;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1.0;
  int64_t original_context = 0;
  double low_freq_factor = 1.0;      // kWavelengthRamp
  double high_freq_factor = 4.0;     // kWavelengthRamp
  double beta_fast = 32.0;           // kYarn
  double beta_slow = 1.0;            // kYarn
  bool truncate = true;              // kYarn: floor and ceil of the ramp's ends
  double rotated_fraction = 1.0;     // kProportional
  std::vector<float> short_factors;  // kLongRope, [dim / 2]
  std::vector<float> long_factors;   // kLongRope, [dim / 2]
  double amplitude = 1.0;         // cos and sin are multiplied by it (yarn's and longrope's attention factor)
  std::vector<int64_t> sections;  // M-RoPE: pairs per axis (time, height, width); empty: one axis
  bool sections_interleaved = false;
  std::vector<float>
      divisors;  // [dim / 2], from a checkpoint that stores them (GGUF rope_freqs); empty: none

  // kLongRope: the config leaves both lists to tensors of the checkpoint, which the binder puts in.
  [[nodiscard]] bool factors_in_file() const {
    return scaling == RopeScaling::kLongRope && short_factors.empty() && long_factors.empty();
  }
  // True when the table depends on how long a sequence is at present (kDynamic, kLongRope).
  [[nodiscard]] bool depends_on_length() const;
  // 0 below the limit where the table changes for good, 1 above (kLongRope); for kDynamic every length above
  // it is its own table.
  [[nodiscard]] int64_t table_key(int64_t length) const;
  // [dim / 2] angles per position step, for a sequence of `length` positions in all.
  [[nodiscard]] std::vector<float> inverse_frequencies(int64_t length) const;

  friend bool operator==(const RopeSpec&, const RopeSpec&) = default;
};

}  // namespace tessera
