#include "checkpoint/byte_reader.h"

namespace tessera {

Result<std::string_view> ByteReader::string(std::string_view thing) {
  TESSERA_TRY(const uint64_t length, number<uint64_t>(thing));
  if (length > left())
    return fail(ErrorCode::kBadData, "{}: {} at byte {}: expected {} bytes, found {}", what_, thing, offset_,
                length, left());
  const auto* text = reinterpret_cast<const char*>(bytes_.data() + offset_);
  offset_ += length;
  return std::string_view(text, length);
}

}  // namespace tessera
