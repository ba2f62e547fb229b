// Writing a model as a GGUF file in other formats: every matrix that a precision policy names is decoded from the format it has
// and encoded in the one it gets, row by row from the mapped file; the rest, metadata and vocabulary are carried over as they
// are. The file appears whole or not at all (checkpoint/tensor_file_writer.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "arch/load.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "model/pack_weights.h"
#include "model/precision.h"

namespace tessera {

// How much a squared error in each column of a matrix counts, by the name of its tensor.
using ColumnImportance = std::map<std::string, std::vector<float>, std::less<>>;

struct QuantizedTensor {
  std::string name;
  Shape shape;
  Format from;
  Format to;
  uint64_t bytes = 0;
};

struct QuantizeReport {
  std::vector<QuantizedTensor> tensors;
  uint64_t bytes = 0;  // of all tensors
  int64_t requantized =
      0;  // tensors that were quantised already, in another format: an error on top of an error
};

// The model must come from a GGUF file. `importance` may be empty; a tensor it does not know is weighed evenly.
[[nodiscard]] Result<QuantizeReport> quantize_gguf(const LoadedModel& model, const PrecisionPolicy& policy,
                                                   const ColumnImportance& importance, ThreadPool& threads,
                                                   const PackProgress& progress, const std::string& output);

// Reads the file at `path` again and compares it with what `model` gives in the formats of the policy: every tensor, every byte.
[[nodiscard]] Status verify_quantized(const LoadedModel& model, const PrecisionPolicy& policy,
                                      const ColumnImportance& importance, ThreadPool& threads,
                                      const PackProgress& progress, const std::string& path);

}  // namespace tessera
