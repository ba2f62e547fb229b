// One super-block of 256 columns of a row in any quantised format, as the 8-bit products read it: codes + 128, a scale for every
// sixteen codes and a number that is added to their weights: weight = scale * code + min. A format is one function here; plain
// loops, which the compiler turns into vectors (where it is not told to unroll them first). Codes are centred, so that rounding the activations costs little; only what is
// left goes through the sums of unrounded activations.
#pragma once

#include "backend/cpu/kernel_table.h"
#include "backend/cpu/kernels/simd.h"

namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE {
namespace {

struct Super {
  alignas(64) uint8_t codes[256];
  alignas(64) float scales[16];
  alignas(64) float mins[16];
};

TESSERA_INLINE int byte_at(const std::byte* p) {
  return static_cast<int>(*p);
}

// Sixteen bytes of two codes: low halves first, then high ones.
TESSERA_INLINE void unpack_halves(const std::byte* p, int add, uint8_t* out) {
  for (int j = 0; j < 16; ++j) {
    out[j] = static_cast<uint8_t>((byte_at(p + j) & 15) + add);
    out[j + 16] = static_cast<uint8_t>((byte_at(p + j) >> 4) + add);
  }
}

// The same through a table of sixteen levels (+ 128).
TESSERA_INLINE void look_up_halves(const std::byte* p, const uint8_t* levels, uint8_t* out) {
#if defined(TESSERA_SIMD_AVX512) || defined(TESSERA_SIMD_AVX2)
  const __m128i packed = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m128i table = _mm_loadu_si128(reinterpret_cast<const __m128i*>(levels));
  const __m128i mask = _mm_set1_epi8(15);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_shuffle_epi8(table, _mm_and_si128(packed, mask)));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 16),
                   _mm_shuffle_epi8(table, _mm_and_si128(_mm_srli_epi16(packed, 4), mask)));
#else
  for (int j = 0; j < 16; ++j) {
    out[j] = levels[byte_at(p + j) & 15];
    out[j + 16] = levels[byte_at(p + j) >> 4];
  }
#endif
}

// formats/codebooks.h, + 128.
constexpr uint8_t kIQ4Codes[16] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};
constexpr uint8_t kFP4Codes[16] = {128, 129, 130, 131, 132, 134, 136, 140,
                                   128, 127, 126, 125, 124, 122, 120, 116};

TESSERA_INLINE float half_of_e8m0(int e) {
  const uint32_t bits = e < 2 ? 0x00200000u << e : static_cast<uint32_t>(e - 1) << 23;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}
// E4M3 without NaN.
TESSERA_INLINE float e4m3(int bits) {
  const int exponent = bits >> 3 & 15;
  const int mantissa = bits & 7;
  const float sign = (bits & 128) != 0 ? -1.0f : 1.0f;
  if (exponent == 0) return sign * static_cast<float>(mantissa) * 0x1p-9f;
  const uint32_t whole = static_cast<uint32_t>(exponent + 120) << 23 | static_cast<uint32_t>(mantissa) << 20;
  float value;
  std::memcpy(&value, &whole, 4);
  return sign * value;
}

// --- blocks of 32

struct SuperQ4_1 {
  static constexpr int kBytes = 8 * 20;
  static constexpr bool kMins = true;
  static void unpack(const std::byte* p, Super& out) {
    for (int b = 0; b < 8; ++b, p += 20) {
      unpack_halves(p + 4, 120, out.codes + 32 * b);
      const float d = load_half(p);
      out.scales[2 * b] = out.scales[2 * b + 1] = d;
      out.mins[2 * b] = out.mins[2 * b + 1] = load_half(p + 2) + 8 * d;
    }
  }
};

// Sets bit 4 of codes j where bit j of the word is set.
TESSERA_INLINE void add_fifth_bits(const std::byte* p, uint8_t* codes) {
  uint8_t bytes[4];
  std::memcpy(bytes, p, 4);
  TESSERA_UNROLL
  for (int i = 0; i < 4; ++i) {
    TESSERA_UNROLL
    for (int j = 0; j < 8; ++j)
      codes[8 * i + j] = static_cast<uint8_t>(codes[8 * i + j] + (bytes[i] >> j & 1) * 16);
  }
}

