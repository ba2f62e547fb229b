#include "backend/reference/reference_backend.h"

#include "backend/reference/reference_ops.h"

namespace tessera {
namespace {

class ReferenceExecutable : public Executable {
 public:
  ReferenceExecutable(const Plan& plan, const BoundWeights& weights, const CompileOptions& options)
      : plan_(plan), weights_(weights), options_(options), values_(plan.values.size()) {}

  Result<std::unique_ptr<StateStorage>> allocate_state(const StateCapacity& capacity) override {
    if (capacity.pages.size() != plan_.states.size())
      return fail(ErrorCode::kInvalidArgument, "state capacity: expected {} groups, found {}",
                  plan_.states.size(), capacity.pages.size());
    return std::make_unique<ReferenceState>(plan_, options_, capacity);
  }

  Result<Ticket> submit(const StepInput& input) override {
    TESSERA_TRY_STATUS(check_step(plan_, weights_, options_, input));
    const ReferenceStep step{plan_,  weights_, options_, input, static_cast<ReferenceState*>(input.state),
                             values_};
    for (size_t v = 0; v < values_.size(); ++v)
      values_[v].assign(static_cast<size_t>(step.rows(static_cast<ValueId>(v)) * plan_.values[v].width),
                        0.0f);
    for (const Op& op : plan_.ops) std::visit([&](const auto& o) { run_op(step, o); }, op);
    output_ = {};
    output_.logits = values_[static_cast<size_t>(plan_.logits)];
    for (const NamedValue& hidden : plan_.hidden)
      output_.hidden.emplace_back(hidden.name, values_[static_cast<size_t>(hidden.value)]);
    return ++ticket_;
  }

  Result<bool> ready(Ticket) override { return true; }

  Result<StepOutput> wait(Ticket ticket) override {
    if (ticket != ticket_)
      return fail(ErrorCode::kInvalidArgument, "ticket {} is not the last one, {}", ticket, ticket_);
    return output_;
  }

  uint64_t page_bytes(int group) const override {
    return static_cast<uint64_t>(plan_.states[static_cast<size_t>(group)].values_per_position() *
                                 options_.page_positions) *
           sizeof(float);
  }
  uint64_t slot_bytes() const override {
    uint64_t values = 0;
    for (const StateGroup& group : plan_.states) values += static_cast<uint64_t>(group.values_per_sequence());
    return values * sizeof(float);
  }
  uint64_t arena_bytes() const override {
    uint64_t values = 0;
    for (const Value& value : plan_.values)
      values += static_cast<uint64_t>(
          value.width * (value.rows == RowSymbol::kTokens ? options_.max_tokens : options_.max_outputs));
    return values * sizeof(float);
  }
  const CompileOptions& options() const override { return options_; }

 private:
  const Plan& plan_;
  const BoundWeights& weights_;
  CompileOptions options_;
  std::vector<std::vector<float>> values_;
  StepOutput output_;
  Ticket ticket_ = 0;
};

class ReferenceBackend : public Backend {
 public:
  std::string_view name() const override { return "reference"; }
  std::string description() const override { return "reference (plain loops, float64 sums, 1 thread)"; }
  Status supports(const Plan&, const BoundWeights&) const override { return {}; }
  MemoryNeeds memory_needs(const Plan& plan, const BoundWeights& weights,
                           const CompileOptions& options) const override {
    const ReferenceExecutable executable(plan, weights, options);
    MemoryNeeds needs;
    for (size_t g = 0; g < plan.states.size(); ++g)
      needs.page_bytes.push_back(executable.page_bytes(static_cast<int>(g)));
    needs.slot_bytes = executable.slot_bytes();
    return needs;
  }
  Result<std::unique_ptr<Executable>> compile(const Plan& plan, const BoundWeights& weights,
                                              const CompileOptions& options) override {
    TESSERA_TRY_STATUS(supports(plan, weights));
    return std::make_unique<ReferenceExecutable>(plan, weights, options);
  }
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend() {
  return std::make_unique<ReferenceBackend>();
}

}  // namespace tessera
