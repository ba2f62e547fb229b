#!/usr/bin/env python3
"""Makes the expected renders of chat templates with Debian's python3-jinja2, set up as transformers sets it up.

  render_templates.py [TOKENIZERS_FOLDER]

writes tests/text/data/jinja_answers.json (our own templates, every construct) and, where the folder with the published templates
is given, tests/text/data/template_renders.tar.xz (those templates over a matrix of conversations; the templates themselves are not
stored). The clock stands at 2025-07-10 12:34:56.
"""
import io
import json
import lzma
import pathlib
import sys
import tarfile
from datetime import datetime

import jinja2
from jinja2.ext import Extension
from jinja2.nodes import CallBlock
from jinja2.sandbox import ImmutableSandboxedEnvironment

from jinja_cases import CASES

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
CLOCK = datetime(2025, 7, 10, 12, 34, 56, 7)


class Generation(Extension):
    """{% generation %}: its body, in a scope of its own."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    @staticmethod
    def _body(caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = CLOCK.strftime
    return env


def render(env, source, variables):
    try:
        template = env.from_string(source)
    except jinja2.exceptions.TemplateSyntaxError as error:
        return {"syntax": error.lineno}
    try:
        return template.render(**variables)
    except Exception as error:
        if type(error) is jinja2.exceptions.TemplateError:
            return {"raised": str(error)}
        return {"error": type(error).__name__}


TOOLS = [
    {"type": "function", "function": {
        "name": "get_weather", "description": "Weather of a city, \"now\" or later <today>.",
        "parameters": {"type": "object", "properties": {
            "city": {"type": "string", "description": "Name, e.g. Zürich"},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
            "days": {"type": "integer"}}, "required": ["city"]}}},
    {"type": "function", "function": {
        "name": "sum", "description": "Adds numbers",
        "parameters": {"type": "object", "properties": {
            "values": {"type": "array", "items": {"type": "number"}, "description": "the numbers"}},
            "required": ["values"]},
        "return": {"type": "number", "description": "their sum"}}},
]


def call(name, arguments, identifier):
    return {"id": identifier, "type": "function", "function": {"name": name, "arguments": arguments}}


def conversations():
    questions = ["Hi there!", "  What's 2 < 3 & \"x\"?\n", "Größe? 你好 😀", "four\n\nlines\n", "end"]
    answers = ["Hello.", "Yes: 2 < 3.\n", "<think>\nhm, so\n</think>\n\nÜber 180 cm", "ok"]
    for turns in range(1, 6):
        plain = []
        for i in range(turns):
            plain.append({"role": "user", "content": questions[i]})
            if i + 1 < turns:
                plain.append({"role": "assistant", "content": answers[i]})
        yield f"{turns} turns", plain
    yield "ends with an answer", [{"role": "user", "content": "a"}, {"role": "assistant", "content": " b "}]
    weather = call("get_weather", {"city": "Zürich", "days": 2}, "abcdefgh1")
    sums = call("sum", {"values": [1, 2.5, 1e20]}, "abcdefgh2")
    result = {"role": "tool", "name": "get_weather", "tool_call_id": "abcdefgh1", "content": "{\"t\": 21.5}"}
    other = {"role": "tool", "name": "sum", "tool_call_id": "abcdefgh2", "content": "3.5"}
    ask = {"role": "user", "content": "weather?"}
    yield "one call", [ask, {"role": "assistant", "content": "", "tool_calls": [weather]}]
    yield "one call answered", [ask, {"role": "assistant", "content": None, "tool_calls": [weather]}, result]
    yield "call, answer, more", [ask, {"role": "assistant", "content": "let me see", "tool_calls": [weather]}, result,
                                 {"role": "assistant", "content": "21.5"}, {"role": "user", "content": "thanks"}]
    yield "two calls", [ask, {"role": "assistant", "content": "", "tool_calls": [weather, sums]}, result, other]
    yield "arguments as text", [ask, {"role": "assistant", "content": "", "tool_calls": [
        call("get_weather", json.dumps({"city": "Bern"}), "abcdefgh1")]}, result]
    yield "reasoning", [ask, {"role": "assistant", "content": "fine", "reasoning_content": "\nthink of it\n"},
                        {"role": "user", "content": "go on"},
                        {"role": "assistant", "content": "", "reasoning_content": "call", "tool_calls": [weather]}, result]
    yield "parts", [{"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": " two"}]}]
    yield "two users", [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]


def contexts():
    out = []
    for name, messages in conversations():
        for system in (None, "You are\n a helper. "):
            with_tools = any("tool_calls" in m or m["role"] == "tool" for m in messages)
            for tools in ([None, TOOLS] if with_tools or name == "1 turns" else [None]):
                for thinking in (None, True, False):
                    for prompt in (False, True):
                        variables = {
                            "messages": ([{"role": "system", "content": system}] if system else []) + messages,
                            "tools": tools, "documents": None, "add_generation_prompt": prompt,
                            "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
                        if thinking is not None:
                            variables["enable_thinking"] = thinking
                        out.append(variables)
    return out


def published(folder):
    for row in json.loads((folder / "chat_templates.json").read_text()):
        yield "chat_templates.json: " + row["name"], row["chat_template"], row["data"]
    for config in sorted(folder.glob("*/tokenizer_config*.json")):
        template = json.loads(config.read_text()).get("chat_template")
        rows = template if isinstance(template, list) else [{"name": "", "template": template}] if template else []
        for row in rows:
            yield f"{config.parent.name}/{config.name}: {row['name']}", row["template"], None


def main():
    env = environment()
    answers = []
    for name, source, variables in CASES:
        answers.append({"name": name, "template": source, "variables": variables,
                        "answer": render(env, source, variables)})
    fable = DATA.parents[2] / "models/fable/chat_template.jinja"
    rows = contexts()
    (DATA / "jinja_answers.json").write_text(
        "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in answers) + "\n]\n")
    templates = [("models/fable/chat_template.jinja", fable.read_text(), None)]
    if len(sys.argv) > 1:
        templates += published(pathlib.Path(sys.argv[1]))
    out = {"contexts": rows, "templates": []}
    count = 0
    for name, source, own in templates:
        entry = {"name": name, "renders": [render(env, source, row) for row in rows]}
        if own is not None:
            entry["own"] = own
            entry["own_render"] = render(env, source, own)
            count += 1
        count += len(rows)
        out["templates"].append(entry)
    text = json.dumps(out, ensure_ascii=False, separators=(",", ":")).encode()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        info = tarfile.TarInfo("template_renders.json")
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text))
    packed = lzma.compress(buffer.getvalue(), preset=9 | lzma.PRESET_EXTREME)
    (DATA / "template_renders.tar.xz").write_bytes(packed)
    errors = [r for t in out["templates"] for r in t["renders"] if isinstance(r, dict)]
    print(f"{len(answers)} cases; {count} renders of {len(templates)} templates, {len(errors)} of them errors; "
          f"{len(text)} bytes, {len(packed)} packed")


main()
