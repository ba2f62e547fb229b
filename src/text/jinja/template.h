// Template: a chat template as model makers publish them, ready to run: the Jinja language as transformers sets it up
// (trim_blocks, lstrip_blocks, loop controls, an immutable sandbox, tojson, strftime_now, raise_exception, generation
// tags). Rendering gives the text and which bytes of it came with the request. A template is immutable and may run
// on many threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/jinja/value.h"

namespace tessera::jinja {

struct Syntax;

// A point in local time, for strftime_now.
struct Clock {
  int year = 1970;
  int month = 1;  // 1 to 12
  int day = 1;
  int hour = 0;
  int minute = 0;
  int second = 0;
  int microsecond = 0;

  [[nodiscard]] static Clock now();
};

struct RenderOptions {
  Clock clock;
  uint64_t max_steps = 5'000'000;
  uint64_t max_bytes = uint64_t{512} << 20;  // of all strings and lists that are made on the way
  uint64_t max_output = uint64_t{64} << 20;
  int max_depth = 700;  // expressions, statements and calls inside of each other
};

// The variables a template starts with.
class Variables {
 public:
  // A later value of the same name counts.
  void set(std::string name, Value value);
  // kBadData where the JSON nests too deep.
  [[nodiscard]] Status set_json(std::string name, const Json& json, Origin origin);
  [[nodiscard]] const Value* find(std::string_view name) const;

 private:
  std::vector<std::pair<std::string, Value>> values_;
};

class Template {
 public:
  // `name` stands in messages. kBadData for what is no template; kUnsupported, naming line and construct, for what is
  // not run here.
  [[nodiscard]] static Result<Template> parse(std::string_view source, std::string name);
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  // kInvalidArgument: the template itself refused the conversation (raise_exception), the message is its own and
  // nothing else. kResourceLimit: a limit is reached. Anything else: the template used a value in a way it cannot be
  // used, with the line.
  [[nodiscard]] Result<MarkedText> render(const Variables& variables, const RenderOptions& options) const;

  // The texts that the template itself contains: between tags, and as constants.
  [[nodiscard]] std::vector<std::string> literals() const;

 private:
  explicit Template(std::unique_ptr<const Syntax> syntax);
  std::unique_ptr<const Syntax> syntax_;
};

}  // namespace tessera::jinja
