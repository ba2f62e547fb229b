// See regex.h.
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/regex.h"

#include <pcre2.h>

#include <utility>

#include "base/check.h"
#include "text/unicode.h"

namespace tessera {
namespace {

// Steps of one match attempt. Real pre-tokenizers need a handful a character; the bound stops patterns from a
// hostile file, not long texts.
constexpr uint32_t kMatchLimit = 100'000'000;
constexpr uint32_t kHeapLimitKib = 256 * 1024;
constexpr size_t kJitStackStart = 32 * 1024;
constexpr size_t kJitStackMax = 16 * 1024 * 1024;  // on the heap: the thread's own stack is not used

std::string message_of(int code) {
  PCRE2_UCHAR buffer[256];
  if (pcre2_get_error_message(code, buffer, sizeof(buffer)) < 0) return "unknown error";
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace

struct RegexScratch::State {
  pcre2_match_data* data = nullptr;
  pcre2_match_context* context = nullptr;
  pcre2_jit_stack* stack = nullptr;
};

RegexScratch::RegexScratch() : state_(std::make_unique<State>()) {
  state_->data = pcre2_match_data_create(1, nullptr);
  state_->context = pcre2_match_context_create(nullptr);
  state_->stack = pcre2_jit_stack_create(kJitStackStart, kJitStackMax, nullptr);
  CHECK(state_->data != nullptr && state_->context != nullptr, "out of memory");
  pcre2_set_match_limit(state_->context, kMatchLimit);
  pcre2_set_heap_limit(state_->context, kHeapLimitKib);
  if (state_->stack != nullptr) pcre2_jit_stack_assign(state_->context, nullptr, state_->stack);
}

RegexScratch::~RegexScratch() {
  pcre2_match_data_free(state_->data);
  pcre2_match_context_free(state_->context);
  if (state_->stack != nullptr) pcre2_jit_stack_free(state_->stack);
}

Regex::Regex(Regex&& other) noexcept
    : pattern_(std::move(other.pattern_)), code_(std::exchange(other.code_, nullptr)) {}

Regex& Regex::operator=(Regex&& other) noexcept {
  std::swap(pattern_, other.pattern_);
  std::swap(code_, other.code_);
  return *this;
}

Regex::~Regex() {
  pcre2_code_free(static_cast<pcre2_code*>(code_));
}

Result<Regex> Regex::compile(std::string_view pattern) {
  TESSERA_TRY(const std::string translated, translate_regex(pattern));
  pcre2_compile_context* context = pcre2_compile_context_create(nullptr);
  CHECK(context != nullptr, "out of memory");
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context, 100);
  int code = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* compiled =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NO_UTF_CHECK | PCRE2_NEVER_BACKSLASH_C,
                    &code, &offset, context);
  pcre2_compile_context_free(context);
  if (compiled == nullptr)
    return fail(ErrorCode::kBadData, "regex /{}/: {} (at byte {} of /{}/)", pattern, message_of(code), offset,
                translated);
  (void)pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);  // without JIT the interpreter runs it
  Regex regex;
  regex.pattern_ = pattern;
  regex.code_ = compiled;
  return regex;
}

Result<bool> Regex::Cursor::next(Match* match) {
  RegexScratch::State& state = *scratch_->state_;
  const auto* code = static_cast<const pcre2_code*>(regex_->code_);
  while (from_ <= text_.size()) {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text_.data());
    int found =
        pcre2_match(code, subject, text_.size(), from_, PCRE2_NO_UTF_CHECK, state.data, state.context);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT)
      found = pcre2_match(code, subject, text_.size(), from_, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, state.data,
                          state.context);
    if (found == PCRE2_ERROR_NOMATCH) {
      from_ = text_.size() + 1;
      return false;
    }
    if (found < 0)
      return fail(ErrorCode::kResourceLimit, "regex /{}/: {}", regex_->pattern_, message_of(found));
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(state.data);
    const size_t begin = range[0];
    const size_t end = range[1] < begin ? begin : range[1];  // \K inside a lookahead can turn them round
    if (begin == end && end == last_end_) {
      from_ += from_ < text_.size() ? unicode::sequence_length(text_[from_]) : 1;
      continue;
    }
    from_ = end;
    last_end_ = end;
    *match = {begin, end};
    return true;
  }
  return false;
}

}  // namespace tessera
