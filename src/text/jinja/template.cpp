// See template.h.
#include "text/jinja/template.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include "text/jinja/interpreter.h"
#include "text/jinja/strftime.h"
#include "text/jinja/token_stream.h"
#include "text/unicode.h"

namespace tessera::jinja {

Clock Clock::now() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm local{};
  localtime_r(&seconds, &local);
  const auto micro =
      std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count() % 1000000;
  return {local.tm_year + 1900, local.tm_mon + 1, local.tm_mday,          local.tm_hour,
          local.tm_min,         local.tm_sec,     static_cast<int>(micro)};
}

std::string format_time(const Clock& clock, const std::string& format) {
  std::tm time{};
  time.tm_year = clock.year - 1900;
  time.tm_mon = clock.month - 1;
  time.tm_mday = clock.day;
  time.tm_hour = clock.hour;
  time.tm_min = clock.minute;
  time.tm_sec = clock.second;
  // Days since 1970 of the proleptic Gregorian calendar; week day and day of the year follow.
  using namespace std::chrono;
  const year_month_day date(year(clock.year), month(static_cast<unsigned>(clock.month)),
                            day(static_cast<unsigned>(clock.day)));
  if (!date.ok()) return "";
  time.tm_wday = static_cast<int>(weekday(sys_days(date)).c_encoding());
  time.tm_yday = static_cast<int>((sys_days(date) - sys_days(date.year() / 1 / 1)).count());
  time.tm_isdst = -1;
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    std::string directive = "%";
    if (++i < format.size() && (format[i] == '-' || format[i] == '_' || format[i] == '^' || format[i] == '#'))
      directive += format[i++];
    if (i >= format.size()) {
      out += directive;
      break;
    }
    directive += format[i];
    if (format[i] == 'f') {
      out += fmt::format("{:06}", clock.microsecond);
    } else if (format[i] == 'z' || format[i] == 'Z') {
      continue;  // there is no zone
    } else {
      char buffer[256];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
      const size_t length = std::strftime(buffer, sizeof(buffer), directive.c_str(), &time);
#pragma GCC diagnostic pop
      out.append(buffer, length);
    }
  }
  return unicode::replace_invalid_utf8(out);
}

void Variables::set(std::string name, Value value) {
  for (auto& [known, old] : values_) {
    if (known != name) continue;
    old = std::move(value);
    return;
  }
  values_.emplace_back(std::move(name), std::move(value));
}

Status Variables::set_json(std::string name, const Json& json, Origin origin) {
  Result<Value> value = value_from_json(json, origin);
  if (!value) return with_context(value.error(), name);
  set(std::move(name), *std::move(value));
  return {};
}

const Value* Variables::find(std::string_view name) const {
  for (const auto& [known, value] : values_)
    if (known == name) return &value;
  return nullptr;
}

Template::Template(std::unique_ptr<const Syntax> syntax) : syntax_(std::move(syntax)) {}
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

Result<Template> Template::parse(std::string_view source, std::string name) {
  TESSERA_TRY(std::unique_ptr<Syntax> syntax, parse_template(source, name));
  return Template(std::move(syntax));
}

Result<MarkedText> Template::render(const Variables& variables, const RenderOptions& options) const {
  return Interpreter(*syntax_, variables, options).run();
}

namespace {

void collect(const Expression* expression, std::vector<std::string>& out) {
  if (expression == nullptr) return;
  if (expression->kind == ExpressionKind::kConstant && expression->constant.is(Kind::kText))
    out.push_back(expression->constant.bytes());
  for (const auto& item : expression->items) collect(item.get(), out);
  for (const auto& argument : expression->arguments.positional) collect(argument.get(), out);
  for (const auto& [name, argument] : expression->arguments.keywords) collect(argument.get(), out);
  collect(expression->arguments.more_positional.get(), out);
  collect(expression->arguments.more_keywords.get(), out);
}

void collect(const Body& body, std::vector<std::string>& out) {
  for (const auto& statement : body) {
    if (statement->kind == StatementKind::kText) out.push_back(statement->text);
    collect(statement->value.get(), out);
    collect(statement->condition.get(), out);
    for (const auto& value : statement->values) collect(value.get(), out);
    for (const auto& parameter : statement->parameters) collect(parameter.fallback.get(), out);
    collect(statement->body, out);
    collect(statement->otherwise, out);
  }
}

}  // namespace

std::vector<std::string> Template::literals() const {
  std::vector<std::string> out;
  collect(syntax_->body, out);
  return out;
}

}  // namespace tessera::jinja
