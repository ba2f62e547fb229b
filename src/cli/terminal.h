// What is particular to a terminal: a progress bar on stderr that is not there in a pipe, Ctrl-C, sizes for people.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace tessera::cli {

// Shows itself on a terminal once the work has taken a while, and removes itself at the end.
class ProgressBar {
 public:
  explicit ProgressBar(std::string what);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  void update(uint64_t done, uint64_t total);

 private:
  std::string what_;
  bool terminal_;
  bool shown_ = false;
  int percent_ = -1;
  std::chrono::steady_clock::time_point start_;
};

// From here on the first Ctrl-C only sets interrupted(); a second one ends the program.
void catch_interrupts();
[[nodiscard]] bool interrupted();

void print_warning(const std::string& message);  // "tessera: warning: ..." on stderr

[[nodiscard]] std::string size_text(uint64_t bytes);   // "1.1 GB"
[[nodiscard]] std::string count_text(int64_t number);  // "1.1B", "656k"

}  // namespace tessera::cli
