// Normalisation as data: root-mean-square (Zhang and Sennrich, 2019) or layer norm (Ba et al., 2016), over a
// whole row or over groups of it (heads). Converters that store gain - 1 are a matter of the dialect; a bound
// gain is always the factor itself.
#pragma once

#include <cstdint>

namespace tessera {

enum class NormKind : uint8_t { kRms, kLayer };
enum class Presence : uint8_t { kAbsent, kRequired, kIfPresent };

struct NormSpec {
  NormKind kind = NormKind::kRms;
  double eps = 1e-6;
  Presence gain = Presence::kRequired;
  Presence bias = Presence::kAbsent;
  // Values normalised together: 0 is the whole row; otherwise the row is a sequence of groups of this many
  // values.
  int64_t group = 0;
  // The gain has one entry per value of a group (heads share it), or one per value of the row.
  enum class Gain : uint8_t { kPerGroup, kPerRow } gain_span = Gain::kPerGroup;
};

}  // namespace tessera
