// bench_tokenizer FOLDER TEXT_FILE...: how fast a tokenizer loads, and how fast it encodes each text once,
// with nothing seen before, and once more. Times are processor time of the one thread that works, so that what else
// runs on the machine counts little. The same for the HuggingFace library:
// node tests/text/tools/speed.mjs TOKENIZER_JSON TEXT_FILE...
#include <fmt/core.h>

#include <ctime>
#include <string>

#include "base/mapped_file.h"
#include "text/tokenizer.h"

namespace {

double now() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}
double seconds_since(double start) {
  return now() - start;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: bench_tokenizer FOLDER [TEXT_FILE...]\n");
    return 2;
  }
  const std::string folder = argv[1];
  const double start_loading = now();
  const auto tokenizer = tessera::Tokenizer::from_folder(folder);
  if (!tokenizer) {
    fmt::print(stderr, "{}\n", tokenizer.error().message);
    return 1;
  }
  fmt::print("{}: {} tokens loaded in {:.3f} s\n", folder, tokenizer->token_count(),
             seconds_since(start_loading));
  for (int i = 2; i < argc; ++i) {
    const auto text = tessera::read_file(argv[i]);
    // A tokenizer of its own for each text: words of the one before must not be known.
    const auto fresh = tessera::Tokenizer::from_folder(folder);
    if (!text || !fresh) {
      fmt::print(stderr, "{}\n", !text ? text.error().message : fresh.error().message);
      return 1;
    }
    const double megabytes = static_cast<double>(text->size()) / 1e6;
    for (const char* run : {"cold", "again"}) {
      const double start = now();
      const auto ids = fresh->encode(*text);
      const double seconds = seconds_since(start);
      if (!ids) {
        fmt::print(stderr, "{}\n", ids.error().message);
        return 1;
      }
      fmt::print("  {} ({:.1f} MB, {} tokens) {}: {:.3f} s, {:.1f} MB/s\n", argv[i], megabytes, ids->size(),
                 run, seconds, megabytes / seconds);
    }
  }
  return 0;
}
