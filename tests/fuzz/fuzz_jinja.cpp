// Any bytes as a chat template: what loads must run within its limits, and what it writes must be UTF-8 with data ranges
// that lie inside of it. A first line of JSON, when there is one, is the conversation.
#include <nlohmann/json.hpp>
#include <string>

#include "base/check.h"
#include "base/json.h"
#include "text/jinja/template.h"
#include "text/unicode.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  std::string_view messages =
      R"([{"role": "user", "content": "a<b>é"}, {"role": "assistant", "content": null}])";
  std::string_view source = input;
  if (const size_t line = input.find('\n');
      !input.empty() && input[0] == '[' && line != std::string_view::npos) {
    messages = input.substr(0, line);
    source = input.substr(line + 1);
  }
  const auto parsed = jinja::Template::parse(source, "fuzz");
  if (!parsed) return 0;
  const auto json = parse_json(messages, "fuzz");
  jinja::Variables variables;
  if (json) (void)variables.set_json("messages", *json, jinja::Origin::kData);
  variables.set("bos_token", jinja::Value::text("<s>"));
  variables.set("add_generation_prompt", jinja::Value::boolean(true));
  jinja::RenderOptions options;
  options.max_steps = 100000;
  options.max_bytes = uint64_t{16} << 20;
  options.max_output = uint64_t{1} << 20;
  const auto text = parsed->render(variables, options);
  if (!text) return 0;
  CHECK(unicode::is_valid_utf8(text->bytes()), "rendered text is not UTF-8");
  size_t done = 0;
  for (const jinja::ByteRange& range : text->data_ranges()) {
    CHECK(range.begin < range.end && range.begin >= done && range.end <= text->size(), "data ranges");
    done = range.end;
  }
  return 0;
}
