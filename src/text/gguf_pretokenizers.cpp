// The pre-tokenizers that tokenizer.ggml.pre names. A row says how the tokenizer that the name was given for
// works: its normal form and the steps that cut the text, as the model's own tokenizer files have them. A name
// that is not here is refused: the wrong pre-tokenizer gives fluent wrong text.
#include "text/gguf_pretokenizers.h"

#include <algorithm>
#include <array>

namespace tessera {
namespace {

// Patterns, in tokenizer.json's dialect, named by what they do.
constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDigit = R"(\p{N})";
constexpr std::string_view kDigitRun = R"(\p{N}+)";
constexpr std::string_view kThreeDigits = R"(\p{N}{1,3})";
constexpr std::string_view kAsciiThreeDigits = "[0-9][0-9][0-9]";
constexpr std::string_view kPunctuationRun = R"([\p{P}$+<=>^`|~]+)";
constexpr std::string_view kLineBreak = R"([\r\n])";
// Words with one odd character in front, numbers of up to three digits.
constexpr std::string_view kCl100k =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// The same with single digits; with marks in words; without contractions; with number runs of any length.
constexpr std::string_view kCl100kDigit =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kCl100kMarks =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kCl100kNoContractions =
    R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kCl100kNumbers =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// White space in runs of powers of two.
constexpr std::string_view kCl100kCascade =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})";
// Words cut where lower case meets upper case.
constexpr std::string_view kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kO200kDigit =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kHanApart =
    R"([\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kBailing =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr std::string_view kSeedCoder =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kExaoneMoe =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)";
// Chinese and Japanese apart, then a pattern whose words may start with an ASCII sign.
constexpr std::string_view kCjkRun = R"([\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)";
constexpr std::string_view kSignedWords =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kSignedWordsNoBreaks =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)";
constexpr std::string_view kAsianRun =
    R"([\x{4e00}-\x{9fff}\x{3400}-\x{4dbf}\x{f900}-\x{faff}\x{3040}-\x{309f}\x{30a0}-\x{30ff}\x{ff65}-\x{ff9f}\x{2f00}-\x{2fdf}\x{e40}-\x{e7f}\x{e80}-\x{eff}\x{1780}-\x{17ff}\x{1000}-\x{109f}\x{aa60}-\x{aa7f}\x{a9e0}-\x{a9ff}\x{ac00}-\x{d7af}\x{1100}-\x{11ff}]+)";
constexpr std::string_view kYoutuRuns =
    R"([\x{ac00}-\x{d7a3}\x{3131}-\x{318e}]+|[\x{ff01}\x{2026}\x{201c}\x{201d}\x{2018}\x{2019}\x{2014}\x{ff1a}\x{ff1b}\x{ff0c}\x{3001}-\x{303f}\x{fe30}-\x{fe4f}]+|[\x{3105}-\x{312f}]+|[\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)";
constexpr std::string_view kBloom = R"( ?[^(\s|.,!?…。，、।۔،)]+)";
constexpr std::string_view kOldCjkRun = R"([\x{4e00}-\x{9fa5}\x{800}-\x{4e00}\x{ac00}-\x{d7ff}]+)";
constexpr std::string_view kSpacedLetters = R"(\s?\p{L}+)";
constexpr std::string_view kSpacedPunctuation = R"(\s?\p{P}+)";
// Letters that have a case, of some scripts, with a space in front.
constexpr std::string_view kSpacedCasedLetters =
    R"(\s?[\x{41}-\x{5a}\x{61}-\x{7a}\x{b5}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1ba}\x{1bc}-\x{1bf})"
    R"(\x{1c4}-\x{293}\x{295}-\x{2af}\x{370}-\x{373}\x{376}\x{377}\x{37b}-\x{37d}\x{37f}\x{386})"
    R"(\x{388}-\x{38a}\x{38c}\x{38e}-\x{3a1}\x{3a3}-\x{3f5}\x{3f7}-\x{481}\x{48a}-\x{52f}\x{531}-\x{556})"
    R"(\x{10a0}-\x{10c5}\x{13a0}-\x{13f5}\x{13f8}-\x{13fd}\x{1c90}-\x{1cba}\x{1cbd}-\x{1cbf})"
    R"(\x{1d00}-\x{1d2b}\x{1d6b}-\x{1d77}\x{1d79}-\x{1d9a}\x{1e00}-\x{1f15}\x{1f18}-\x{1f1d})"
    R"(\x{1f20}-\x{1f45}\x{1f48}-\x{1f4d}\x{1f50}-\x{1f57}\x{1f59}\x{1f5b}\x{1f5d}\x{1f5f}-\x{1f7d})"
    R"(\x{1f80}-\x{1fb4}\x{1fb6}-\x{1fbc}\x{1fbe}\x{1fc2}-\x{1fc4}\x{1fc6}-\x{1fcc}\x{1fd0}-\x{1fd3})"
    R"(\x{1fd6}-\x{1fdb}\x{1fe0}-\x{1fec}\x{1ff2}-\x{1ff4}\x{1ff6}-\x{1ffc}\x{2102}\x{2107})"
    R"(\x{210a}-\x{2113}\x{2115}\x{2119}-\x{211d}\x{2124}\x{2126}\x{2128}\x{212a}-\x{212d}\x{212f}-\x{2134})"
    R"(\x{2139}\x{213c}-\x{213f}\x{2145}-\x{2149}\x{214e}\x{2183}\x{2184}\x{2c00}-\x{2c7b}\x{2c7e}-\x{2ce4})"
    R"(\x{2ceb}-\x{2cee}\x{2cf2}\x{2cf3}\x{a640}-\x{a66d}\x{a680}-\x{a69b}\x{a722}-\x{a76f})"
    R"(\x{a771}-\x{a787}\x{a78b}-\x{a78e}\x{ab70}-\x{abbf}\x{fb00}-\x{fb06}\x{fb13}-\x{fb17})"
    R"(\x{ff21}-\x{ff3a}\x{ff41}-\x{ff5a}\x{10400}-\x{1044f}\x{104b0}-\x{104d3}\x{104d8}-\x{104fb})"
    R"(\x{10c80}-\x{10cb2}\x{10cc0}-\x{10cf2}\x{118a0}-\x{118df}\x{1e900}-\x{1e943}]+)";
