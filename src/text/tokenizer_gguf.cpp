// The vocabulary inside a GGUF file to a Tokenizer.
#include <algorithm>
#include <array>

#include "text/bpe.h"
#include "text/byte_level.h"
#include "text/gguf_pretokenizers.h"
#include "text/gguf_vocabulary.h"
#include "text/sentencepiece_normalizer.h"
#include "text/tokenizer.h"
#include "text/tokenizer_parts.h"
#include "text/trie_model.h"
#include "text/unigram.h"
#include "text/wordlevel.h"

namespace tessera {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

bool is_added(GgufTokenType type) {
  return type == GgufTokenType::kControl || type == GgufTokenType::kUnknown ||
         type == GgufTokenType::kUserDefined;
}

Result<Vocabulary> make_vocabulary(const GgufVocabulary& file) {
  Vocabulary vocabulary;
  size_t bytes = 0;
  for (const std::string& token : file.tokens) bytes += token.size();
  vocabulary.reserve(file.tokens.size(), bytes);
  for (size_t id = 0; id < file.tokens.size(); ++id)
    TESSERA_TRY_STATUS(vocabulary.add(file.tokens[id], static_cast<int64_t>(id)));
  return vocabulary;
}

void add_added_tokens(const GgufVocabulary& file, TokenizerParts& parts) {
  for (size_t id = 0; id < file.tokens.size(); ++id) {
    const GgufTokenType type = file.type(id);
    if (!is_added(type) || file.tokens[id].empty()) continue;
    AddedToken token;
    token.id = static_cast<int32_t>(id);
    token.content = file.tokens[id];
    token.normalized = false;
    token.special = type != GgufTokenType::kUserDefined;
    parts.added_tokens.push_back(std::move(token));
  }
}

EdgeToken edge(const GgufVocabulary& file, bool wanted, std::optional<int32_t> id) {
  if (!wanted || !id.has_value()) return {};
  return {*id, file.tokens[static_cast<size_t>(*id)]};
}

// An id that the format gives by default; only where the file has that many tokens.
std::optional<int32_t> id_or(std::optional<int32_t> id, int32_t fallback, const GgufVocabulary& file) {
  if (id.has_value()) return id;
  return static_cast<size_t>(fallback) < file.tokens.size() ? std::optional(fallback) : std::nullopt;
}

// Which pieces joining may give.
std::vector<bool> mergeable_ids(const GgufVocabulary& file) {
  std::vector<bool> out(file.tokens.size());
  for (size_t id = 0; id < out.size(); ++id) {
    const GgufTokenType type = file.type(id);
    out[id] = type == GgufTokenType::kNormal || type == GgufTokenType::kUserDefined ||
              type == GgufTokenType::kUnused || type == GgufTokenType::kUndefined;
  }
  return out;
}

// The normalizer and the decoder that SentencePiece's settings ask for.
Status set_normalizer(const GgufVocabulary& file, TokenizerParts& parts) {
  SentencePieceRules rules;
  rules.add_dummy_prefix = file.add_space_prefix.value_or(true);
  rules.remove_extra_whitespaces = file.remove_extra_whitespaces.value_or(false);
  rules.escape_whitespaces = file.escape_whitespaces.value_or(true);
  rules.whitespace_as_suffix = file.whitespace_as_suffix.value_or(false);
  if (!file.precompiled_charsmap.empty()) {
    TESSERA_TRY(Charsmap map, Charsmap::parse(file.precompiled_charsmap, "precompiled_charsmap"));
    rules.charsmap.emplace(std::move(map));
  }
  const bool strips = rules.add_dummy_prefix && !rules.whitespace_as_suffix;
  parts.decoder = make_sentencepiece_decoder(strips ? LeadingSpace::kStrip : LeadingSpace::kKeep);
  parts.normalizer = make_sentencepiece_normalizer(std::move(rules));
  return {};
}

// "llama": SentencePiece BPE.
Status read_sentencepiece_bpe(const GgufVocabulary& file, TokenizerParts& parts) {
  if (file.scores.empty()) return fail(ErrorCode::kBadData, "tokenizer.ggml.scores is missing");
  parts.bos_id = id_or(file.bos_id, 1, file);
  parts.eos_id = id_or(file.eos_id, 2, file);
  parts.unknown_id = id_or(file.unknown_id, 0, file);
  TESSERA_TRY_STATUS(set_normalizer(file, parts));
  Bpe::Options options;
  options.byte_fallback = true;
  options.fuse_unknown = true;
  if (parts.unknown_id.has_value()) options.unknown = file.tokens[static_cast<size_t>(*parts.unknown_id)];
  TESSERA_TRY(Vocabulary vocabulary, make_vocabulary(file));
  TESSERA_TRY(parts.model, Bpe::create_from_scores(std::move(vocabulary), file.scores, mergeable_ids(file),
                                                   std::move(options), "tokenizer.ggml.tokens"));
  parts.postprocessor = make_edge_tokens(edge(file, file.add_bos.value_or(true), parts.bos_id),
                                         edge(file, file.add_eos.value_or(false), parts.eos_id));
  return {};
}

Result<std::vector<Bpe::Merge>> read_merges(const GgufVocabulary& file) {
  std::vector<Bpe::Merge> merges;
  merges.reserve(file.merges.size());
  for (const std::string& line : file.merges) {
    // Pieces in SentencePiece's spelling have no spaces either; the first character may be anything.
    const size_t space = line.find(' ', 1);
    if (space == std::string::npos)
      return fail(ErrorCode::kBadData, "tokenizer.ggml.merges: entry {}: expected two pieces", merges.size());
    const std::string_view view = line;
    merges.emplace_back(view.substr(0, space), view.substr(space + 1));
  }
  return merges;
}

// "gpt2": BPE over bytes, cut by the named pre-tokenizer.
Status read_byte_bpe(const GgufVocabulary& file, TokenizerParts& parts) {
  const bool named_by_model = file.model == "gemma4";
  TESSERA_TRY(GgufPreTokenizer pre, gguf_pretokenizer(named_by_model ? file.model : file.pre));
  Bpe::Options options;
  options.ignore_merges = pre.ignore_merges;
  parts.normalizer = std::move(pre.normalizer);
  parts.pretokenizer = std::move(pre.pretokenizer);
  if (pre.pieces_are_text) {
    options.byte_fallback = true;
    options.fuse_unknown = true;
    if (file.unknown_id.has_value()) options.unknown = file.tokens[static_cast<size_t>(*file.unknown_id)];
    parts.normalizer = make_replace(" ", std::string(kSpaceMark));
    parts.decoder = make_sentencepiece_decoder(LeadingSpace::kKeep);
  } else {
    options.alphabet = pre.words_are_spelled ? Bpe::Alphabet::kCharacters : Bpe::Alphabet::kBytes;
    parts.decoder = make_byte_level_decoder();
  }
  parts.unknown_id = file.unknown_id;
  TESSERA_TRY(Vocabulary vocabulary, make_vocabulary(file));
  if (file.merges.empty() && pre.ranks_are_ids) {
    TESSERA_TRY(parts.model, Bpe::create_from_ranks(std::move(vocabulary), mergeable_ids(file),
                                                    std::move(options), "tokenizer.ggml.tokens"));
  } else if (file.merges.empty()) {
    return fail(ErrorCode::kBadData, "tokenizer.ggml.merges is missing");
  } else {
    TESSERA_TRY(const auto merges, read_merges(file));
    TESSERA_TRY(parts.model,
                Bpe::create(std::move(vocabulary), merges, std::move(options), "tokenizer.ggml.merges"));
  }
  const bool roberta = file.cls_id.has_value() && file.separator_id.has_value();
  const std::optional<int32_t> first = roberta ? file.cls_id : file.bos_id;
  const std::optional<int32_t> last = roberta ? file.separator_id : file.eos_id;
  parts.postprocessor = make_edge_tokens(edge(file, file.add_bos.value_or(pre.add_bos), first),
                                         edge(file, file.add_eos.value_or(false), last));
  return {};
}

// "t5": unigram.
Status read_unigram(const GgufVocabulary& file, TokenizerParts& parts) {
  if (file.scores.empty()) return fail(ErrorCode::kBadData, "tokenizer.ggml.scores is missing");
  parts.eos_id = id_or(file.eos_id, 1, file);
  parts.unknown_id = id_or(file.unknown_id, 2, file);
  TESSERA_TRY_STATUS(set_normalizer(file, parts));
  TESSERA_TRY(Vocabulary vocabulary, make_vocabulary(file));
  std::vector<double> scores(file.scores.begin(), file.scores.end());
  Unigram::Options options;
  options.unknown_id = parts.unknown_id.value_or(Vocabulary::kNone);
  options.usable = mergeable_ids(file);
  for (size_t id = 0; id < options.usable.size(); ++id)
    if (file.type(id) == GgufTokenType::kUnused) options.usable[id] = false;
  options.byte_fallback =
      std::find(file.types.begin(), file.types.end(), GgufTokenType::kByte) != file.types.end();
  TESSERA_TRY(parts.model, Unigram::create(std::move(vocabulary), std::move(scores), std::move(options),
                                           "tokenizer.ggml.tokens"));
  parts.postprocessor = make_edge_tokens(edge(file, file.add_bos.value_or(false), file.bos_id),
                                         edge(file, file.add_eos.value_or(true), parts.eos_id));
  return {};
}

// "bert": WordPiece. The file spells the beginning of a word with a space mark and leaves the rest bare; here
// pieces get BERT's own spelling back.
Status read_wordpiece(const GgufVocabulary& file, TokenizerParts& parts) {
  Vocabulary vocabulary;
  for (size_t id = 0; id < file.tokens.size(); ++id) {
    const std::string& token = file.tokens[id];
    std::string piece = token;
    if (token.starts_with(kSpaceMark) && token.size() > kSpaceMark.size())
      piece = token.substr(kSpaceMark.size());
    else if (!is_added(file.type(id)) && !(token.starts_with('[') && token.ends_with(']')))
      piece = "##" + token;
    TESSERA_TRY_STATUS(vocabulary.add(piece, static_cast<int64_t>(id)));
  }
  const std::optional<int32_t> cls = id_or(file.cls_id.has_value() ? file.cls_id : file.bos_id, 101, file);
  const std::optional<int32_t> separator = id_or(file.separator_id, 102, file);
  parts.unknown_id = id_or(file.unknown_id, 100, file);
  parts.pad_id = id_or(file.pad_id, 0, file);
  parts.bos_id = cls;
  const bool lowercase = file.lowercase.value_or(true);
  parts.normalizer = make_bert_normalizer(lowercase, file.strip_accents.value_or(lowercase));
  parts.pretokenizer = make_bert_pretokenizer();
  parts.decoder = make_wordpiece_decoder();
  WordPiece::Options options;
  if (parts.unknown_id.has_value()) options.unknown = file.tokens[static_cast<size_t>(*parts.unknown_id)];
  parts.model = std::make_unique<WordPiece>(std::move(vocabulary), std::move(options));
  if (cls.has_value() && separator.has_value())
    parts.postprocessor = make_bert_processing(edge(file, true, cls), edge(file, true, separator));
  return {};
}

// "rwkv": the longest piece, again and again. Pieces are bytes with escapes.
Status read_rwkv(const GgufVocabulary& file, TokenizerParts& parts) {
  std::vector<TrieModel::Piece> pieces;
  for (size_t id = 0; id < file.tokens.size(); ++id) {
    if (is_added(file.type(id))) continue;
    TESSERA_TRY(std::string bytes, unescape_bytes(file.tokens[id]));
    if (!bytes.empty()) pieces.push_back({static_cast<int32_t>(id), std::move(bytes)});
  }
  TESSERA_TRY(parts.model, TrieModel::create(pieces, "tokenizer.ggml.tokens"));
  parts.decoder = make_byte_level_decoder();
  parts.postprocessor = make_edge_tokens(edge(file, file.add_bos.value_or(false), file.bos_id),
                                         edge(file, file.add_eos.value_or(false), file.eos_id));
  return {};
}

struct Kind {
  std::string_view name;
  Status (*read)(const GgufVocabulary&, TokenizerParts&);
};
constexpr std::array<Kind, 6> kKinds = {{
    {"llama", read_sentencepiece_bpe},
    {"gpt2", read_byte_bpe},
    {"gemma4", read_byte_bpe},
    {"t5", read_unigram},
    {"bert", read_wordpiece},
    {"rwkv", read_rwkv},
}};

}  // namespace

