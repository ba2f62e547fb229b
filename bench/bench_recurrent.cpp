// The two forms of the delta rule and of the state space with one decay per head, one layer at shipped sizes, for prompts of
// several lengths: microseconds a token of processor time with one thread (what the kernels themselves take, also on a busy
// machine). Forms are measured in turn; the best of the rounds is printed. And what latent attention takes in its two forms, for
// one token behind a past of some length.
//   bench_recurrent [--rounds N] [--isa NAME]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/isa.h"

namespace tessera {
namespace {

double processor_time() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// A plan of one op over random input.
struct OneOp {
  Plan plan;
  BoundWeights weights;
  std::mt19937 random{1};

  ValueId value(int64_t width) {
    Value v;
    v.width = width;
    v.offset = plan.token_arena;
    plan.token_arena += width;
    plan.values.push_back(v);
    return static_cast<ValueId>(plan.values.size()) - 1;
  }
  WeightId vector(int64_t size, float low, float high) {
    BoundSlot slot;
    slot.slot.role = SlotRole::kVector;
    slot.slot.shape = Shape({size});
    std::uniform_real_distribution<float> draw(low, high);
    for (int64_t i = 0; i < size; ++i) slot.values.push_back(draw(random));
    return weights.add(std::move(slot));
  }
  WeightId matrix(int64_t rows, int64_t columns) {
    BoundSlot slot;
    slot.slot.shape = Shape({rows, columns});
    Buffer buffer(static_cast<size_t>(rows * columns) * 2);
    for (size_t i = 0; i < buffer.size() / 2; ++i)
      buffer.as<uint16_t>()[i] = static_cast<uint16_t>(0x3c00u + random() % 0x200u);  // bfloat16, about 0.01
    Weight weight{Format::plain(DType::kBF16), rows, columns, {}};
    weight.planes[0] = {buffer.data(), columns * 2};
    slot.parts.push_back(weight);
    weights.own(std::move(buffer));
    return weights.add(std::move(slot));
  }
  ValueId input(int64_t width) {
    plan.hidden_size = width;
    const ValueId id = value(width);
    EmbedOp embed;
    embed.table = matrix(1, width);
    embed.output = {id, 0, width};
    plan.ops.emplace_back(embed);
    return id;
  }
  void finish(Op op, ValueId output, const StateGroup& group) {
    plan.states.push_back(group);
    plan.ops.push_back(std::move(op));
    plan.logits = output;
  }
};

StateGroup fixed(int64_t values) {
  StateGroup group;
  group.kind = StateKind::kFixed;
  group.layers.emplace_back().values = values;
  return group;
}

OneOp delta_rule(int64_t key_heads, int64_t value_heads, int64_t width) {
  OneOp one;
  const int64_t keys = key_heads * width;
  const int64_t values = value_heads * width;
  const ValueId x = one.input(2 * keys + values + 2 * value_heads);
  const ValueId y = one.value(values);
  DeltaRuleOp op;
  op.q = {x, 0, keys};
  op.k = {x, keys, keys};
  op.v = {x, 2 * keys, values};
  op.a = {x, 2 * keys + values, value_heads};
  op.b = {x, 2 * keys + values + value_heads, value_heads};
  op.output = {y, 0, values};
  op.decay = one.vector(value_heads, -1, -0.01f);
  op.dt_bias = one.vector(value_heads, -1, 1);
  op.key_heads = key_heads;
  op.value_heads = value_heads;
  op.key_dim = op.value_dim = width;
  one.finish(op, y, fixed(value_heads * width * width));
  return one;
}

OneOp head_scan(int64_t heads, int64_t head_dim, int64_t states) {
  OneOp one;
  const int64_t inner = heads * head_dim;
  const ValueId x = one.input(inner + heads + 2 * states);
  const ValueId y = one.value(inner);
  HeadScanOp op;
  op.x = {x, 0, inner};
  op.dt = {x, inner, heads};
  op.b = {x, inner + heads, states};
  op.c = {x, inner + heads + states, states};
  op.output = {y, 0, inner};
  op.decay = one.vector(heads, -2, -0.01f);
  op.dt_bias = one.vector(heads, -1, 1);
  op.d = one.vector(heads, -1, 1);
  op.heads = heads;
  op.head_dim = head_dim;
  op.states = states;
  one.finish(op, y, fixed(inner * states));
  return one;
}

OneOp latent_attention(int64_t heads, int64_t nope, int64_t rope, int64_t value_dim, int64_t lora) {
  OneOp one;
  const int64_t q = heads * (nope + rope);
  const ValueId x = one.input(q + lora + rope);
  const ValueId y = one.value(heads * value_dim);
  MlaAttendOp op;
  op.q = {x, 0, q};
  op.latent = {x, q, lora};
  op.k_rope = {x, q + lora, rope};
  op.kv_b = one.matrix(heads * (nope + value_dim), lora);
  op.output = {y, 0, heads * value_dim};
  op.heads = heads;
  op.nope_dim = nope;
  op.rope_dim = rope;
  op.value_dim = value_dim;
  op.scale = 0.1;
  StateGroup group;
  StateLayer& layer = group.layers.emplace_back();
  layer.heads = 1;
  layer.k_width = lora + rope;
  one.finish(op, y, group);
  return one;
}

struct Run {
  int64_t past;
  int64_t tokens;
  int repeats;
};

class Bench {
 public:
  Bench(const OneOp& one, const cpu::KernelTable& kernels, CompileOptions options) : one_(one) {
    options.activations = ActivationType::kExact;
    options.threads = 1;
    options.max_tokens = 512;
    backend_ = make_cpu_backend(kernels);
    auto executable = backend_->compile(one.plan, one.weights, options);
    if (!executable) std::abort();
    executable_ = *std::move(executable);
    StateCapacity capacity;
    const bool fixed = one.plan.states[0].kind == StateKind::kFixed;
    capacity.pages = {fixed ? 0 : kPages};
    capacity.slots = 1;
    auto state = executable_->allocate_state(capacity);
    if (!state) std::abort();
    state_ = *std::move(state);
    for (int32_t page = 0; page < kPages; ++page) pages_.push_back(page);
    page_offsets_ = fixed ? std::vector<int32_t>{0, 0} : std::vector<int32_t>{0, kPages};
  }

