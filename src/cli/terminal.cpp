#include "cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

namespace tessera::cli {
namespace {

constexpr std::chrono::milliseconds kPatience{300};
constexpr int kWidth = 30;

volatile std::sig_atomic_t g_interrupted = 0;

void note_interrupt(int) {
  g_interrupted = 1;
  std::signal(SIGINT, SIG_DFL);
}

}  // namespace

ProgressBar::ProgressBar(std::string what)
    : what_(std::move(what)),
      terminal_(isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()) {}

ProgressBar::~ProgressBar() {
  if (shown_) fmt::print(stderr, "\r\033[K");
}

void ProgressBar::update(uint64_t done, uint64_t total) {
  if (!terminal_ || total == 0) return;
  const int percent = static_cast<int>(100 * done / total);
  if (percent == percent_ || std::chrono::steady_clock::now() - start_ < kPatience) return;
  percent_ = percent;
  shown_ = true;
  const int filled = percent * kWidth / 100;
  fmt::print(stderr, "\r{} [{:=<{}}{: <{}}] {:3}%", what_, "", filled, "", kWidth - filled, percent);
  std::fflush(stderr);
}

void catch_interrupts() {
  std::signal(SIGINT, note_interrupt);
}

bool interrupted() {
  return g_interrupted != 0;
}

void print_warning(const std::string& message) {
  fmt::print(stderr, "tessera: warning: {}\n", message);
}

std::string size_text(uint64_t bytes) {
  const auto number = static_cast<double>(bytes);
  if (number >= 1e9) return fmt::format("{:.2f} GB", number / 1e9);
  if (number >= 1e6) return fmt::format("{:.1f} MB", number / 1e6);
  if (number >= 1e3) return fmt::format("{:.1f} kB", number / 1e3);
  return fmt::format("{} bytes", bytes);
}

std::string count_text(int64_t number) {
  const auto value = static_cast<double>(number);
  if (value >= 1e9) return fmt::format("{:.2f}B", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.1f}M", value / 1e6);
  if (value >= 1e3) return fmt::format("{:.0f}k", value / 1e3);
  return fmt::format("{}", number);
}

}  // namespace tessera::cli
