// tessera-goldens [--markdown] [--filter TEXT] [--backend NAME]...: runs every reference checkpoint in both
// spellings of its config, on every backend, in the four ways, and prints how far each is from the reference
// (normalised squared error). Exits with 1 when a cell misses its bound or when nothing was compared.
// scripts/coverage writes docs/COVERAGE.md with it. Run in the source folder.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "arch/cases.h"
#include "arch/golden_runner.h"

namespace tessera {
namespace {

struct Options {
  bool markdown = false;
  std::string filter;
  std::vector<std::string> backends;
};

struct Cell {
  std::string text;
  bool good = false;
  bool compared = false;
};

// An error as the power of ten above it: two runs, or two machines, write the same table.
std::string rounded(double error) {
  if (error == 0.0) return "0";
  return fmt::format("1e{}", static_cast<int>(std::ceil(std::log10(error))));
}

Cell failed(const Error& error) {
  return {error.message.empty() ? "failed" : error.message, false, false};
}

// One backend's cells: one per way, or a single one that says why there are none.
std::vector<Cell> measure(const GoldenCase& golden, const GoldenPaths& paths, const std::string& backend,
                          bool markdown) {
  CompileOptions options;
  options.activations = ActivationType::kExact;
  options.state = StateType::kF32;
  options.threads = 2;
  auto model = GoldenModel::load(paths.checkpoint, paths.config, backend, options);
  if (!model) return {failed(model.error())};
  if (!golden.load_only.empty()) {
    const auto logits = (*model)->logits({3, 4, 5}, Way::kWhole);
    if (!logits) return {failed(logits.error())};
    return {{"loads", true, true}};
  }
  const auto reference = read_golden(paths.golden);
  if (!reference) return {failed(reference.error())};
  std::vector<Cell> cells;
  for (const Way way : kWays) {
    const auto logits = (*model)->logits(reference->ids, way);
    if (!logits) return {failed(logits.error())};
    const double error = normalised_squared_error(*logits, reference->logits);
    cells.push_back({markdown ? rounded(error) : fmt::format("{:.1e}", error), error < golden.bound, true});
  }
  return cells;
}

class Table {
 public:
  explicit Table(Options options) : options_(std::move(options)) {}

  int print() {
    print_head();
    for (const GoldenCase& golden : kGoldenCases) {
      const std::string name = fmt::format("{}/{}", golden.folder, golden.name);
      if (name.find(options_.filter) == std::string::npos) continue;
      if (!has_two_configs(golden)) {
        print_row(golden, name, "");
      } else {
        print_row(golden, name, "config.json");
        print_row(golden, name, "config.legacy.json");
      }
    }
    if (options_.markdown) {
      print_notes();
      fmt::print("\n{} cells, {} missed.\n", compared_, missed_);
    } else {
      fmt::print("{} cells, {} missed\n", compared_, missed_);
    }
    return missed_ > 0 || compared_ == 0 ? 1 : 0;
  }

 private:
  void print_head() const {
    if (options_.markdown) fmt::print("| checkpoint | config |");
    std::string rule = "|---|---|";
    for (const std::string& backend : options_.backends) {
      for (const Way way : kWays) {
        if (options_.markdown) fmt::print(" {} {} |", backend, way_name(way));
        rule += "---|";
      }
    }
    if (options_.markdown) fmt::print("\n{}\n", rule);
  }

  void print_row(const GoldenCase& golden, const std::string& name, const std::string& config) {
    const GoldenPaths paths = golden_paths(golden, config);
    const std::string spelling = !config.empty()            ? (config.size() > 11 ? "legacy" : "current")
                                 : name.starts_with("gguf") ? "metadata"
                                                            : "own";
    std::string row = options_.markdown ? fmt::format("| {} | {} |", name, spelling)
                                        : fmt::format("{:40} {:8}", name, spelling);
    for (const std::string& backend : options_.backends) {
      std::vector<Cell> cells = measure(golden, paths, backend, options_.markdown);
      for (const Cell& cell : cells) {
        if (cell.compared) ++compared_;
        if (!cell.good) ++missed_;
      }
      cells.resize(std::size(kWays), Cell{"", true, false});
      for (const Cell& cell : cells) {
        const std::string text = cell.good           ? cell.text
                                 : options_.markdown ? "**" + cell.text + "**"
                                                     : "!" + cell.text;
        row += options_.markdown ? fmt::format(" {} |", text) : fmt::format(" {:9}", text);
      }
    }
    fmt::print("{}\n", row);
    std::fflush(stdout);
  }

  static void print_notes() {
    fmt::print(
        "\n\"loads\": the file leaves out a fact that changes the numbers, so that they cannot be "
        "compared:\n\n");
    for (const GoldenCase& golden : kGoldenCases)
      if (!golden.load_only.empty())
        fmt::print("- {}/{}: {}\n", golden.folder, golden.name, golden.load_only);
    fmt::print("\nRefused, with this message:\n\n");
    for (const RefusedCase& refused : kRefusedCases)
      fmt::print("- {}: `{}`\n", refused.file, refused.message);
  }

  Options options_;
  int compared_ = 0;
  int missed_ = 0;
};

int run(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--markdown") {
      options.markdown = true;
    } else if (word == "--filter" && i + 1 < argc) {
      options.filter = argv[++i];
    } else if (word == "--backend" && i + 1 < argc) {
      options.backends.emplace_back(argv[++i]);
    } else {
      fmt::print(stderr, "usage: tessera-goldens [--markdown] [--filter TEXT] [--backend NAME]...\n");
      return 2;
    }
  }
  if (options.backends.empty()) options.backends = backend_names();
  return Table(std::move(options)).print();
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  return tessera::run(argc, argv);
}
