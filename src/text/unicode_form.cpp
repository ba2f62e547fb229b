// Unicode normalization forms (UAX 15), as changes character by character, so that offsets survive: a character
// that decomposes is replaced by its first part and the others are inserted behind it, a character that is
// absorbed by composition is removed behind the one that absorbs it. Data from utf8proc.
#include <utf8proc.h>

#include <algorithm>
#include <memory>

#include "text/normalizer.h"
#include "text/unicode.h"

namespace tessera {
namespace {

bool composes(UnicodeForm form) {
  return form == UnicodeForm::kNfc || form == UnicodeForm::kNfkc;
}
bool is_compatibility(UnicodeForm form) {
  return form == UnicodeForm::kNfkc || form == UnicodeForm::kNfkd;
}

// The longest full decomposition of a character has 18 parts (U+FDFA).
constexpr int kMaxParts = 32;

int decompose(char32_t code, bool compatibility, char32_t (&parts)[kMaxParts]) {
  utf8proc_int32_t buffer[kMaxParts];
  int boundary = 0;
  const int options = UTF8PROC_DECOMPOSE | (compatibility ? UTF8PROC_COMPAT : 0);
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), buffer, kMaxParts,
                                             static_cast<utf8proc_option_t>(options), &boundary);
  if (count <= 0 || count > kMaxParts) {
    parts[0] = code;
    return 1;
  }
  for (int i = 0; i < count; ++i) parts[i] = static_cast<char32_t>(buffer[i]);
  return static_cast<int>(count);
}

// The character that the pair composes to; 0 when there is none.
char32_t compose(char32_t first, char32_t second) {
  utf8proc_int32_t pair[3] = {static_cast<utf8proc_int32_t>(first), static_cast<utf8proc_int32_t>(second), 0};
  const auto count =
      utf8proc_normalize_utf32(pair, 2, static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  return count == 1 ? static_cast<char32_t>(pair[0]) : 0;
}

// For each character below kTableEnd and each form: whether it is unchanged by the form whatever stands before
// it. Beyond the table no character decomposes; only characters of a combining class matter there.
class StableTable {
 public:
  static const StableTable& get() {
    static const StableTable table;
    return table;
  }

  [[nodiscard]] bool stable(char32_t code, UnicodeForm form) const {
    if (code >= kTableEnd) return unicode::combining_class(code) == 0;
    return (bits_[code] >> static_cast<int>(form) & 1) != 0;
  }

 private:
  static constexpr char32_t kTableEnd = 0x30000;

  StableTable() : bits_(std::make_unique<uint8_t[]>(kTableEnd)) {
    for (char32_t code = 0; code < kTableEnd; ++code) bits_[code] = stable_forms(code);
    mark_second_parts();
  }

  static uint8_t stable_forms(char32_t code) {
    const utf8proc_property_t* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(code));
    if (property->combining_class != 0) return 0;
    const bool hangul = code >= 0xac00 && code <= 0xd7a3;
    if (property->decomp_seqindex == UINT16_MAX && !hangul) return 0xf;
    char32_t canonical[kMaxParts];
    char32_t compatible[kMaxParts];
    const int canonical_count = decompose(code, false, canonical);
    const int compatible_count = decompose(code, true, compatible);
    const bool same_canonical = canonical_count == 1 && canonical[0] == code;
    const bool same_compatible = compatible_count == 1 && compatible[0] == code;
    const bool recomposes = !same_canonical && recompose(canonical, canonical_count) == code;
    const bool equal =
        canonical_count == compatible_count && std::equal(canonical, canonical + canonical_count, compatible);
    unsigned bits = 0;
    if (same_canonical || recomposes) bits |= 1u << static_cast<int>(UnicodeForm::kNfc);
    if (same_canonical) bits |= 1u << static_cast<int>(UnicodeForm::kNfd);
    if (same_compatible || (recomposes && equal)) bits |= 1u << static_cast<int>(UnicodeForm::kNfkc);
    if (same_compatible) bits |= 1u << static_cast<int>(UnicodeForm::kNfkd);
    return static_cast<uint8_t>(bits);
  }

  // The one character that the parts compose to, or 0.
  static char32_t recompose(const char32_t* parts, int count) {
    char32_t whole = parts[0];
    for (int i = 1; i < count; ++i) {
      whole = compose(whole, parts[i]);
      if (whole == 0) return 0;
    }
    return whole;
  }

  // Characters that a character before them may absorb are not stable under composition.
  void mark_second_parts() {
    constexpr uint8_t kKeep =
        0xf & ~(1u << static_cast<int>(UnicodeForm::kNfc) | 1u << static_cast<int>(UnicodeForm::kNfkc));
    for (char32_t code = 0; code < kTableEnd; ++code) {
      const utf8proc_property_t* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(code));
      if (property->decomp_seqindex == UINT16_MAX) continue;
      char32_t parts[kMaxParts];
      const int count = decompose(code, false, parts);
      for (int i = 1; i < count; ++i)
        if (parts[i] < kTableEnd) bits_[parts[i]] &= kKeep;
    }
    for (char32_t code = 0x1161; code <= 0x11c2; ++code) bits_[code] &= kKeep;  // Hangul vowels and finals
  }

  std::unique_ptr<uint8_t[]> bits_;
};

