// What the files of this folder give to the table in format_info.cpp: the bytes of one block, decoding and
// encoding per format. Every decode function takes `count` values, a multiple of the block, and follows the
// order of operations of the format's definition in float32, so that results are equal bit for bit on every
// machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/half.h"

namespace tessera {

inline constexpr int kSmallBlock = 32;   // values per block of the older formats
inline constexpr int kSuperBlock = 256;  // values per block of the K, IQ and ternary formats

// Unaligned little-endian loads and stores (the readers refuse to build on a big-endian machine).
template <class T>
[[nodiscard]] T load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}
template <class T>
void store(std::byte* bytes, T value) {
  std::memcpy(bytes, &value, sizeof(T));
}
[[nodiscard]] inline float load_half(const std::byte* bytes) {
  return to_float(Half{load<uint16_t>(bytes)});
}
inline void store_half(std::byte* bytes, float value) {
  store(bytes, to_half(value).bits);
}
[[nodiscard]] inline int load_u8(const std::byte* bytes) {
  return std::to_integer<int>(*bytes);
}
[[nodiscard]] inline int load_i8(const std::byte* bytes) {
  return std::to_integer<int8_t>(*bytes);
}

// small_blocks.cpp
inline constexpr int kQ4_0Bytes = 18;
inline constexpr int kQ4_1Bytes = 20;
inline constexpr int kQ5_0Bytes = 22;
inline constexpr int kQ5_1Bytes = 24;
inline constexpr int kQ8_0Bytes = 34;
void decode_q4_0(const std::byte* blocks, int64_t count, float* values);
void decode_q4_1(const std::byte* blocks, int64_t count, float* values);
void decode_q5_0(const std::byte* blocks, int64_t count, float* values);
void decode_q5_1(const std::byte* blocks, int64_t count, float* values);
void decode_q8_0(const std::byte* blocks, int64_t count, float* values);
void encode_q4_0(const float* values, const float* importance, int64_t count, std::byte* blocks);
void encode_q4_1(const float* values, const float* importance, int64_t count, std::byte* blocks);
void encode_q5_0(const float* values, const float* importance, int64_t count, std::byte* blocks);
void encode_q5_1(const float* values, const float* importance, int64_t count, std::byte* blocks);
void encode_q8_0(const float* values, const float* importance, int64_t count, std::byte* blocks);

// k_blocks.cpp, k_encode.cpp
inline constexpr int kQ2KBytes = 84;
inline constexpr int kQ3KBytes = 110;
inline constexpr int kQ4KBytes = 144;
inline constexpr int kQ5KBytes = 176;
inline constexpr int kQ6KBytes = 210;
void decode_q2_k(const std::byte* blocks, int64_t count, float* values);
void decode_q3_k(const std::byte* blocks, int64_t count, float* values);
void decode_q4_k(const std::byte* blocks, int64_t count, float* values);
void decode_q5_k(const std::byte* blocks, int64_t count, float* values);
void decode_q6_k(const std::byte* blocks, int64_t count, float* values);
void encode_q2_k(const float* values, const float* importance, int64_t count, std::byte* blocks);
void encode_q3_k(const float* values, const float* importance, int64_t count, std::byte* blocks);
void encode_q4_k(const float* values, const float* importance, int64_t count, std::byte* blocks);
void encode_q5_k(const float* values, const float* importance, int64_t count, std::byte* blocks);
void encode_q6_k(const float* values, const float* importance, int64_t count, std::byte* blocks);

// lattice_blocks.cpp, lattice_encode.cpp: blocks that index a table of points
inline constexpr int kIQ1SBytes = 50;
inline constexpr int kIQ1MBytes = 56;
inline constexpr int kIQ2XXSBytes = 66;
inline constexpr int kIQ2XSBytes = 74;
inline constexpr int kIQ2SBytes = 82;
inline constexpr int kIQ3XXSBytes = 98;
inline constexpr int kIQ3SBytes = 110;
void decode_iq1_s(const std::byte* blocks, int64_t count, float* values);
void decode_iq1_m(const std::byte* blocks, int64_t count, float* values);
void decode_iq2_xxs(const std::byte* blocks, int64_t count, float* values);
void decode_iq2_xs(const std::byte* blocks, int64_t count, float* values);
void decode_iq2_s(const std::byte* blocks, int64_t count, float* values);
void decode_iq3_xxs(const std::byte* blocks, int64_t count, float* values);
void decode_iq3_s(const std::byte* blocks, int64_t count, float* values);
void encode_iq2_xxs(const float* values, const float* importance, int64_t count, std::byte* blocks);
void encode_iq2_xs(const float* values, const float* importance, int64_t count, std::byte* blocks);
void encode_iq2_s(const float* values, const float* importance, int64_t count, std::byte* blocks);
void encode_iq3_xxs(const float* values, const float* importance, int64_t count, std::byte* blocks);
void encode_iq3_s(const float* values, const float* importance, int64_t count, std::byte* blocks);

// codebook_blocks.cpp: 4-bit codes into sixteen levels
inline constexpr int kIQ4NLBytes = 18;
inline constexpr int kIQ4XSBytes = 136;
inline constexpr int kMXFP4Bytes = 17;
inline constexpr int kNVFP4Bytes = 36;
void decode_iq4_nl(const std::byte* blocks, int64_t count, float* values);
void decode_iq4_xs(const std::byte* blocks, int64_t count, float* values);
void decode_mxfp4(const std::byte* blocks, int64_t count, float* values);
void decode_nvfp4(const std::byte* blocks, int64_t count, float* values);
void encode_iq4_nl(const float* values, const float* importance, int64_t count, std::byte* blocks);
void encode_iq4_xs(const float* values, const float* importance, int64_t count, std::byte* blocks);
void encode_mxfp4(const float* values, const float* importance, int64_t count, std::byte* blocks);

// ternary_blocks.cpp
inline constexpr int kTQ1_0Bytes = 54;
inline constexpr int kTQ2_0Bytes = 66;
void decode_tq1_0(const std::byte* blocks, int64_t count, float* values);
void decode_tq2_0(const std::byte* blocks, int64_t count, float* values);
void encode_tq1_0(const float* values, const float* importance, int64_t count, std::byte* blocks);
void encode_tq2_0(const float* values, const float* importance, int64_t count, std::byte* blocks);

}  // namespace tessera
