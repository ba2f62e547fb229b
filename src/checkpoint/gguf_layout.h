// Numbers of the GGUF file format, shared by reader and writer.
#pragma once

#include <cstdint>
#include <string_view>

namespace tessera {

inline constexpr uint32_t kGgufMagic = 0x46554747;  // the bytes "GGUF"
inline constexpr uint32_t kGgufVersion = 3;
inline constexpr uint64_t kGgufDefaultAlignment = 32;
inline constexpr uint64_t kGgufLargestAlignment = uint64_t{1} << 24;
inline constexpr int kGgufMaxRank = 4;
inline constexpr uint64_t kGgufLongestName = 65535;
inline constexpr std::string_view kGgufAlignmentKey = "general.alignment";

inline constexpr uint32_t kGgufTypes = 13;

}  // namespace tessera