constexpr std::string_view kSpacedSigns =
    R"(\s?[!-/:-~\x{ff01}-\x{ff0f}\x{ff1a}-\x{ff5e}\x{2018}-\x{201f}\x{3000}-\x{3002}]+)";
constexpr std::string_view kTrailingSpace = R"(\s+$)";
constexpr std::string_view kSentinel = "<sentinel:[0-9]+>";
constexpr std::string_view kImageToken = "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z";
constexpr std::string_view kTabsAndBreaks = R"([\t\n]|    |  )";
constexpr std::string_view kPunctuationSign = R"([\p{P}!-/:-@\[-`{-~])";
constexpr std::string_view kTriplesToTheRight = R"(\d{1,3}(?=(?:\d{3})*\b))";
constexpr std::string_view kLines = R"([^\n]+|[\n]+)";
// A step that is no pattern: runs of digits cut into threes from their right end.
constexpr std::string_view kDigitTriples = "digit triples";
// Another: GPT-2's cuts, and from there on text spelled in the byte-level alphabet, so that later patterns see the
// spelling.
constexpr std::string_view kSpelledGpt2 = "spelled";

enum Flags : unsigned {
  kPlain = 0,
  kNfc = 1,
  kIgnoreMerges = 2,
  kAddBos = 4,
  kRanksAreIds = 8,
  kPiecesAreText = 16,
  kSpelled = 32,
};

struct Row {
  std::string_view names;  // separated by spaces
  std::array<std::string_view, 6> steps;
  size_t step_count = 0;
  unsigned flags = kPlain;
};

template <class... Steps>
constexpr Row row(std::string_view names, unsigned flags, Steps... steps) {
  return {names, {std::string_view(steps)...}, sizeof...(steps), flags};
}