struct SuperQ5_0 {
  static constexpr int kBytes = 8 * 22;
  static constexpr bool kMins = false;
  static void unpack(const std::byte* p, Super& out) {
    for (int b = 0; b < 8; ++b, p += 22) {
      unpack_halves(p + 6, 112, out.codes + 32 * b);
      add_fifth_bits(p + 2, out.codes + 32 * b);
      out.scales[2 * b] = out.scales[2 * b + 1] = load_half(p);
    }
  }
};
struct SuperQ5_1 {
  static constexpr int kBytes = 8 * 24;
  static constexpr bool kMins = true;
  static void unpack(const std::byte* p, Super& out) {
    for (int b = 0; b < 8; ++b, p += 24) {
      unpack_halves(p + 8, 112, out.codes + 32 * b);
      add_fifth_bits(p + 4, out.codes + 32 * b);
      const float d = load_half(p);
      out.scales[2 * b] = out.scales[2 * b + 1] = d;
      out.mins[2 * b] = out.mins[2 * b + 1] = load_half(p + 2) + 16 * d;
    }
  }
};
struct SuperIQ4NL {
  static constexpr int kBytes = 8 * 18;
  static constexpr bool kMins = false;
  static void unpack(const std::byte* p, Super& out) {
    for (int b = 0; b < 8; ++b, p += 18) {
      look_up_halves(p + 2, kIQ4Codes, out.codes + 32 * b);
      out.scales[2 * b] = out.scales[2 * b + 1] = load_half(p);
    }
  }
};
struct SuperMXFP4 {
  static constexpr int kBytes = 8 * 17;
  static constexpr bool kMins = false;
  static void unpack(const std::byte* p, Super& out) {
    for (int b = 0; b < 8; ++b, p += 17) {
      look_up_halves(p + 1, kFP4Codes, out.codes + 32 * b);
      out.scales[2 * b] = out.scales[2 * b + 1] = half_of_e8m0(byte_at(p));
    }
  }
};
struct SuperNVFP4 {
  static constexpr int kBytes = 4 * 36;
  static constexpr bool kMins = false;
  static void unpack(const std::byte* p, Super& out) {
    for (int b = 0; b < 4; ++b, p += 36) {
      for (int g = 0; g < 4; ++g) {
        const int bits = byte_at(p + g) & 127;
        out.scales[4 * b + g] = bits == 127 ? 0.0f : 0.5f * e4m3(bits);
        uint8_t* codes = out.codes + 64 * b + 16 * g;
        for (int j = 0; j < 8; ++j) {
          codes[j] = kFP4Codes[byte_at(p + 4 + 8 * g + j) & 15];
          codes[j + 8] = kFP4Codes[byte_at(p + 4 + 8 * g + j) >> 4];
        }
      }
    }
  }
};

// --- super-blocks of 256

struct SuperIQ4XS {
  static constexpr int kBytes = 136;
  static constexpr bool kMins = false;
  static void unpack(const std::byte* p, Super& out) {
    const float d = load_half(p);
    uint16_t tops;
    std::memcpy(&tops, p + 2, 2);
    for (int b = 0; b < 8; ++b) {
      look_up_halves(p + 8 + 16 * b, kIQ4Codes, out.codes + 32 * b);
      const int low = byte_at(p + 4 + b / 2) >> (b % 2 * 4) & 15;
      const int scale = (low | (tops >> (2 * b) & 3) << 4) - 32;
      out.scales[2 * b] = out.scales[2 * b + 1] = d * static_cast<float>(scale);
    }
  }
};

// The eight 6-bit scales and minima of Q4_K and Q5_K as bytes.
TESSERA_INLINE void unpack_six_bits(const std::byte* p, uint8_t* scales, uint8_t* minima) {
  uint32_t w[3];
  std::memcpy(w, p, 12);
  const uint32_t s[2] = {w[0] & 0x3f3f3f3fu, (w[2] & 0x0f0f0f0fu) | (w[0] >> 2 & 0x30303030u)};
  const uint32_t m[2] = {w[1] & 0x3f3f3f3fu, (w[2] >> 4 & 0x0f0f0f0fu) | (w[1] >> 2 & 0x30303030u)};
  std::memcpy(scales, s, 8);
  std::memcpy(minima, m, 8);
}

