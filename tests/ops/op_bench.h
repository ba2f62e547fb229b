// A bench to put single ops on: a hand-made plan over random weights, run on the reference backend and on the cpu backend with
// any instruction set this processor has, and compared. The plan's first op copies the step's embeddings, which are the
// random input of the op under test.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/kernel_table.h"

namespace tessera::ops_test {

// sum (a - b)^2 / sum b^2; infinite where a value is not finite or the sizes differ.
[[nodiscard]] double normalised_error(std::span<const float> found, std::span<const float> expected);

// Every format a matrix may have: plain, every block format, grouped ones in several settings.
[[nodiscard]] std::vector<Format> matrix_formats();

struct OpOutputs {
  std::vector<std::vector<float>> outputs;  // by named output of the plan
};

class OpBench {
 public:
  explicit OpBench(uint64_t seed) : random_(seed) {}

  // The step's input: a value of T rows. Must be the first value.
  ValueId input(int64_t width);
  ValueId value(const std::string& name, int64_t width, RowSymbol rows = RowSymbol::kTokens);
  // A matrix in any format, of random values.
  WeightId matrix(const Format& format, int64_t rows, int64_t columns, int64_t row_step = 1);
  // Several matrices of different formats whose rows are joined.
  WeightId joined(const std::vector<Format>& formats, int64_t rows_each, int64_t columns);
  // [experts, rows, columns], a part for each expert.
  WeightId experts(const Format& format, int64_t experts, int64_t rows, int64_t columns);
  WeightId vector(int64_t size, float low = -1, float high = 1);
  void add(Op op) { plan_.ops.push_back(std::move(op)); }
  void output(ValueId id);

  [[nodiscard]] Plan& plan() { return plan_; }
  [[nodiscard]] const BoundWeights& weights() const { return weights_; }
  [[nodiscard]] std::mt19937_64& random() { return random_; }
  [[nodiscard]] std::vector<float> floats(int64_t count, float low = -1, float high = 1);

  // One step of one sequence without state.
  [[nodiscard]] OpOutputs run(Backend& backend, const CompileOptions& options,
                              std::span<const float> embeddings,
                              std::span<const int32_t> output_rows = {}) const;

 private:
  Weight random_matrix(const Format& format, int64_t rows, int64_t columns, int64_t row_step);
  Weight random_grouped(const Format& format, int64_t rows, int64_t columns, int64_t row_step);

  Plan plan_;
  BoundWeights weights_;
  std::mt19937_64 random_;
};

// Every instruction set this processor runs.
[[nodiscard]] const std::vector<cpu::KernelTable>& all_kernels();
[[nodiscard]] std::unique_ptr<Backend> cpu_backend(const cpu::KernelTable& kernels);
[[nodiscard]] std::unique_ptr<Backend> reference_backend();
[[nodiscard]] CompileOptions exact_options(int threads, int64_t tokens);

// Counts comparisons over a test and fails when there were none.
class Comparisons {
 public:
  ~Comparisons() {
    EXPECT_GT(count_, 0) << "nothing was compared";
    ::testing::Test::RecordProperty("comparisons", count_);
  }
  void close(const OpOutputs& found, const OpOutputs& expected, double bound, const std::string& what);
  void equal(const OpOutputs& found, const OpOutputs& expected, const std::string& what);

 private:
  int count_ = 0;
};

}  // namespace tessera::ops_test
