// The readers on whole published files: every golden checkpoint of both kinds opens.
#include <gtest/gtest.h>

#include <filesystem>

#include "checkpoint/checkpoint.h"

namespace tessera {
namespace {

TEST(Checkpoint, EveryGoldenCheckpointOpens) {
  int opened = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("tests/goldens/")) {
    const std::string path = entry.path().string();
    const bool folder = entry.is_directory() && std::filesystem::exists(entry.path() / "model.safetensors");
    if (!folder && entry.path().extension() != ".gguf" && entry.path().extension() != ".safetensors") continue;
    const auto checkpoint = Checkpoint::open(path);
    ASSERT_TRUE(checkpoint) << checkpoint.error().message;
    EXPECT_FALSE((*checkpoint)->tensors().empty());
    ++opened;
  }
  EXPECT_GT(opened, 300);
}

}  // namespace
}  // namespace tessera