Result<TokenizerParts> gguf_tokenizer_parts(const GgufVocabulary& vocabulary, const std::string& name) {
  const auto kind =
      std::find_if(kKinds.begin(), kKinds.end(), [&](const Kind& k) { return k.name == vocabulary.model; });
  if (kind == kKinds.end())
    return fail(ErrorCode::kUnsupported, "{}: tokenizer.ggml.model: unknown model \"{}\"", name,
                vocabulary.model);
  if (!vocabulary.types.empty() && vocabulary.types.size() != vocabulary.tokens.size())
    return fail(ErrorCode::kBadData, "{}: expected {} token types, found {}", name, vocabulary.tokens.size(),
                vocabulary.types.size());
  TokenizerParts parts;
  parts.name = name;
  parts.bos_id = vocabulary.bos_id;
  parts.eos_id = vocabulary.eos_id;
  parts.pad_id = vocabulary.pad_id;
  if (vocabulary.eot_id.has_value()) parts.end_ids.push_back(*vocabulary.eot_id);
  if (vocabulary.eom_id.has_value()) parts.end_ids.push_back(*vocabulary.eom_id);
  if (auto status = kind->read(vocabulary, parts); !status) return with_context(status.error(), name);
  add_added_tokens(vocabulary, parts);
  return parts;
}

Result<Tokenizer> Tokenizer::from_gguf(const GgufVocabulary& vocabulary, const std::string& name) {
  TESSERA_TRY(TokenizerParts parts, gguf_tokenizer_parts(vocabulary, name));
  return assemble(std::move(parts));
}

}  // namespace tessera
