#include "tools/benchmark.h"

#include <sys/resource.h>

#include <algorithm>

#include "formats/format_info.h"

namespace tessera {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Ids that differ, the same in every run.
std::vector<int32_t> prompt_of(int64_t length, int64_t vocabulary) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < length; ++i) ids.push_back(static_cast<int32_t>((i * 7919 + 1) % vocabulary));
  return ids;
}

Result<Report> run_once(Session& session, int64_t prompt, int64_t tokens) {
  Request request;
  request.prompt = prompt_of(prompt, session.spec().vocabulary);
  request.max_tokens = tokens;
  request.end_of_sequence = EndOfSequence::kIgnored;
  TESSERA_TRY([[maybe_unused]] const RequestId id, session.engine().submit(std::move(request)));
  while (true) {
    TESSERA_TRY(const std::span<const Event> events, session.engine().step());
    for (const Event& event : events) {
      if (!event.finished) continue;
      if (event.finished->reason == FinishReason::kError)
        return fail(ErrorCode::kDevice, "{}", event.finished->error);
      return *event.finished;
    }
  }
}

uint64_t bytes_of(const BoundSlot& slot) {
  uint64_t bytes = 0;
  for (const Weight& weight : slot.parts)
    bytes += static_cast<uint64_t>(weight.rows * format_stored_bytes(weight.format, weight.columns));
  return bytes;
}

}  // namespace

uint64_t weight_bytes_per_step(const Plan& plan, const BoundWeights& weights) {
  uint64_t bytes = 0;
  for (const Op& op : plan.ops) {
    if (const auto* linear = std::get_if<LinearOp>(&op))
      for (const LinearPart& part : linear->parts) bytes += bytes_of(weights.at(part.weight));
    if (const auto* experts = std::get_if<ExpertsOp>(&op))
      for (const WeightId weight : {experts->gate, experts->up, experts->down})
        if (weight >= 0)
          bytes += bytes_of(weights.at(weight)) * static_cast<uint64_t>(experts->top_k) /
                   static_cast<uint64_t>(experts->experts);
    if (const auto* latent = std::get_if<MlaAttendOp>(&op)) bytes += bytes_of(weights.at(latent->kv_b));
  }
  return bytes;
}

uint64_t state_bytes_per_position(const Session& session) {
  uint64_t bytes = 0;
  const Executable& executable = session.executable();
  for (size_t g = 0; g < session.plan().states.size(); ++g)
    if (session.plan().states[g].kind != StateKind::kFixed)
      bytes += executable.page_bytes(static_cast<int>(g)) /
               static_cast<uint64_t>(executable.options().page_positions);
  return bytes;
}

Result<BenchmarkResult> run_benchmark(Session& session, const BenchmarkOptions& options) {
  BenchmarkResult result;
  // Threads wake up, memory is touched, caches fill: none of that is measured.
  TESSERA_TRY([[maybe_unused]] const Report warm, run_once(session, 8, 4));
  for (const int64_t length : options.prompts) {
    std::vector<double> speeds;
    for (int i = 0; i < options.repeat; ++i) {
      TESSERA_TRY(const Report report, run_once(session, length, 1));
      speeds.push_back(static_cast<double>(length) / report.prompt_seconds);
    }
    result.prompts.push_back({length, median(speeds)});
  }
  if (options.decode > 0) {
    const int64_t prompt = std::max<int64_t>(1, options.depth);
    std::vector<double> speeds;
    for (int i = 0; i < options.repeat; ++i) {
      // The first token comes from the prompt's step.
      TESSERA_TRY(const Report report, run_once(session, prompt, options.decode + 1));
      speeds.push_back(static_cast<double>(options.decode) / report.decode_seconds);
    }
    DecodeSpeed decode;
    decode.tokens = options.decode;
    decode.depth = options.depth;
    decode.tokens_per_second = median(speeds);
    const double positions = static_cast<double>(prompt) + static_cast<double>(options.decode) / 2;
    const double bytes = static_cast<double>(weight_bytes_per_step(session.plan(), session.model().weights)) +
                         positions * static_cast<double>(state_bytes_per_position(session));
    decode.bytes_per_second = decode.tokens_per_second * bytes;
    result.decodes.push_back(decode);
  }
  return result;
}

uint64_t peak_memory() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace tessera
