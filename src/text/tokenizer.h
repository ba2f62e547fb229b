// Tokenizer: text to token ids and back, for every kind of published vocabulary. The pipeline is that of the
// HuggingFace tokenizers library, whose ids, offsets and texts are the reference: added tokens are found, the rest
// is normalized, cut into words, and each word becomes tokens; a post-processor puts special tokens around them.
// A tokenizer is immutable and may be used from many threads at once.
//
// Input that is not valid UTF-8 is encoded as if each maximal ill-formed part were U+FFFD.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/added_tokens.h"
#include "text/encoding.h"
#include "text/postprocessor.h"

namespace tessera {

struct GgufVocabulary;
struct TokenizerParts;
class DecoderRun;

enum class DecodeSpecial { kKeep, kSkip };
enum class Truncation { kNone, kAsFileSays };

struct EncodeOptions {
  SpecialTokens specials = SpecialTokens::kAdd;
  AddedTokenText added_tokens = AddedTokenText::kParse;
  // A tokenizer.json may carry a length to cut at. It is not applied unless asked for: a text that is silently cut
  // is a wrong text.
  Truncation truncation = Truncation::kNone;
};

// The files of a folder that describe its tokenizer, as text; empty where there is none.
struct TokenizerFiles {
  std::string tokenizer_json;
  std::string tokenizer_config_json;
  std::string special_tokens_map_json;
};

class Tokenizer {
 public:
  // tokenizer.json with its companions. `name` is used in messages. An unknown component or option is an error
  // (kUnsupported) that names it.
  [[nodiscard]] static Result<Tokenizer> from_json(const TokenizerFiles& files, const std::string& name);

  // Reads those files from a folder.
  [[nodiscard]] static Result<Tokenizer> from_folder(const std::string& path);

  // The vocabulary inside a GGUF file (text/gguf_vocabulary.h).
  [[nodiscard]] static Result<Tokenizer> from_gguf(const GgufVocabulary& vocabulary, const std::string& name);

  // For loaders: puts the parts together.
  [[nodiscard]] static Result<Tokenizer> assemble(TokenizerParts parts);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Token ids of a text. kResourceLimit for more than 2 GiB, or where a pattern's bound on effort is reached;
  // kBadData where the vocabulary has no token for a part of the text and no unknown token.
  [[nodiscard]] Result<std::vector<int32_t>> encode(std::string_view text,
                                                    const EncodeOptions& options = {}) const;

  // The same with offsets, pieces, type ids and the mask of special tokens.
  [[nodiscard]] Result<Encoding> encode_details(std::string_view text, const EncodeOptions& options = {},
                                                OffsetUnit unit = OffsetUnit::kBytes) const;

  // Two texts, as models for pairs want them.
  [[nodiscard]] Result<Encoding> encode_pair(std::string_view first, std::string_view second,
                                             const EncodeOptions& options = {},
                                             OffsetUnit unit = OffsetUnit::kBytes) const;

  // The text of ids. Ids that the vocabulary does not have are left out.
  [[nodiscard]] std::string decode(std::span<const int32_t> ids,
                                   DecodeSpecial special = DecodeSpecial::kKeep) const;

  [[nodiscard]] std::optional<int32_t> token_to_id(std::string_view piece) const;
  // The piece as the vocabulary spells it; empty for an id that is not there.
  [[nodiscard]] std::string id_to_token(int32_t id) const;
  [[nodiscard]] bool has_token(int32_t id) const;
  // True for control tokens. (Not the same as "left out by DecodeSpecial::kSkip": see decoded_piece in the source.)
  [[nodiscard]] bool is_special(int32_t id) const;

  // One more than the largest id.
  [[nodiscard]] int32_t vocabulary_size() const;
  // Pieces, added tokens included, as HuggingFace's get_vocab_size counts.
  [[nodiscard]] size_t token_count() const;
  [[nodiscard]] const std::vector<AddedToken>& added_tokens() const;

  [[nodiscard]] std::optional<int32_t> bos_id() const;
  [[nodiscard]] std::optional<int32_t> eos_id() const;
  [[nodiscard]] std::optional<int32_t> unknown_id() const;
  [[nodiscard]] std::optional<int32_t> pad_id() const;
  // Tokens that end a turn or a text, as far as the vocabulary itself says so: eos, and GGUF's eot and eom.
  [[nodiscard]] std::vector<int32_t> end_ids() const;
  // The special tokens that encode puts around one text, in order.
  [[nodiscard]] std::vector<int32_t> template_ids() const;

  // What a person should know about this tokenizer: ids that the file declares otherwise than they are used.
  [[nodiscard]] const std::vector<std::string>& notes() const;

 private:
  friend class StreamDecoder;
  struct State;
  enum class TextMemory { kOrdinary, kMapped };  // kMapped: the text is a whole mapped file
  [[nodiscard]] static Result<Tokenizer> from_json_text(std::string_view text, TextMemory memory,
                                                        const TokenizerFiles& files, const std::string& name);
  explicit Tokenizer(std::unique_ptr<State> state);
  [[nodiscard]] DecoderRun start_decoding() const;
  void decode_one(DecoderRun& run, int32_t id, DecodeSpecial special) const;
  std::unique_ptr<State> state_;
};

}  // namespace tessera
