// Runner: turns scheduled parts into one StepInput, submits it, and reads the result back. Nothing here waits
// for a device except wait().
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/result.h"
#include "engine/scheduler.h"

namespace tessera {

class Runner {
 public:
  explicit Runner(Executable& executable) : executable_(executable) {}

  [[nodiscard]] Status submit(std::span<const ScheduledPart> parts, StatePool& pool);
  [[nodiscard]] Result<bool> ready() { return executable_.ready(ticket_); }
  // [R, vocabulary], a row for every part that wants an output, in their order; valid until the next submit.
  [[nodiscard]] Result<std::span<const float>> wait();

 private:
  Executable& executable_;
  Ticket ticket_ = 0;
  // Reused from step to step.
  std::vector<int32_t> tokens_;
  std::vector<int32_t> positions_;
  std::vector<int32_t> offsets_;
  std::vector<int32_t> past_;
  std::vector<int32_t> rope_lengths_;
  std::vector<int32_t> slots_;
  std::vector<int32_t> output_rows_;
  std::vector<std::vector<int32_t>> pages_;
  std::vector<std::vector<int32_t>> page_offsets_;
  std::vector<PageTable> tables_;
};

}  // namespace tessera
