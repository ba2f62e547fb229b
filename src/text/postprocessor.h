// Post-processors: what happens to the tokens of one or two inputs at the end: special tokens around them, type
// ids, white space taken out of offsets.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/encoding.h"

namespace tessera {

enum class SpecialTokens { kAdd, kOmit };

class PostProcessor {
 public:
  virtual ~PostProcessor() = default;
  // `inputs` holds one encoding or two; afterwards what they became, to be put together in order.
  virtual void apply(std::vector<Encoding>& inputs, SpecialTokens specials) const = 0;
  // How many tokens are added to one input, or two.
  [[nodiscard]] virtual size_t added_tokens(size_t inputs) const = 0;
  // Ids that may be added, in the order of the template for one input.
  [[nodiscard]] virtual std::vector<int32_t> special_ids() const { return {}; }
};

// A component of tokenizer.json; `where` names it in messages. Null gives nullptr.
[[nodiscard]] Result<std::unique_ptr<PostProcessor>> create_postprocessor(const Json& value,
                                                                          const std::string& where);

// [bos] A [eos] for one input, the same with B behind it for two. An id below zero is left out.
struct EdgeToken {
  int32_t id = -1;
  std::string piece;
};
[[nodiscard]] std::unique_ptr<PostProcessor> make_edge_tokens(EdgeToken first, EdgeToken last);

// [CLS] A [SEP] B [SEP], type ids 0 and 1.
[[nodiscard]] std::unique_ptr<PostProcessor> make_bert_processing(EdgeToken cls, EdgeToken sep);

}  // namespace tessera