constexpr Row kRows[] = {
    row("gpt-2 phi-2 jina-es jina-de jina-v2-es jina-v2-de jina-v1-en jina-v2-code roberta-bpe gigachat "
        "a.x-4.0 mellum "
        "modern-bert jais trillion granite-docling exaone4",
        kPlain, kGpt2),
    row("mpt olmo", kNfc, kGpt2),
    row("starcoder refact command-r smollm codeshell exaone minerva-7b mellum2", kPlain, kDigit, kGpt2),
    row("llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
        kIgnoreMerges | kAddBos, kCl100k),
    row("dbrx smaug-bpe glm4 chatglm-bpe", kPlain, kCl100k),
    row("qwen2", kNfc, kCl100kDigit),
    row("qwen35", kNfc, kCl100kMarks),
    row("deepseek-r1-qwen kormo f2llmv2 stablelm2 hunyuan megrez grok-2 solar-open", kPlain, kCl100kDigit),
    row("ufakzeka", kPlain, kCl100kNoContractions),
    row("minicpm5", kIgnoreMerges, kThreeDigits, kCl100kNumbers),
    row("jais-2", kPlain, kCl100kCascade),
    row("laguna", kPlain, kLines, kCl100kDigit),
    row("gpt-4o llama4 kanana2 talkie minimax-m2", kPlain, kO200k),
    row("granite-embed-multi-97m", kIgnoreMerges, kO200k),
    row("tekken", kIgnoreMerges | kAddBos, kTekken),
    row("youtu", kIgnoreMerges, kYoutuRuns, kO200kDigit),
    row("tiny_aya cohere2moe", kPlain, kTriplesToTheRight, kO200k),
    row("kimi-k2", kRanksAreIds | kIgnoreMerges, kHanApart),
    row("bailingmoe bailingmoe2 llada-moe", kPlain, kBailing),
    row("seed-coder", kPlain, kSeedCoder),
    row("exaone-moe", kPlain, kExaoneMoe),
    row("deepseek-llm", kPlain, kLineBreak, kSpacedCasedLetters, kSpacedSigns, kTrailingSpace, kOldCjkRun,
        kDigitRun),
    row("deepseek-coder", kPlain, kLineBreak, kSpacedLetters, kSpacedPunctuation, kOldCjkRun, kDigit),
    row("deepseek-v3 hunyuan-dense joyai-llm hy_v4", kPlain, kThreeDigits, kCjkRun, kSignedWords),
    row("spark2_5", kPlain, kThreeDigits, kCjkRun, kSignedWordsNoBreaks, kDigit),
    row("afmoe", kPlain, kDigitTriples, kAsianRun, kSignedWords),
    row("superbpe", kPlain, kDigitRun, kDigitTriples),
    row("falcon", kSpelled, kPunctuationRun, kSpelledGpt2, kDigitRun, kAsciiThreeDigits),
    row("default", kPlain, kPunctuationRun, kGpt2, kDigitRun, kAsciiThreeDigits),
    row("poro-chat bloom gpt3-finnish", kPlain, kBloom),
    row("viking", kPlain, kBloom, kDigit),
    row("chameleon", kAddBos, kSentinel, kImageToken, kTabsAndBreaks, kDigit, kPunctuationSign, kGpt2),
    row("gemma4 granite-embed-multi-311m", kPiecesAreText | kAddBos),
    row("sarvam-moe", kPiecesAreText),
};

// True when `name` is one of the space-separated `names`.
bool lists(std::string_view names, std::string_view name) {
  while (!names.empty()) {
    const size_t end = names.find(' ');
    if (names.substr(0, end) == name) return true;
    if (end == std::string_view::npos) return false;
    names.remove_prefix(end + 1);
  }
  return false;
}

}  // namespace

std::vector<std::string_view> gguf_pretokenizer_names() {
  std::vector<std::string_view> out;
  for (const Row& row : kRows) {
    std::string_view names = row.names;
    while (!names.empty()) {
      const size_t end = std::min(names.find(' '), names.size());
      out.push_back(names.substr(0, end));
      names.remove_prefix(std::min(end + 1, names.size()));
    }
  }
  return out;
}

Result<GgufPreTokenizer> gguf_pretokenizer(std::string_view name) {
  const Row* found = nullptr;
  for (const Row& row : kRows)
    if (lists(row.names, name)) found = &row;
  if (name.empty())
    return fail(ErrorCode::kUnsupported,
                "tokenizer.ggml.pre is missing: the file does not say how text is cut into words");
  if (found == nullptr)
    return fail(ErrorCode::kUnsupported, "tokenizer.ggml.pre: unknown pre-tokenizer \"{}\"", name);
  GgufPreTokenizer out;
  if ((found->flags & kNfc) != 0) out.normalizer = make_unicode_form(UnicodeForm::kNfc);
  out.ignore_merges = (found->flags & kIgnoreMerges) != 0;
  out.add_bos = (found->flags & kAddBos) != 0;
  out.ranks_are_ids = (found->flags & kRanksAreIds) != 0;
  out.words_are_spelled = (found->flags & kSpelled) != 0;
  out.pieces_are_text = (found->flags & kPiecesAreText) != 0;
  std::vector<std::unique_ptr<PreTokenizer>> parts;
  for (size_t i = 0; i < found->step_count; ++i) {
    if (found->steps[i] == kDigitTriples) {
      parts.push_back(make_digit_triples());
      continue;
    }
    if (found->steps[i] == kSpelledGpt2) {
      parts.push_back(make_byte_level(ByteLevelRegex::kGpt2));
      continue;
    }
    TESSERA_TRY(auto part, make_regex_split(found->steps[i]));
    parts.push_back(std::move(part));
  }
  out.pretokenizer = make_pretokenizer_sequence(std::move(parts));
  return out;
}

}  // namespace tessera