  // Microseconds a token.
  double measure(const Run& run) {
    std::mt19937 random(3);
    std::uniform_real_distribution<float> draw(-1, 1);
    std::vector<float> rows(static_cast<size_t>(run.tokens * one_.plan.hidden_size));
    for (float& v : rows) v = draw(random);
    std::vector<int32_t> positions;
    for (int64_t i = 0; i < run.tokens; ++i) positions.push_back(static_cast<int32_t>(run.past + i));
    const std::vector<int32_t> offsets{0, static_cast<int32_t>(run.tokens)};
    const std::vector<int32_t> past{static_cast<int32_t>(run.past)};
    const std::vector<int32_t> lengths{static_cast<int32_t>(run.past + run.tokens)};
    const std::vector<int32_t> slots{0};
    const PageTable table{pages_, page_offsets_};
    StepInput input;
    input.state = state_.get();
    input.embeddings = rows;
    input.positions = positions;
    input.sequence_offsets = offsets;
    input.past = past;
    input.rope_lengths = lengths;
    input.page_tables = {&table, 1};
    input.read_slots = slots;
    input.write_slots = slots;
    const double start = processor_time();
    for (int i = 0; i < run.repeats; ++i)
      if (!executable_->submit(input)) std::abort();
    return (processor_time() - start) * 1e6 / static_cast<double>(run.tokens * run.repeats);
  }

 private:
  static constexpr int32_t kPages = 512;
  const OneOp& one_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Executable> executable_;
  std::unique_ptr<StateStorage> state_;
  std::vector<int32_t> pages_;
  std::vector<int32_t> page_offsets_;
};

void compare(const char* name, const OneOp& one, const cpu::KernelTable& kernels, const CompileOptions& first,
             const char* first_name, const CompileOptions& second, const char* second_name,
             const std::vector<Run>& runs, int rounds) {
  Bench a(one, kernels, first);
  Bench b(one, kernels, second);
  for (const Run& run : runs) {
    double best_a = 1e30;
    double best_b = 1e30;
    for (int round = 0; round < rounds; ++round) {
      best_a = std::min(best_a, a.measure(run));
      best_b = std::min(best_b, b.measure(run));
    }
    fmt::print("{} {} tokens {:>4} past {:>5}: {} {:>8.1f} us, {} {:>8.1f} us, ratio {:.2f}\n", name,
               kernels.name, run.tokens, run.past, first_name, best_a, second_name, best_b, best_a / best_b);
  }
}

int run(int rounds, const std::string& isa) {
  for (const cpu::KernelTable& kernels : cpu::available_kernels()) {
    if (!isa.empty() && isa != kernels.name) continue;
    CompileOptions tokens;
    tokens.sequence_form = SequenceForm::kTokens;
    CompileOptions blocks;
    blocks.sequence_form = SequenceForm::kBlocks;
    const std::vector<Run> prompts{{0, 2, 32}, {0, 4, 32}, {0, 8, 16},  {0, 16, 8},
                                   {0, 32, 8}, {0, 64, 4}, {0, 128, 2}, {0, 512, 1}};
    compare("delta rule 16/32 heads of 128", delta_rule(16, 32, 128), kernels, tokens, "by tokens", blocks,
            "by blocks", prompts, rounds);
    compare("head scan 64 heads of 64, 128 states", head_scan(64, 64, 128), kernels, tokens, "by tokens",
            blocks, "by blocks", prompts, rounds);
    CompileOptions absorbed;
    absorbed.latent_form = LatentForm::kAbsorbed;
    CompileOptions expanded;
    expanded.latent_form = LatentForm::kExpanded;
    compare("latent attention 16 heads of 128+64/128 over 512", latent_attention(16, 128, 64, 128, 512),
            kernels, absorbed, "absorbed", expanded, "expanded",
            {{128, 1, 8}, {1024, 1, 4}, {4096, 1, 1}, {0, 64, 1}, {0, 512, 1}, {4096, 512, 1}}, rounds);
  }
  return 0;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  int rounds = 5;
  std::string isa;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--rounds") == 0) rounds = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--isa") == 0) isa = argv[i + 1];
  }
  return tessera::run(std::max(rounds, 1), isa);
}
