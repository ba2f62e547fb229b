// A subcommand of the program: adds its options to the command line, and runs when it was chosen. What it returns is
// the exit code; an Error becomes one line on stderr and exit code 1.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "base/result.h"

namespace tessera::cli {

using Action = std::function<Result<int>()>;

// Each sets `action` when its subcommand is parsed.
void add_bench_command(CLI::App& app, Action& action);
void add_inspect_command(CLI::App& app, Action& action);
void add_models_command(CLI::App& app, Action& action);
void add_quantize_command(CLI::App& app, Action& action);
void add_run_command(CLI::App& app, Action& action);
void add_template_command(CLI::App& app, Action& action);
void add_tokenize_command(CLI::App& app, Action& action);

}  // namespace tessera::cli
