// How fast the CPU kernels are on this machine: decode (a few tokens) in GB/s of weights beside the memory's measured read and
// copy rates, prompts in billions of multiply-adds times two. Ways are measured in turn, round by round, and the best and the
// median round are printed, because a shared machine changes by the minute.
//   bench_kernels [--threads N] [--rounds N] [--isa NAME] [--tokens N] [--format NAME] [--attend] [--processor-time]
// --processor-time counts the time this process ran (all threads added up): on a busy machine, with one thread, that is what
// the kernels themselves take.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/isa.h"
#include "base/thread_pool.h"
#include "formats/format_info.h"

namespace tessera {
namespace {

enum class TimeSource { kWall, kProcessor };

double now(TimeSource source) {
  timespec time{};
  clock_gettime(source == TimeSource::kWall ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Measured {
  std::string name;
  std::string unit;
  double amount = 0;  // of units per run
  std::function<void()> work;
  std::vector<double> rates;
};

// The layers of a 1.1B llama: hidden 2048, 32/4 heads of 64, ffn 5632; as many as give about 600 MB of weights are streamed.
struct Layer {
  int64_t columns;
  int64_t rows;
};
constexpr Layer kLayers[] = {{2048, 2048 + 512}, {2048, 2048}, {2048, 2 * 5632}, {5632, 2048}};

class LinearBench {
 public:
  LinearBench(const cpu::KernelTable& kernels, const Format& format, int64_t tokens, int threads,
              int copies) {
    std::mt19937_64 random(1);
    int64_t widest = 0;
    for (const Layer& layer : kLayers) widest = std::max({widest, layer.columns, layer.rows});
    plan_.hidden_size = 5632;
    add_value(5632);
    add_value(widest);
    plan_.logits = 1;
    EmbedOp embed;
    embed.table = add_weight(Format::plain(DType::kF32), 1, 5632, random);
    embed.output = {0, 0, 5632};
    plan_.ops.emplace_back(embed);
    for (int copy = 0; copy < copies; ++copy) {
      for (const Layer& layer : kLayers) {
        LinearOp op;
        op.input = {0, 0, layer.columns};
        op.output = {1, 0, layer.rows};
        op.parts.push_back({add_weight(format, layer.rows, layer.columns, random), -1, layer.rows});
        plan_.ops.emplace_back(op);
        values_ += static_cast<double>(layer.rows * layer.columns);
        bytes_ += static_cast<double>(layer.rows * format_row_bytes(format, layer.columns));
      }
    }
    CompileOptions options;
    options.threads = threads;
    options.max_tokens = tokens;
    backend_ = make_cpu_backend(kernels);
    executable_ = std::move(*backend_->compile(plan_, weights_, options));
    std::normal_distribution<float> normal;
    embeddings_.resize(static_cast<size_t>(tokens * 5632));
    for (float& v : embeddings_) v = normal(random);
    positions_.resize(static_cast<size_t>(tokens));
    offsets_ = {0, static_cast<int32_t>(tokens)};
  }

  void run() {
    StepInput input;
    input.embeddings = embeddings_;
    input.positions = positions_;
    input.sequence_offsets = offsets_;
    input.past = zero_;
    input.rope_lengths = zero_;
    const auto ticket = executable_->submit(input);
    if (!ticket) fmt::print("{}\n", ticket.error().message);
  }
  [[nodiscard]] double bytes() const { return bytes_; }
  [[nodiscard]] double values() const { return values_; }

 private:
  void add_value(int64_t width) {
    Value value;
    value.width = width;
    value.offset = plan_.token_arena;
    plan_.token_arena += width;
    plan_.values.push_back(value);
  }
  WeightId add_weight(const Format& format, int64_t rows, int64_t columns, std::mt19937_64& random) {
    BoundSlot slot;
    slot.slot.name = std::to_string(weights_.slots().size());
    slot.slot.shape = Shape({rows, columns});
    const int64_t row_bytes = format_row_bytes(format, columns);
    Buffer buffer(static_cast<size_t>(rows * row_bytes));
    // One block of plausible values, repeated: what is computed does not matter, only that no value is unusual.
    std::normal_distribution<float> normal;
    const int64_t block = std::max<int64_t>(256, format_block(format));
    std::vector<std::byte> pattern(static_cast<size_t>(format_row_bytes(format, block)));
    std::vector<float> values(static_cast<size_t>(block));
    for (float& v : values) v = normal(random);
    if (!encode_rows(format, values.data(), 1, block, pattern.data()))
      std::ranges::fill(pattern, std::byte{0x11});
    for (size_t at = 0; at < buffer.size(); at += pattern.size())
      std::memcpy(buffer.data() + at, pattern.data(), std::min(pattern.size(), buffer.size() - at));
    Weight weight{format, rows, columns, {}};
    weight.planes[0] = {buffer.data(), row_bytes};
    weights_.own(std::move(buffer));
    slot.parts.push_back(weight);
    return weights_.add(std::move(slot));
  }

  Plan plan_;
  BoundWeights weights_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Executable> executable_;
  std::vector<float> embeddings_;
  std::vector<int32_t> positions_;
  std::vector<int32_t> offsets_;
  std::vector<int32_t> zero_{0};
  double bytes_ = 0;
  double values_ = 0;
};

// Attention alone: one sequence with so much behind it, TinyLlama's heads.
class AttendBench {
 public:
  AttendBench(const cpu::KernelTable& kernels, int64_t past, int64_t tokens, int threads) {
    constexpr int64_t kHeads = 32, kKvHeads = 4, kDim = 64;
    const int64_t width = (kHeads + 2 * kKvHeads) * kDim;
    plan_.hidden_size = width;
    for (const int64_t w : {width, kHeads * kDim}) {
      Value value;
      value.width = w;
      value.offset = plan_.token_arena;
      plan_.token_arena += w;
      plan_.values.push_back(value);
    }
    plan_.logits = 1;
    BoundSlot slot;
    slot.slot.name = "table";
    slot.slot.shape = Shape({1, width});
    table_.resize(static_cast<size_t>(width));
    Weight weight{Format::plain(DType::kF32), 1, width, {}};
    weight.planes[0] = {reinterpret_cast<const std::byte*>(table_.data()), width * 4};
    slot.parts.push_back(weight);
    EmbedOp embed;
    embed.table = weights_.add(std::move(slot));
    embed.output = {0, 0, width};
    plan_.ops.emplace_back(embed);
    StateGroup group;
    StateLayer layer;
    layer.heads = kKvHeads;
    layer.k_width = layer.v_width = kDim;
    AttendOp op;
    op.q = {0, 0, kHeads * kDim};
    op.k = {0, kHeads * kDim, kKvHeads * kDim};
    op.v = {0, (kHeads + kKvHeads) * kDim, kKvHeads * kDim};
    op.output = {1, 0, kHeads * kDim};
    op.heads = kHeads;
    op.kv_heads = kKvHeads;
    op.head_dim = op.value_dim = kDim;
    op.scale = 0.125;
    constexpr int kAttendLayers = 22;
    for (int i = 0; i < kAttendLayers; ++i) {
      group.layers.push_back(layer);
      op.layer = i;
      plan_.ops.emplace_back(op);
    }
    plan_.states.push_back(group);
    CompileOptions options;
    options.threads = threads;
    options.max_tokens = tokens;
    backend_ = make_cpu_backend(kernels);
    executable_ = std::move(*backend_->compile(plan_, weights_, options));
    const int64_t pages = (past + tokens + 15) / 16;
    state_ = std::move(*executable_->allocate_state({{pages}, 0}));
    for (int64_t p = 0; p < pages; ++p) pages_.push_back(static_cast<int32_t>(p));
    page_offsets_ = {0, static_cast<int32_t>(pages)};
    past_ = {static_cast<int32_t>(past)};
    embeddings_.assign(static_cast<size_t>(tokens * width), 0.5f);
    positions_.resize(static_cast<size_t>(tokens));
    offsets_ = {0, static_cast<int32_t>(tokens)};
  }
  void run() {
    StepInput input;
    const std::vector<PageTable> tables{{pages_, page_offsets_}};
    input.state = state_.get();
    input.embeddings = embeddings_;
    input.positions = positions_;
    input.sequence_offsets = offsets_;
    input.past = past_;
    input.rope_lengths = past_;
    input.page_tables = tables;
    const auto ticket = executable_->submit(input);
    if (!ticket) fmt::print("{}\n", ticket.error().message);
  }

 private:
  Plan plan_;
  BoundWeights weights_;
  std::vector<float> table_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Executable> executable_;
  std::unique_ptr<StateStorage> state_;
  std::vector<float> embeddings_;
  std::vector<int32_t> positions_, offsets_, past_, pages_, page_offsets_;
};

// Memory alone, with as many threads: a read that adds up 64-bit words, and a copy (bytes read plus bytes written).
class MemoryBench {
 public:
  explicit MemoryBench(int threads) : pool_(threads), from_(kBytes), to_(kBytes) {
    std::memset(from_.data(), 1, kBytes);
    std::memset(to_.data(), 2, kBytes);
  }
  void read() {
    pool_.run(kParts, [this](int64_t part, int thread) {
      constexpr size_t kLanes = 32;
      uint64_t sums[kLanes] = {};
      const auto* words = reinterpret_cast<const uint64_t*>(from_.data() + part * kPart);
      for (size_t i = 0; i + kLanes <= kPart / 8; i += kLanes)
        for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += words[i + lane];
      for (const uint64_t sum : sums) sinks_[static_cast<size_t>(thread) * 16] += sum;
    });
  }
  void copy() {
    pool_.run(kParts, [this](int64_t part, int) {
      std::memcpy(to_.data() + part * kPart, from_.data() + part * kPart, kPart);
    });
  }
  static constexpr size_t kBytes = size_t{512} << 20;

 private:
  static constexpr int64_t kParts = 256;
  static constexpr size_t kPart = kBytes / kParts;
  ThreadPool pool_;
  Buffer from_;
  Buffer to_;
  std::array<uint64_t, 16 * 64> sinks_{};
};

struct Arguments {
  int threads = available_processors();
  int rounds = 5;
  std::string isa;
  std::string format;
  int64_t tokens = 0;
  bool attend = false;
  TimeSource time = TimeSource::kWall;
};

int run(const Arguments& arguments) {
  std::vector<Measured> list;
  MemoryBench memory(arguments.threads);
  list.push_back({"memory read", "GB/s", MemoryBench::kBytes / 1e9, [&] { memory.read(); }, {}});
  list.push_back(
      {"memory copy (read + written)", "GB/s", 2 * MemoryBench::kBytes / 1e9, [&] { memory.copy(); }, {}});
  std::vector<Format> formats{Format::block(FormatKind::kQ8_0), Format::block(FormatKind::kQ4_0),
                              Format::plain(DType::kF16), Format::plain(DType::kBF16),
                              Format::plain(DType::kF32)};
  if (!arguments.format.empty())
    for (const FormatInfo& info : format_table())
      if (info.name == arguments.format &&
          std::ranges::find(formats, Format::block(info.kind)) == formats.end())
        formats.push_back(Format::block(info.kind));
  std::vector<std::unique_ptr<LinearBench>> linear;
  std::vector<std::unique_ptr<AttendBench>> attend;
  for (const cpu::KernelTable& kernels : cpu::available_kernels()) {
    if (!arguments.isa.empty() && arguments.isa != kernels.name) continue;
    if (arguments.attend) {
      for (const auto& [past, tokens] :
           {std::pair<int64_t, int64_t>{1024, 1}, {4096, 1}, {0, 512}, {1024, 512}}) {
        attend.push_back(std::make_unique<AttendBench>(kernels, past, tokens, arguments.threads));
        auto* bench = attend.back().get();
        list.push_back({fmt::format("{:9} attend, {} tokens at {}", kernels.name, tokens, past),
                        "tok/s",
                        static_cast<double>(tokens),
                        [bench] { bench->run(); },
                        {}});
      }
      continue;
    }
    for (const Format& format : formats) {
      if (!arguments.format.empty() && format_name(format) != arguments.format) continue;
      for (const int64_t tokens : {1, 2, 4, 8, 32, 128, 512}) {
        if (arguments.tokens != 0 ? tokens != arguments.tokens : tokens != 1 && tokens != 128) continue;
        // Decode needs more than the caches hold; prompts do not.
        const int copies =
            tokens <= 8 ? std::max(1, static_cast<int>(600e6 / (44e6 * format_bits_per_value(format) / 8)))
                        : 1;
        linear.push_back(std::make_unique<LinearBench>(kernels, format, tokens, arguments.threads, copies));
        auto* bench = linear.back().get();
        const bool decode = tokens <= 8;
        list.push_back(
            {fmt::format("{:9} {:6} {} tokens", kernels.name, format_name(format), tokens),
             decode ? "GB/s" : "GOPS",
             decode ? bench->bytes() / 1e9 : 2 * bench->values() * static_cast<double>(tokens) / 1e9,
             [bench] { bench->run(); },
             {}});
      }
    }
  }
  for (int round = 0; round <= arguments.rounds; ++round) {
    for (Measured& measured : list) {
      const double start = now(arguments.time);
      measured.work();
      const double seconds = now(arguments.time) - start;
      if (round > 0) measured.rates.push_back(measured.amount / seconds);  // the first one warms up
    }
  }
  fmt::print("{} threads\n{:40} {:>10} {:>10}\n", arguments.threads, "", "median", "best");
  for (Measured& measured : list) {
    std::ranges::sort(measured.rates);
    fmt::print("{:40} {:10.1f} {:10.1f} {}\n", measured.name, measured.rates[measured.rates.size() / 2],
               measured.rates.back(), measured.unit);
  }
  return 0;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  tessera::Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--attend") {
      arguments.attend = true;
      continue;
    }
    if (name == "--processor-time") {
      arguments.time = tessera::TimeSource::kProcessor;
      continue;
    }
    if (i + 1 == argc) {
      fmt::print(stderr, "bench_kernels: {} needs a value, or is not known\n", name);
      return 1;
    }
    const std::string value = argv[++i];
    if (name == "--threads")
      arguments.threads = std::max(1, std::atoi(value.c_str()));
    else if (name == "--rounds")
      arguments.rounds = std::max(1, std::atoi(value.c_str()));
    else if (name == "--isa")
      arguments.isa = value;
    else if (name == "--format")
      arguments.format = value;
    else if (name == "--tokens")
      arguments.tokens = std::atoi(value.c_str());
    else {
      fmt::print(stderr, "bench_kernels: {} is not known\n", name);
      return 1;
    }
  }
  return tessera::run(arguments);
}
