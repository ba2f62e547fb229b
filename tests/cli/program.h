// Runs the real program and gives back what it printed.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/check.h"

namespace tessera::test {

struct Outcome {
  int code = -1;  // -1: it did not exit by itself
  std::string out;
  std::string err;

  [[nodiscard]] std::vector<std::string> lines(const std::string& text) const {
    std::vector<std::string> result;
    size_t start = 0;
    while (start < text.size()) {
      const size_t end = std::min(text.find('\n', start), text.size());
      result.push_back(text.substr(start, end - start));
      start = end + 1;
    }
    return result;
  }
  [[nodiscard]] std::vector<std::string> out_lines() const { return lines(out); }
  [[nodiscard]] std::vector<std::string> err_lines() const { return lines(err); }
};

// A started program whose output is read until it ends.
class Program {
 public:
  explicit Program(const std::vector<std::string>& arguments) {
    int out[2];
    int err[2];
    CHECK(pipe(out) == 0 && pipe(err) == 0);
    child_ = fork();
    CHECK(child_ >= 0);
    if (child_ == 0) {
      dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      dup2(err[1], STDERR_FILENO);
      for (const int fd : {out[0], out[1], err[0], err[1]}) close(fd);
      std::vector<char*> raw = {const_cast<char*>(TESSERA_PROGRAM)};
      for (const std::string& argument : arguments) raw.push_back(const_cast<char*>(argument.c_str()));
      raw.push_back(nullptr);
      execv(TESSERA_PROGRAM, raw.data());
      _exit(127);
    }
    close(out[1]);
    close(err[1]);
    out_ = out[0];
    err_ = err[0];
  }

  // Reads until `bytes` of stdout have come or the program has closed both.
  void read_until(size_t bytes) {
    bool out_open = true;
    bool err_open = true;
    while ((out_open || err_open) && outcome_.out.size() < bytes) {
      pollfd files[2] = {{out_open ? out_ : -1, POLLIN, 0}, {err_open ? err_ : -1, POLLIN, 0}};
      CHECK(poll(files, 2, -1) > 0);
      if (files[0].revents != 0) out_open = read_some(out_, outcome_.out);
      if (files[1].revents != 0) err_open = read_some(err_, outcome_.err);
    }
  }

  void interrupt() const { kill(child_, SIGINT); }

  Outcome finish() {
    read_until(static_cast<size_t>(-1));
    int status = 0;
    CHECK(waitpid(child_, &status, 0) == child_);
    close(out_);
    close(err_);
    if (WIFEXITED(status)) outcome_.code = WEXITSTATUS(status);
    return std::move(outcome_);
  }

 private:
  static bool read_some(int file, std::string& text) {
    char buffer[4096];
    const ssize_t count = read(file, buffer, sizeof(buffer));
    if (count <= 0) return false;
    text.append(buffer, static_cast<size_t>(count));
    return true;
  }

  pid_t child_ = -1;
  int out_ = -1;
  int err_ = -1;
  Outcome outcome_;
};

inline Outcome run_program(const std::vector<std::string>& arguments) {
  return Program(arguments).finish();
}

}  // namespace tessera::test
