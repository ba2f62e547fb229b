// The template engine against Debian's python3-jinja2: our own templates for every construct, and the published ones
// over a matrix of conversations (tools/render_templates.py makes the answers). And what no judge covers: limits,
// what is refused when a template is loaded, where bytes came from.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/mapped_file.h"
#include "text/jinja/template.h"

namespace tessera::jinja {
namespace {

RenderOptions judge_options() {
  RenderOptions options;
  options.clock = {2025, 7, 10, 12, 34, 56, 7};
  return options;
}

Variables variables_of(const Json& json) {
  Variables variables;
  for (const auto& [name, value] : json.items()) {
    const Status status = variables.set_json(name, value, Origin::kData);
    EXPECT_TRUE(status) << name;
  }
  return variables;
}

Result<MarkedText> render(const std::string& source, const Json& variables = Json::object()) {
  TESSERA_TRY(const Template parsed, Template::parse(source, "test"));
  return parsed.render(variables_of(variables), judge_options());
}

std::string text_of(const std::string& source, const Json& variables = Json::object()) {
  const Result<MarkedText> out = render(source, variables);
  return out ? out->bytes() : "error: " + out.error().message;
}

// What differs from the judge's answer; empty where nothing does.
std::string difference(const Result<Template>& parsed, const Json& variables, const Json& answer) {
  if (answer.is_object() && answer.contains("syntax"))
    return !parsed && parsed.error().code == ErrorCode::kBadData ? "" : "expected a syntax error";
  if (!parsed) return "not loaded: " + parsed.error().message;
  const Result<MarkedText> out = parsed->render(variables_of(variables), judge_options());
  if (answer.is_string()) {
    if (!out) return "error: " + out.error().message;
    return out->bytes() == answer.get<std::string>()
               ? ""
               : "expected\n" + answer.get<std::string>() + "\nfound\n" + out->bytes();
  }
  if (out) return "expected " + dump_json(answer) + ", found\n" + out->bytes();
  if (answer.contains("raised"))
    return out.error().code == ErrorCode::kInvalidArgument &&
                   out.error().message == answer["raised"].get<std::string>()
               ? ""
               : "expected " + dump_json(answer) + ", found " + out.error().message;
  return out.error().code == ErrorCode::kBadData ? ""
                                                 : "expected an error of use, found " + out.error().message;
}

TEST(Jinja, OwnTemplates) {
  const Result<Json> answers = read_json_file("tests/text/data/jinja_answers.json");
  ASSERT_TRUE(answers) << answers.error().message;
  int compared = 0;
  for (const Json& row : *answers) {
    const std::string name = row["name"].get<std::string>();
    const Result<Template> parsed = Template::parse(row["template"].get<std::string>(), name);
    EXPECT_EQ(difference(parsed, row["variables"], row["answer"]), "") << name;
    ++compared;
  }
  EXPECT_GT(compared, 70);
}

// The published templates by the name under which the answers have them.
std::map<std::string, std::string> published_templates() {
  std::map<std::string, std::string> out;
  const std::string folder = "../shared/tokenizers/";
  if (const Result<Json> rows = read_json_file(folder + "chat_templates.json"))
    for (const Json& row : *rows)
      out["chat_templates.json: " + row["name"].get<std::string>()] = row["chat_template"].get<std::string>();
  for (const std::string file :
       {"deepseek-v3/tokenizer_config.json", "gemma-3/tokenizer_config.json",
        "llama-2/tokenizer_config.tinyllama-chat.json", "llama-3.1/tokenizer_config.json",
        "mistral-7b-v0.1/tokenizer_config.json", "phi-3-mini/tokenizer_config.json",
        "qwen2.5/tokenizer_config.json", "qwen3/tokenizer_config.json"}) {
    const Result<std::string> text = read_file(folder + file);
    if (!text) continue;
    const Result<Json> config = parse_python_json(*text, file);
    if (!config || !config->contains("chat_template")) continue;
    const Json& value = (*config)["chat_template"];
    if (value.is_string()) out[file + ": "] = value.get<std::string>();
    if (value.is_array())
      for (const Json& row : value)
        out[file + ": " + row["name"].get<std::string>()] = row["template"].get<std::string>();
  }
  return out;
}

TEST(Jinja, PublishedTemplates) {
  const Result<Json> answers = read_json_file(TESSERA_TEMPLATE_RENDERS);
  ASSERT_TRUE(answers) << answers.error().message;
  std::map<std::string, std::string> sources = published_templates();
  const Result<std::string> fable = read_file("models/fable/chat_template.jinja");
  ASSERT_TRUE(fable);
  sources["models/fable/chat_template.jinja"] = *fable;
  const Json& contexts = (*answers)["contexts"];
  int compared = 0;
  std::string absent;
  for (const Json& row : (*answers)["templates"]) {
    const std::string name = row["name"].get<std::string>();
    const auto source = sources.find(name);
    if (source == sources.end()) {
      absent += (absent.empty() ? "" : ", ") + name;
      continue;
    }
    const Result<Template> parsed = Template::parse(source->second, name);
    int different = 0;
    const auto check = [&](const Json& context, const Json& answer, const std::string& where) {
      ++compared;
      const std::string found = difference(parsed, context, answer);
      if (found.empty() || ++different > 2) return;
      ADD_FAILURE() << name << ", " << where << ": " << found;
    };
    for (size_t i = 0; i < contexts.size(); ++i)
      check(contexts[i], row["renders"][i],
            "conversation " + std::to_string(i) + " " + dump_json(contexts[i]));
    if (row.contains("own")) check(row["own"], row["own_render"], "its own conversation");
    EXPECT_EQ(different, 0) << name;
  }
  std::printf("%d renders compared\n", compared);
  EXPECT_GT(compared, 200);
  if (!absent.empty()) GTEST_SKIP() << "not under ../shared/tokenizers: " << absent;
}

void expect_refused(const std::string& source, ErrorCode code, const std::vector<std::string>& parts) {
  const Result<Template> parsed = Template::parse(source, "name");
  ASSERT_FALSE(parsed) << source;
  EXPECT_EQ(parsed.error().code, code) << parsed.error().message;
  for (const std::string& part : parts)
    EXPECT_NE(parsed.error().message.find(part), std::string::npos)
        << part << " is not in: " << parsed.error().message;
}

TEST(Jinja, WhatIsNotRunHereFailsWhenLoaded) {
  expect_refused("a\n{% include 'x' %}", ErrorCode::kUnsupported, {"line 2", "include"});
  expect_refused("{% import 'x' as y %}", ErrorCode::kUnsupported, {"line 1", "import"});
  expect_refused("{% extends 'x' %}", ErrorCode::kUnsupported, {"extends"});
  expect_refused("\n\n{{ x|urlize }}", ErrorCode::kUnsupported, {"line 3", "filter 'urlize'"});
  expect_refused("{% if false %}{{ x is nonsense }}{% endif %}", ErrorCode::kUnsupported,
                 {"test 'nonsense'"});
  expect_refused("{{ x|map('nonsense') }}", ErrorCode::kUnsupported, {"filter 'nonsense'"});
  expect_refused("{{ x.encode('utf-8') }}", ErrorCode::kUnsupported, {"method 'encode'"});
  expect_refused("{{ lipsum() }}", ErrorCode::kUnsupported, {"lipsum"});
  expect_refused("{{ '\\N{DASH}' }}", ErrorCode::kUnsupported, {"\\N"});
  expect_refused("\xff", ErrorCode::kBadData, {"UTF-8"});
}

TEST(Jinja, Limits) {
  const auto expect_limit = [](const std::string& source) {
    const Result<MarkedText> out = render(source);
    ASSERT_FALSE(out) << source;
    EXPECT_EQ(out.error().code, ErrorCode::kResourceLimit) << out.error().message;
  };
  expect_limit("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}");
  expect_limit("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}");
  expect_limit("{{ 'x' * 1000000000000 }}");
  expect_limit("{{ [1] * 1000000000000 }}");
  expect_limit(
      "{% set ns = namespace(x='a') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}");
  expect_limit("{% set ns = namespace(x=[]) %}{% for i in range(1000) %}{% set ns.x = [ns.x] %}{% endfor %}");
  expect_limit(
      "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ "
      "ns.x }}");
  expect_limit("{{ range(1000000) }}");
  expect_limit("{{ 'x'.center(1000000000000) }}");
  expect_limit("{{ '%1000000000d' % 1 }}");
  expect_limit("{% for x in [[]] recursive %}{{ loop([x]) }}{% endfor %}");
  expect_refused("{{ " + std::string(5000, '[') + std::string(5000, ']') + " }}", ErrorCode::kBadData,
                 {"nested too deep"});
  expect_refused("{{ " + std::string(5000, '-') + "1 }}", ErrorCode::kBadData, {"nested too deep"});
  // What may hold itself is freed.
  EXPECT_EQ(text_of("{% set n = namespace() %}{% set n.n = n %}{% macro m() %}{{ n.n.n is defined }}{% "
                    "endmacro %}{{ m() }}"),
            "True");
}

// The data bytes of a render between brackets.
std::string marked(const std::string& source, const Json& variables) {
  const Result<MarkedText> out = render(source, variables);
  if (!out) return "error: " + out.error().message;
  std::string text;
  size_t done = 0;
  for (const ByteRange& range : out->data_ranges()) {
    text += out->bytes().substr(done, range.begin - done) + "[" +
            out->bytes().substr(range.begin, range.end - range.begin) + "]";
    done = range.end;
  }
  return text + out->bytes().substr(done);
}

TEST(Jinja, DataIsKnownThroughFiltersAndOperators) {
  const Json data = {{"s", "aBc <x> d"}, {"l", {"p", "q"}}, {"d", {{"k", "v\n\"w"}}}, {"i", 7}};
  EXPECT_EQ(marked("x{{ s }}y", data), "x[aBc <x> d]y");
  EXPECT_EQ(marked("{{ 'x' + s ~ 'y' }}", data), "x[aBc <x> d]y");
  EXPECT_EQ(marked("{{ s[1:3] }}.{{ s[0] }}.{{ s[::-1][:2] }}", data), "[Bc].[a].[d ]");
  EXPECT_EQ(marked("{{ s|upper }}.{{ s.title() }}.{{ ('t' ~ s)|title }}", data),
            "[ABC <X> D].[Abc <X> D].T[abc <X> D]");
  EXPECT_EQ(marked("{{ s|replace('B', '-') }}.{{ 'a-b'|replace('-', s[:1]) }}", data), "[a]-[c <x> d].a[a]b");
  EXPECT_EQ(marked("{{ l|join('+') }}.{{ s.split()|join }}.{{ ','.join(l) }}", data),
            "[p]+[q].[aBc<x>d].[p],[q]");
  EXPECT_EQ(marked("{{ d|tojson }}.{{ l }}.{{ i }}{{ i + 1 }}", data),
            "{\"[k]\": \"[v\\n\\\"w]\"}.['[p]', '[q]'].[78]");
  EXPECT_EQ(marked("{{ '%s|%5s' % (s[:1], l[0]) }}.{{ '{}!'.format(s[:2]) }}", data), "[a]|    [p].[aB]!");
  EXPECT_EQ(marked("{{ s|e }}.{{ s|trim }}.{{ s.strip('a') }}", data),
            "[aBc &lt;x&gt; d].[aBc <x> d].[Bc <x> d]");
  EXPECT_EQ(marked("{% set a %}<{{ s[:1] }}>{% endset %}{{ a * 2 }}", data), "<[a]><[a]>");
  EXPECT_EQ(marked("{% macro m(v) %}<{{ v }}>{% endmacro %}{{ m(s[:2])|indent }}", data), "<[aB]>");
  EXPECT_EQ(marked("{% for k, v in d.items() %}{{ k }}={{ v|string|first }}{% endfor %}", data), "[k]=[v]");
  EXPECT_EQ(marked("{% filter upper %}z{{ l[0] }}{% endfilter %}{% set n = namespace(t='') %}{% set n.t = "
                   "n.t ~ '(' ~ l[1] ~ ')' %}{{ n.t }}",
                   data),
            "Z[P]([q])");
}

}  // namespace
}  // namespace tessera::jinja