struct Part {
  char32_t code = 0;
  int32_t change = 0;
  int ccc = 0;
};

// Composes decomposed text in place (UAX 15, section 1.3; D117 of the standard).
void compose_parts(std::vector<Part>& parts, const StableTable& table) {
  size_t out = 0;
  size_t starter = parts.size();  // index in the output, or "none"
  int last_ccc = -1;              // of what stands between the starter and here; -1: nothing does
  for (size_t i = 0; i < parts.size(); ++i) {
    const Part part = parts[i];
    if (starter != parts.size() && last_ccc < part.ccc && !table.stable(part.code, UnicodeForm::kNfc)) {
      const char32_t whole = compose(parts[starter].code, part.code);
      if (whole != 0) {
        parts[starter].code = whole;
        parts[starter].change += part.change - 1;
        continue;
      }
    }
    if (part.ccc == 0) {
      starter = out;
      last_ccc = -1;
    } else if (starter != parts.size()) {
      last_ccc = part.ccc;
    }
    parts[out++] = part;
  }
  parts.resize(out);
}

// Normalizes a text that begins with a character that is stable, or is the beginning of everything.
void normalize_region(std::string_view text, UnicodeForm form, std::vector<Part>& parts) {
  parts.clear();
  size_t run = 0;  // start of the run that reordering may still change
  const auto sort_run = [&] {
    std::stable_sort(parts.begin() + static_cast<ptrdiff_t>(run), parts.end(),
                     [](const Part& a, const Part& b) { return a.ccc < b.ccc; });
  };
  for (size_t i = 0; i < text.size();) {
    const unicode::Character c = unicode::decode(text, i);
    i += c.length;
    char32_t pieces[kMaxParts];
    int count = 1;
    if (c.code < 0x80)
      pieces[0] = c.code;
    else
      count = decompose(c.code, is_compatibility(form), pieces);
    for (int k = 0; k < count; ++k) {
      const int ccc = unicode::combining_class(pieces[k]);
      if (ccc == 0) {
        if (parts.size() - run > 1) sort_run();
        run = parts.size();
      }
      parts.push_back({pieces[k], k > 0 ? 1 : 0, ccc});
    }
  }
  if (parts.size() - run > 1) sort_run();
  if (composes(form)) compose_parts(parts, StableTable::get());
}

// Walks over the text: unchanged(view) for stretches that the form leaves alone, changed(parts) for the others. A
// region that changes starts with the stable character before the first one that is not, which it may be joined
// with, and ends before the next stable one.
template <class Unchanged, class Changed>
void walk_regions(std::string_view text, UnicodeForm form, Unchanged unchanged, Changed changed) {
  const StableTable& table = StableTable::get();
  std::vector<Part> parts;
  size_t done = 0;
  size_t last = 0;  // where the character before `i` starts
  for (size_t i = 0; i < text.size();) {
    const unicode::Character c = unicode::decode(text, i);
    if (c.code < 0x80 || table.stable(c.code, form)) {
      last = i;
      i += c.length;
      continue;
    }
    const size_t begin = std::max(last, done);
    size_t end = i + c.length;
    while (end < text.size()) {
      const unicode::Character next = unicode::decode(text, end);
      if (next.code < 0x80 || table.stable(next.code, form)) break;
      end += next.length;
    }
    if (done < begin) unchanged(text.substr(done, begin - done));
    normalize_region(text.substr(begin, end - begin), form, parts);
    changed(parts);
    done = end;
    last = end;
    i = end;
  }
  if (done < text.size()) unchanged(text.substr(done));
}

}  // namespace

void apply_unicode_form(AlignedText& text, UnicodeForm form) {
  if (unicode::is_ascii(text.text())) return;
  bool any = false;
  if (!text.tracked()) {
    std::string out;
    out.reserve(text.text().size());
    walk_regions(
        text.text(), form, [&](std::string_view part) { out += part; },
        [&](const std::vector<Part>& parts) {
          any = true;
          for (const Part& part : parts) unicode::append(out, part.code);
        });
    if (any) text.replace_untracked(std::move(out));
    return;
  }
  std::vector<CharacterChange> changes;
  walk_regions(
      text.text(), form,
      [&](std::string_view part) {
        for (size_t i = 0; i < part.size();) {
          const unicode::Character c = unicode::decode(part, i);
          changes.push_back({c.code, 0});
          i += c.length;
        }
      },
      [&](const std::vector<Part>& parts) {
        any = true;
        for (const Part& part : parts) changes.push_back({part.code, part.change});
      });
  if (any) text.transform(changes, 0);
}

}  // namespace tessera
