// The options that every subcommand which computes with a model has.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "engine/session.h"

namespace tessera::cli {

struct ModelOptions {
  std::string backend = "auto";
  int64_t threads = 0;
  bool exact = false;
  std::string kv_type;  // "": f16, or f32 with --exact
  int64_t context = 0;
  int64_t kv_memory = 0;  // MB
  std::string precision;  // "": as the file has them

  void add_to(CLI::App& command);
  // For one sequence at a time.
  [[nodiscard]] Result<SessionOptions> session() const;
  // A session of the model at `path`, with a progress bar on a terminal where it takes long.
  [[nodiscard]] Result<std::unique_ptr<Session>> load(const std::string& path) const;
};

// A check that the help does not spell out.
[[nodiscard]] CLI::Validator between(int64_t low, int64_t high);
inline constexpr int64_t kMaxCount = int64_t{1} << 30;

inline constexpr const char* kModelHelp =
    "a folder with config.json and *.safetensors, a .safetensors file, or a .gguf file";

}  // namespace tessera::cli
