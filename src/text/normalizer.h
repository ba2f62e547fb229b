// Normalizers: what happens to the text before it is split (Unicode forms, case, accents, replaced strings).
// One class per type of tokenizer.json; create_normalizer reads any of them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/aligned_text.h"
#include "text/regex.h"

namespace tessera {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  [[nodiscard]] virtual Status apply(AlignedText& text, RegexScratch& scratch) const = 0;
};

// A component of tokenizer.json; `where` names it in messages. Null gives nullptr.
[[nodiscard]] Result<std::unique_ptr<Normalizer>> create_normalizer(const Json& value,
                                                                    const std::string& where);

// The pieces that loaders of other formats need.
[[nodiscard]] std::unique_ptr<Normalizer> make_sequence(std::vector<std::unique_ptr<Normalizer>> parts);
[[nodiscard]] std::unique_ptr<Normalizer> make_prepend(std::string text);
[[nodiscard]] std::unique_ptr<Normalizer> make_replace(std::string from, std::string to);

[[nodiscard]] std::unique_ptr<Normalizer> make_bert_normalizer(bool lowercase, bool strip_accents);

enum class UnicodeForm { kNfc, kNfd, kNfkc, kNfkd };
[[nodiscard]] std::unique_ptr<Normalizer> make_unicode_form(UnicodeForm form);

// SentencePiece's compiled rules ("precompiled_charsmap", raw bytes). See precompiled.cpp.
[[nodiscard]] Result<std::unique_ptr<Normalizer>> make_precompiled(std::string charsmap,
                                                                   std::string_view where);

// Brings the text into a normal form (unicode_form.cpp).
void apply_unicode_form(AlignedText& text, UnicodeForm form);

}  // namespace tessera
