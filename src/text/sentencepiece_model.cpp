// SentencePiece's model file: a protocol buffer (sentencepiece_model.proto) of which we read the pieces, and of the
// trainer's and normalizer's settings those that change what encoding gives.
#include <bit>
#include <cstring>

#include "text/tokenizer_files.h"

namespace tessera {
namespace {

enum class Wire : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct Field {
  uint32_t number = 0;
  Wire wire = Wire::kVarint;
  uint64_t value = 0;      // kVarint, kFixed32, kFixed64
  std::string_view bytes;  // kBytes
};

// Reads fields one after another; every length is checked against what is left.
class Message {
 public:
  explicit Message(std::string_view data) : data_(data) {}
  [[nodiscard]] bool done() const { return at_ == data_.size(); }

  Result<Field> next() {
    Field field;
    TESSERA_TRY(const uint64_t key, varint());
    field.number = static_cast<uint32_t>(key >> 3);
    field.wire = static_cast<Wire>(key & 7);
    switch (field.wire) {
      case Wire::kVarint: {
        TESSERA_TRY(field.value, varint());
        return field;
      }
      case Wire::kFixed32:
      case Wire::kFixed64: {
        const size_t size = field.wire == Wire::kFixed32 ? 4 : 8;
        if (data_.size() - at_ < size) return bad();
        std::memcpy(&field.value, data_.data() + at_, size);
        at_ += size;
        return field;
      }
      case Wire::kBytes: {
        TESSERA_TRY(const uint64_t size, varint());
        if (size > data_.size() - at_) return bad();
        field.bytes = data_.substr(at_, size);
        at_ += size;
        return field;
      }
    }
    return bad();
  }

 private:
  Failure bad() const {
    return fail(ErrorCode::kBadData, "not a SentencePiece model: broken protocol buffer at byte {}", at_);
  }
  Result<uint64_t> varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == data_.size()) return bad();
      const auto byte = static_cast<unsigned char>(data_[at_++]);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    return bad();
  }
  std::string_view data_;
  size_t at_ = 0;
};

Status read_piece(std::string_view data, GgufVocabulary& out) {
  Message message(data);
  std::string piece;
  float score = 0;
  uint64_t type = 1;
  while (!message.done()) {
    TESSERA_TRY(const Field field, message.next());
    if (field.number == 1 && field.wire == Wire::kBytes) piece = field.bytes;
    if (field.number == 2 && field.wire == Wire::kFixed32)
      score = std::bit_cast<float>(static_cast<uint32_t>(field.value));
    if (field.number == 3 && field.wire == Wire::kVarint) type = field.value;
  }
  if (type < 1 || type > static_cast<uint64_t>(GgufTokenType::kByte))
    return fail(ErrorCode::kBadData, "piece {}: unknown type {}", out.tokens.size(), type);
  out.tokens.push_back(std::move(piece));
  out.scores.push_back(score);
  out.types.push_back(static_cast<GgufTokenType>(type));
  return {};
}

struct Trainer {
  uint64_t model_type = 1;
  int32_t unknown_id = 0;
  int32_t bos_id = 1;
  int32_t eos_id = 2;
  int32_t pad_id = -1;
};

Status read_trainer(std::string_view data, Trainer& trainer, GgufVocabulary& out) {
  Message message(data);
  while (!message.done()) {
    TESSERA_TRY(const Field field, message.next());
    if (field.wire != Wire::kVarint) continue;
    const auto id = static_cast<int32_t>(field.value);  // negative ids are sign-extended to 64 bits
    if (field.number == 3) trainer.model_type = field.value;
    if (field.number == 24) out.whitespace_as_suffix = field.value != 0;
    if (field.number == 40) trainer.unknown_id = id;
    if (field.number == 41) trainer.bos_id = id;
    if (field.number == 42) trainer.eos_id = id;
    if (field.number == 43) trainer.pad_id = id;
  }
  return {};
}

Status read_normalizer(std::string_view data, GgufVocabulary& out) {
  Message message(data);
  while (!message.done()) {
    TESSERA_TRY(const Field field, message.next());
    if (field.number == 2 && field.wire == Wire::kBytes) out.precompiled_charsmap = field.bytes;
    if (field.wire != Wire::kVarint) continue;
    if (field.number == 3) out.add_space_prefix = field.value != 0;
    if (field.number == 4) out.remove_extra_whitespaces = field.value != 0;
    if (field.number == 5) out.escape_whitespaces = field.value != 0;
  }
  return {};
}

}  // namespace

Result<GgufVocabulary> read_sentencepiece_model(std::string_view file) {
  GgufVocabulary out;
  out.add_space_prefix = true;
  out.remove_extra_whitespaces = true;
  Trainer trainer;
  Message message(file);
  while (!message.done()) {
    TESSERA_TRY(const Field field, message.next());
    if (field.wire != Wire::kBytes) continue;
    if (field.number == 1) TESSERA_TRY_STATUS(read_piece(field.bytes, out));
    if (field.number == 2) TESSERA_TRY_STATUS(read_trainer(field.bytes, trainer, out));
    if (field.number == 3) TESSERA_TRY_STATUS(read_normalizer(field.bytes, out));
  }
  if (out.tokens.empty()) return fail(ErrorCode::kBadData, "not a SentencePiece model: it has no pieces");
  if (trainer.model_type != 1 && trainer.model_type != 2)
    return fail(ErrorCode::kUnsupported, "SentencePiece model type {}: unigram (1) and BPE (2) are supported",
                trainer.model_type);
  out.model = trainer.model_type == 1 ? "t5" : "llama";
  const auto known = [&](int32_t id) {
    return id >= 0 && static_cast<size_t>(id) < out.tokens.size() ? std::optional(id) : std::nullopt;
  };
  out.unknown_id = known(trainer.unknown_id);
  out.bos_id = known(trainer.bos_id);
  out.eos_id = known(trainer.eos_id);
  out.pad_id = known(trainer.pad_id);
  out.add_bos = false;  // the file does not say; tokenizer_config.json does
  out.add_eos = false;
  return out;
}

Result<Tokenizer> tokenizer_from_sentencepiece(std::string_view file, const std::string& name) {
  auto vocabulary = read_sentencepiece_model(file);
  if (!vocabulary) return with_context(vocabulary.error(), name);
  return Tokenizer::from_gguf(*vocabulary, name);
}

}  // namespace tessera
