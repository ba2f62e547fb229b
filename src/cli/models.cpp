// `tessera models`: which architectures this build runs.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "arch/architecture.h"
#include "base/json.h"
#include "cli/command.h"

namespace tessera::cli {
namespace {

std::string joined(const std::vector<std::string_view>& names) {
  return names.empty() ? "-" : fmt::format("{}", fmt::join(names, ", "));
}

Result<int> list_models(bool as_json) {
  Json all = Json::array();
  for (const Architecture* architecture : architectures()) {
    if (as_json) {
      all.push_back({{"family", architecture->family},
                     {"config_json", architecture->hf_names},
                     {"gguf", architecture->gguf_names},
                     {"blocks", architecture->blocks}});
      continue;
    }
    fmt::print("{}\n  config.json  {}\n  gguf         {}\n  blocks       {}\n", architecture->family,
               joined(architecture->hf_names), joined(architecture->gguf_names),
               joined(architecture->blocks));
  }
  if (as_json) fmt::print("{}\n", dump_json(all));
  return 0;
}

}  // namespace

void add_models_command(CLI::App& app, Action& action) {
  const auto as_json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("models", "List the architectures that this build runs");
  command->add_flag("--json", *as_json, "print a JSON array");
  command->footer("");
  command->final_callback([as_json, &action] { action = [as_json] { return list_models(*as_json); }; });
}

}  // namespace tessera::cli
