// The program: `tessera SUBCOMMAND ...`. Exit codes: 0 done, 1 an error (one line on stderr), 2 a command line that
// makes no sense (two lines), 130 interrupted.
#include <fmt/format.h>

#include <cstdio>

#include "cli/command.h"

namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  tessera run models/story --prompt \"Once upon a time\" --stats\n"
    "  tessera inspect model.gguf\n"
    "  tessera tokenize models/story \"Hello\"\n"
    "  tessera bench --random llama-1.1b --format q8_0\n"
    "`tessera SUBCOMMAND --help` lists the options of one.";

// The subcommand that was named, for the hint after a usage error.
std::string command_name(int argc, char** argv, const CLI::App& app) {
  for (int i = 1; i < argc; ++i)
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
      if (command->get_name() == argv[i]) return "tessera " + command->get_name();
  return "tessera";
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Runs published language models as they are published, and computes what their reference computes.",
      "tessera");
  app.set_version_flag("--version", std::string("tessera ") + TESSERA_VERSION);
  app.require_subcommand(1);
  app.footer(kFooter);
  app.get_formatter()->column_width(34);

  tessera::cli::Action action;
  tessera::cli::add_run_command(app, action);
  tessera::cli::add_inspect_command(app, action);
  tessera::cli::add_tokenize_command(app, action);
  tessera::cli::add_template_command(app, action);
  tessera::cli::add_bench_command(app, action);
  tessera::cli::add_models_command(app, action);
  tessera::cli::add_quantize_command(app, action);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    std::string message = error.what();
    for (char& c : message)
      if (c == '\n') c = ' ';
    fmt::print(stderr, "tessera: {}\ntry: {} --help\n", message, command_name(argc, argv, app));
    return 2;
  }
  const tessera::Result<int> code = action();
  if (code) return *code;
  fmt::print(stderr, "tessera: {}\n", code.error().message);
  return 1;
}
