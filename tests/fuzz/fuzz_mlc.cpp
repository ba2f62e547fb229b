// Any text as the manifest of an MLC folder.
#include "base/check.h"
#include "base/checked_math.h"
#include "checkpoint/mlc_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  const auto shards = parse_mlc_manifest({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!shards) {
    CHECK(shards.error().message.find('\n') == std::string::npos, "{}", shards.error().message);
    return 0;
  }
  for (const MlcShard& shard : *shards)
    for (const MlcRecord& record : shard.records) {
      CHECK(range_fits(record.offset, record.bytes, shard.bytes), "{}", record.name);
      CHECK(static_cast<uint64_t>(record.shape.elements() * dtype_size(record.element)) == record.bytes, "{}",
            record.name);
    }
  return 0;
}
