// `tessera quantize`: a model in fewer bits, as a standard GGUF file.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/terminal.h"
#include "formats/format_info.h"
#include "tools/quantize.h"

namespace tessera::cli {
namespace {

struct QuantizeOptions {
  std::string input;
  std::string output;
  std::string to;
  int64_t threads = 0;
  bool verify = false;
  bool json = false;
};

Json report_json(const QuantizeReport& report, uint64_t bytes_before) {
  Json tensors = Json::array();
  for (const QuantizedTensor& tensor : report.tensors)
    tensors.push_back({{"name", tensor.name},
                       {"shape", tensor.shape.to_string()},
                       {"from", format_name(tensor.from)},
                       {"to", format_name(tensor.to)},
                       {"bytes", tensor.bytes}});
  return {{"tensors", std::move(tensors)}, {"bytes", report.bytes}, {"bytes_before", bytes_before}};
}

void print_report(const QuantizeOptions& options, const QuantizeReport& report, uint64_t bytes_before) {
  std::map<std::string, std::pair<int64_t, uint64_t>> formats;
  for (const QuantizedTensor& tensor : report.tensors) {
    auto& [count, bytes] = formats[format_name(tensor.to)];
    ++count;
    bytes += tensor.bytes;
  }
  for (const auto& [format, sum] : formats)
    fmt::print("{:<8} {:>5} tensors  {:>10}\n", format, sum.first, size_text(sum.second));
  fmt::print("{}: {}, before {}{}\n", options.output, size_text(report.bytes), size_text(bytes_before),
             options.verify ? "; read again and compared" : "");
}

Result<int> quantize(const QuantizeOptions& options) {
  TESSERA_TRY(const PrecisionPolicy policy, PrecisionPolicy::parse_recipe(options.to));
  TESSERA_TRY(const std::shared_ptr<const Checkpoint> checkpoint, Checkpoint::open(options.input));
  TESSERA_TRY(const LoadedModel model, load_model(checkpoint));
  ThreadPool threads(options.threads > 0 ? static_cast<int>(options.threads) : available_processors());
  QuantizeReport report;
  {
    ProgressBar bar("encoding the weights");
    const auto progress = [&bar](uint64_t done, uint64_t total) { bar.update(done, total); };
    TESSERA_TRY(report, quantize_gguf(model, policy, {}, threads, progress, options.output));
  }
  if (report.requantized > 0)
    print_warning(fmt::format(
        "{} tensors of {} were quantised already: their errors add up; a file in 16 bits is a better source",
        report.requantized, options.input));
  if (options.verify) {
    ProgressBar bar("reading the file again");
    const auto progress = [&bar](uint64_t done, uint64_t total) { bar.update(done, total); };
    TESSERA_TRY_STATUS(verify_quantized(model, policy, {}, threads, progress, options.output));
  }
  if (options.json) {
    fmt::print("{}\n", dump_json(report_json(report, checkpoint->total_bytes()), 1));
  } else {
    print_report(options, report, checkpoint->total_bytes());
  }
  return 0;
}

// The names of the recipes in lines of a readable length.
std::string recipe_list() {
  std::string text = "Recipes:";
  size_t line = 0;
  for (const std::string_view name : PrecisionPolicy::recipe_names()) {
    if (line == 0 || line + name.size() > 76) {
      text += "\n ";
      line = 1;
    }
    text += fmt::format(" {}", name);
    line += name.size() + 1;
  }
  return text;
}

}  // namespace

void add_quantize_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<QuantizeOptions>();
  CLI::App* command = app.add_subcommand("quantize", "Write a GGUF model in other formats");
  command->add_option("input", options->input, "a .gguf file")->required()->type_name("IN");
  command->add_option("output", options->output, "the .gguf file to write")->required()->type_name("OUT");
  command
      ->add_option("--to", options->to,
                   "a recipe of those below, or a policy such as q8_0,head=f16,blk:0-1=q6_k")
      ->required()
      ->type_name("FORMAT");
  command->add_flag("--verify", options->verify, "read the file again and compare every byte");
  command->add_flag("--json", options->json, "print one JSON object");
  command
      ->add_option("--threads", options->threads,
                   "processor threads (default: as many as the process may use)")
      ->check(between(1, 1024))
      ->type_name("N");
  command->footer(recipe_list());
  command->final_callback([options, &action] { action = [options] { return quantize(*options); }; });
}

}  // namespace tessera::cli