TESSERA_INLINE void scale_pairs(const std::byte* p, int middle, Super& out) {
  const float d = load_half(p);
  const float dmin = load_half(p + 2);
  uint8_t scales[8];
  uint8_t minima[8];
  unpack_six_bits(p + 4, scales, minima);
  for (int i = 0; i < 16; ++i) {
    const float scale = d * static_cast<float>(scales[i / 2]);
    out.scales[i] = scale;
    out.mins[i] = static_cast<float>(middle) * scale - dmin * static_cast<float>(minima[i / 2]);
  }
}

struct SuperQ4K {
  static constexpr int kBytes = 144;
  static constexpr bool kMins = true;
  static void unpack(const std::byte* p, Super& out) {
    scale_pairs(p, 8, out);
    for (int g = 0; g < 4; ++g) {
      const std::byte* packed = p + 16 + 32 * g;
      uint8_t* codes = out.codes + 64 * g;
      for (int j = 0; j < 32; ++j) codes[j] = static_cast<uint8_t>((byte_at(packed + j) & 15) + 120);
      for (int j = 0; j < 32; ++j) codes[j + 32] = static_cast<uint8_t>((byte_at(packed + j) >> 4) + 120);
    }
  }
};
struct SuperQ5K {
  static constexpr int kBytes = 176;
  static constexpr bool kMins = true;
  static void unpack(const std::byte* p, Super& out) {
    scale_pairs(p, 16, out);
    TESSERA_UNROLL
    for (int g = 0; g < 8; ++g) {
      const std::byte* packed = p + 48 + g / 2 * 32;
      uint8_t* codes = out.codes + 32 * g;
      for (int j = 0; j < 32; ++j) {
        const int low = byte_at(packed + j) >> (g % 2 * 4) & 15;
        codes[j] = static_cast<uint8_t>((low | (byte_at(p + 16 + j) >> g & 1) << 4) + 112);
      }
    }
  }
};
struct SuperQ6K {
  static constexpr int kBytes = 210;
  static constexpr bool kMins = false;
  static void unpack(const std::byte* p, Super& out) {
    const float d = load_half(p + 208);
    for (int i = 0; i < 16; ++i) out.scales[i] = d * static_cast<float>(static_cast<int8_t>(p[192 + i]));
    TESSERA_UNROLL
    for (int half = 0; half < 2; ++half) {
      TESSERA_UNROLL
      for (int quarter = 0; quarter < 4; ++quarter) {
        const std::byte* low = p + half * 64 + quarter % 2 * 32;
        const std::byte* top = p + 128 + half * 32;
        uint8_t* codes = out.codes + 128 * half + 32 * quarter;
        for (int j = 0; j < 32; ++j)
          codes[j] = static_cast<uint8_t>(
              ((byte_at(low + j) >> (quarter / 2 * 4) & 15) | (byte_at(top + j) >> (2 * quarter) & 3) << 4) +
              96);
      }
    }
  }
};

// 2-bit codes of Q2_K and Q3_K and TQ2_0: bits 2 n of 32 bytes are 32 n .. 32 n + 31 of 128 values.
TESSERA_INLINE void unpack_quarters(const std::byte* p, int add, uint8_t* codes) {
  TESSERA_UNROLL
  for (int half = 0; half < 2; ++half) {
    TESSERA_UNROLL
    for (int n = 0; n < 4; ++n) {
      for (int j = 0; j < 32; ++j)
        codes[128 * half + 32 * n + j] =
            static_cast<uint8_t>((byte_at(p + 32 * half + j) >> (2 * n) & 3) + add);
    }
  }
}

