// See chat_template.h.
#include "text/chat_template.h"

#include <array>
#include <nlohmann/json.hpp>

#include "base/mapped_file.h"
#include "text/tokenizer.h"

namespace tessera {
namespace {

Failure none_found(const Checkpoint& checkpoint) {
  return fail(ErrorCode::kNotFound, "{}: the model brings no chat template: give one with --template",
              checkpoint.path());
}

// A text, or a list of {"name", "template"}.
Result<ChatTemplateSource> from_json(const Json& value, const std::string& origin) {
  ChatTemplateSource out;
  out.origin = origin;
  if (value.is_string()) {
    out.text = value.get<std::string>();
    return out;
  }
  if (!value.is_array())
    return fail(ErrorCode::kBadData, "{}: chat_template: expected a string or a list, found {}", origin,
                json_type_name(value));
  bool found = false;
  for (const Json& row : value) {
    TESSERA_TRY(const std::string name, json_string(row, "name", origin));
    TESSERA_TRY(const std::string text, json_string(row, "template", origin));
    if (name == "default" || value.size() == 1) {
      out.text = text;
      found = true;
    }
    if (name == "tool_use") out.tool_use = text;
  }
  if (!found)
    return fail(ErrorCode::kBadData, "{}: chat_template: none of the named ones is 'default'", origin);
  return out;
}

Result<ChatTemplateSource> from_gguf(const Checkpoint& checkpoint) {
  const auto text_of = [&](std::string_view key) -> const std::string* {
    const auto found = checkpoint.metadata().find(key);
    return found == checkpoint.metadata().end() ? nullptr : std::get_if<std::string>(&found->second.value);
  };
  const std::string* text = text_of("tokenizer.chat_template");
  if (text == nullptr) text = text_of("tokenizer.chat_template.default");
  if (text == nullptr) return none_found(checkpoint);
  ChatTemplateSource out{checkpoint.path() + ": tokenizer.chat_template", *text, std::nullopt};
  if (const std::string* tools = text_of("tokenizer.chat_template.tool_use")) out.tool_use = *tools;
  return out;
}

enum class ArgumentForm : uint8_t { kMapping, kText };

// The messages with the arguments of tool calls in one form.
Result<Json> with_arguments(Json messages, ArgumentForm form) {
  for (Json& message : messages) {
    const auto calls = message.is_object() ? message.find("tool_calls") : message.end();
    if (!message.is_object() || calls == message.end() || !calls->is_array()) continue;
    for (Json& call : *calls) {
      if (!call.is_object()) continue;
      Json& function = call.contains("function") && call["function"].is_object() ? call["function"] : call;
      if (!function.contains("arguments")) continue;
      Json& arguments = function["arguments"];
      if (arguments.is_null()) arguments = Json::object();
      if (arguments.is_string()) {
        const auto text = arguments.get<std::string>();
        if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
          arguments = Json::object();
        } else {
          Result<Json> parsed = parse_json(text, "the arguments of a tool call");
          if (!parsed) return fail(ErrorCode::kInvalidArgument, "{}", parsed.error().message);
          if (form == ArgumentForm::kMapping) arguments = *std::move(parsed);
        }
      }
      if (form == ArgumentForm::kText && !arguments.is_string()) arguments = dump_json(arguments);
    }
  }
  return messages;
}

Result<jinja::MarkedText> render_as(const jinja::Template& parsed, const Tokenizer& tokenizer,
                                    const ChatRequest& request, const jinja::RenderOptions& options,
                                    ArgumentForm form) {
  using jinja::Origin;
  jinja::Variables variables;
  TESSERA_TRY(const Json messages, with_arguments(request.messages, form));
  TESSERA_TRY_STATUS(variables.set_json("messages", messages, Origin::kData));
  variables.set("tools", jinja::Value::none());
  if (request.tools != nullptr)
    TESSERA_TRY_STATUS(variables.set_json("tools", *request.tools, Origin::kData));
  variables.set("documents", jinja::Value::none());
  variables.set("add_generation_prompt", jinja::Value::boolean(request.add_generation_prompt));
  const std::array<std::pair<const char*, std::optional<int32_t>>, 4> specials = {
      {{"bos_token", tokenizer.bos_id()},
       {"eos_token", tokenizer.eos_id()},
       {"unk_token", tokenizer.unknown_id()},
       {"pad_token", tokenizer.pad_id()}}};
  for (const auto& [name, id] : specials)
    if (id) variables.set(name, jinja::Value::text(tokenizer.id_to_token(*id)));
  if (request.variables != nullptr)
    for (const auto& [name, value] : request.variables->items())
      TESSERA_TRY_STATUS(variables.set_json(name, value, Origin::kData));
  return parsed.render(variables, options);
}

}  // namespace

Result<ChatTemplateSource> find_chat_template(const Checkpoint& checkpoint) {
  if (checkpoint.kind() == CheckpointKind::kGguf) return from_gguf(checkpoint);
  if (const auto path = checkpoint.companion("chat_template.jinja")) {
    ChatTemplateSource out;
    out.origin = *path;
    TESSERA_TRY(out.text, read_file(*path));
    if (const auto tools = checkpoint.companion("additional_chat_templates/tool_use.jinja")) {
      TESSERA_TRY(out.tool_use, read_file(*tools));
    }
    return out;
  }
  for (const char* file : {"tokenizer_config.json", "chat_template.json"}) {
    const auto path = checkpoint.companion(file);
    if (!path) continue;
    TESSERA_TRY(const std::string text, read_file(*path));
    TESSERA_TRY(const Json json, parse_python_json(text, *path));
    const Json* value = json_find(json, "chat_template");
    if (value != nullptr && !value->is_null()) return from_json(*value, *path);
  }
  return none_found(checkpoint);
}

Result<jinja::MarkedText> render_chat(const ChatTemplateSource& source, const Tokenizer& tokenizer,
                                      const ChatRequest& request, const jinja::RenderOptions& options) {
  if (!request.messages.is_array())
    return fail(ErrorCode::kInvalidArgument, "messages: expected an array, found {}",
                json_type_name(request.messages));
  if (request.tools != nullptr && !request.tools->is_array())
    return fail(ErrorCode::kInvalidArgument, "tools: expected an array, found {}",
                json_type_name(*request.tools));
  const bool has_tools = request.tools != nullptr && !request.tools->empty();
  TESSERA_TRY(
      const jinja::Template parsed,
      jinja::Template::parse(has_tools && source.tool_use ? *source.tool_use : source.text, source.origin));
  Result<jinja::MarkedText> out = render_as(parsed, tokenizer, request, options, ArgumentForm::kMapping);
  if (out || out.error().code != ErrorCode::kBadData) return out;
  // Some templates put the arguments into a string themselves.
  Result<jinja::MarkedText> with_text = render_as(parsed, tokenizer, request, options, ArgumentForm::kText);
  return with_text ? with_text : out;
}

}  // namespace tessera
