// The options that every subcommand which computes with a model has.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "engine/session.h"

namespace tessera::cli {

struct ModelOptions {
  std::string backend = "auto";
  int threads = 0;
  bool exact = false;
  std::string kv_type;  // "": f16, or f32 with --exact
  int64_t context = 0;
  int64_t kv_memory = 0;  // MB

  void add_to(CLI::App& command);
  // For one sequence at a time.
  [[nodiscard]] SessionOptions session() const;
};

inline constexpr const char* kModelHelp =
    "a folder with config.json and *.safetensors, a .safetensors file, or a .gguf file";

}  // namespace tessera::cli