struct SuperQ2K {
  static constexpr int kBytes = 84;
  static constexpr bool kMins = true;
  static void unpack(const std::byte* p, Super& out) {
    const float d = load_half(p + 80);
    const float dmin = load_half(p + 82);
    for (int i = 0; i < 16; ++i) {
      const float scale = d * static_cast<float>(byte_at(p + i) & 15);
      out.scales[i] = scale;
      out.mins[i] = scale - dmin * static_cast<float>(byte_at(p + i) >> 4);
    }
    unpack_quarters(p + 16, 127, out.codes);
  }
};
struct SuperQ3K {
  static constexpr int kBytes = 110;
  static constexpr bool kMins = false;
  static void unpack(const std::byte* p, Super& out) {
    const float d = load_half(p + 108);
    uint32_t w[3];
    std::memcpy(w, p + 96, 12);
    uint32_t s[4];
    for (int i = 0; i < 4; ++i) {
      const uint32_t low = w[i % 2] >> (i / 2 * 4) & 0x0f0f0f0fu;
      s[i] = low | (w[2] >> (2 * i) & 0x03030303u) << 4;
    }
    uint8_t scales[16];
    std::memcpy(scales, s, 16);
    for (int i = 0; i < 16; ++i) out.scales[i] = d * static_cast<float>(scales[i] - 32);
    unpack_quarters(p + 32, 124, out.codes);
    TESSERA_UNROLL
    for (int g = 0; g < 8; ++g) {
      for (int j = 0; j < 32; ++j)
        out.codes[32 * g + j] = static_cast<uint8_t>(out.codes[32 * g + j] + (byte_at(p + j) >> g & 1) * 4);
    }
  }
};
struct SuperTQ2_0 {
  static constexpr int kBytes = 66;
  static constexpr bool kMins = false;
  static void unpack(const std::byte* p, Super& out) {
    const float d = load_half(p + 64);
    for (float& scale : out.scales) scale = d;
    unpack_quarters(p, 127, out.codes);
  }
};

// --- rows

// The row of a block format.
template <class Block>
class BlockRow {
 public:
  static constexpr bool kMins = Block::kMins;
  BlockRow(const std::byte* weights, int64_t stride, const GroupedPlanes&, int64_t row, int64_t)
      : weights_(weights + row * stride) {}
  // Super-block `index`, of which `blocks` blocks of 32 are there.
  TESSERA_INLINE void unpack(const BlockRow& row, int64_t index, int64_t blocks, Super& out) {
    const std::byte* p = row.weights_ + index * Block::kBytes;
    if (blocks >= 8) return Block::unpack(p, out);
    std::byte copy[Block::kBytes] = {};
    std::memcpy(copy, p, static_cast<size_t>(blocks * Block::kBytes / 8));
    Block::unpack(copy, out);
  }

 private:
  const std::byte* weights_;
};

TESSERA_INLINE float scale_at(DType element, const std::byte* plane, int64_t index) {
  switch (element) {
    case DType::kF16:
      return load_half(plane + 2 * index);
    case DType::kBF16: {
      uint16_t bits;
      std::memcpy(&bits, plane + 2 * index, 2);
      const uint32_t wide = static_cast<uint32_t>(bits) << 16;
      float value;
      std::memcpy(&value, &wide, 4);
      return value;
    }
    case DType::kF8E8M0:
      return 2 * half_of_e8m0(byte_at(plane + index));
    case DType::kF8E4M3:
      return e4m3(byte_at(plane + index));
    default: {
      float value;
      std::memcpy(&value, plane + 4 * index, 4);
      return value;
    }
  }
}

// 256 codes of `bits` bits along K, each + add.
TESSERA_INLINE void unpack_stream(const std::byte* p, int bits, int add, uint8_t* codes) {
  if (bits == 4) {
    TESSERA_UNROLL
    for (int i = 0; i < 8; ++i) {
#if defined(TESSERA_SIMD_AVX512) || defined(TESSERA_SIMD_AVX2)
      const __m128i packed = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16 * i));
      const __m128i mask = _mm_set1_epi8(15);
      const __m128i plus = _mm_set1_epi8(static_cast<char>(add));
      const __m128i low = _mm_and_si128(packed, mask);
      const __m128i high = _mm_and_si128(_mm_srli_epi16(packed, 4), mask);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(codes + 32 * i),
                       _mm_add_epi8(_mm_unpacklo_epi8(low, high), plus));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(codes + 32 * i + 16),
                       _mm_add_epi8(_mm_unpackhi_epi8(low, high), plus));
#else
      for (int j = 0; j < 16; ++j) {
        codes[32 * i + 2 * j] = static_cast<uint8_t>((byte_at(p + 16 * i + j) & 15) + add);
        codes[32 * i + 2 * j + 1] = static_cast<uint8_t>((byte_at(p + 16 * i + j) >> 4) + add);
      }
#endif
    }
    return;
  }
  if (bits == 8) {
    for (int i = 0; i < 256; ++i) codes[i] = static_cast<uint8_t>(byte_at(p + i) + add);
    return;
  }
  // Eight codes lie in `bits` bytes; they are spread over the bytes of a word by shifts and masks.
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  const uint64_t plus = 0x0101010101010101u * static_cast<uint64_t>(add);
  for (int i = 0; i < 32; ++i) {
    uint64_t eight = 0;
    std::memcpy(&eight, p + i * bits, static_cast<size_t>(bits));
    uint64_t spread = 0;
    TESSERA_UNROLL
    for (int j = 0; j < 8; ++j) spread |= (eight >> (bits * j) & mask) << (8 * j);
    spread += plus;
    std::memcpy(codes + 8 * i, &spread, 8);
  }
}

// Sixteen scales of a super-block, of groups of a power of two from 16 on or of the whole row.
TESSERA_INLINE void spread_scales(const Format& format, const std::byte* plane, int64_t index,
                                  int64_t columns, float factor, float* out) {
  for (int i = 0; i < 16;) {
    const int64_t column = 256 * index + 16 * i;
    if (column >= columns) {
      out[i++] = 0;
      continue;
    }
    const int64_t group = format.group == 0 ? 0 : column / format.group;
    const float scale = factor * scale_at(format.element, plane, group);
    const int64_t end = format.group == 0 ? columns : (group + 1) * format.group;
    do {
      out[i++] = scale;
    } while (i < 16 && 256 * index + 16 * i < end);
  }
}

// The row of a grouped format. Codes are centred at 2^(bits - 1).
template <FormatKind kKind>
class GroupedRowOf {
 public:
  static constexpr bool kMins =
      kKind == FormatKind::kMlxAffine || kKind == FormatKind::kMlcGroup || kKind == FormatKind::kZeroGroup;
  GroupedRowOf(const std::byte* weights, int64_t stride, const GroupedPlanes& grouped, int64_t row,
               int64_t columns)
      : format_(grouped.format), weights_(weights + row * stride), columns_(columns) {
    for (int i = 0; i < 2; ++i)
      planes_[i] = grouped.planes[i] == nullptr ? nullptr : grouped.planes[i] + row * grouped.strides[i];
  }
  TESSERA_INLINE void unpack(const GroupedRowOf& row, int64_t index, int64_t blocks, Super& out) {
    const Format format = row.format_;
    const int bits = format.bits;
    const std::byte* p = row.weights_ + index * 32 * bits;
    std::byte copy[256];
    if (blocks < 8) {
      std::memset(copy, 0, sizeof(copy));
      std::memcpy(copy, p, static_cast<size_t>(blocks * 4 * bits));
      p = copy;
    }
    float factor = 1;
    if (kKind == FormatKind::kFloat4Group) {
      for (int i = 0; i < 8; ++i) look_up_pairs(p + 16 * i, out.codes + 32 * i);
      factor = 0.5f;
      if (row.planes_[1] != nullptr) {
        float whole;
        std::memcpy(&whole, row.planes_[1], 4);
        factor *= whole;
      }
    } else {
      const int middle = kKind == FormatKind::kInt8Group ? 0 : 1 << (bits - 1);
      unpack_stream(p, bits, 128 - middle, out.codes);
    }
    spread_scales(format, row.planes_[0], index, row.columns_, factor, out.scales);
    if (kKind == FormatKind::kMlxAffine) {
      spread_scales(format, row.planes_[1], index, row.columns_, 1, out.mins);
      const float middle = static_cast<float>(1 << (bits - 1));
      for (int i = 0; i < 16; ++i) out.mins[i] += middle * out.scales[i];
    } else if (kKind == FormatKind::kMlcGroup) {
      for (int i = 0; i < 16; ++i) out.mins[i] = out.scales[i];
    } else if (kKind == FormatKind::kZeroGroup) {
      for (int i = 0; i < 16; ++i) {
        const int64_t column = 256 * index + 16 * i;
        uint16_t zero = 0;
        if (column < row.columns_)
          std::memcpy(&zero, row.planes_[1] + 2 * (format.group == 0 ? 0 : column / format.group), 2);
        out.mins[i] = static_cast<float>((1 << (bits - 1)) - zero) * out.scales[i];
      }
    }
  }

 private:
  static void look_up_pairs(const std::byte* p, uint8_t* out) {
    uint8_t halves[32];
    look_up_halves(p, kFP4Codes, halves);
    for (int j = 0; j < 16; ++j) {
      out[2 * j] = halves[j];
      out[2 * j + 1] = halves[j + 16];
    }
  }

  Format format_;
  const std::byte* weights_;
  const std::byte* planes_[2];
  int64_t columns_;
};

}  // namespace
}  // namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE
