// ChatTemplate: how a checkpoint's authors write a conversation as text. Where it comes from, first match counts:
// chat_template.jinja (with additional_chat_templates/tool_use.jinja), the key chat_template of tokenizer_config.json
// (a text, or named ones), chat_template.json, the keys tokenizer.chat_template* of a GGUF file. It is never guessed
// from a model's name: a checkpoint without one is an error that says so.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "text/jinja/template.h"

namespace tessera {

class Tokenizer;

struct ChatTemplateSource {
  std::string origin;                   // file or key, for messages
  std::string text;                     // the template named "default", or the only one
  std::optional<std::string> tool_use;  // what is used when tools are given
};

// kNotFound when the checkpoint brings none.
[[nodiscard]] Result<ChatTemplateSource> find_chat_template(const Checkpoint& checkpoint);

// A view: the JSON must outlive it.
struct ChatRequest {
  const Json& messages;
  const Json* tools = nullptr;      // null: none
  const Json* variables = nullptr;  // an object: more for the template, such as enable_thinking
  bool add_generation_prompt = true;
};

// The conversation as text, and which bytes of it came with the request. Arguments of past tool calls that come as text
// are decoded first ("" and null are {}); a template that wants text gets text. kInvalidArgument: the template refuses
// the conversation, or the request is no conversation.
[[nodiscard]] Result<jinja::MarkedText> render_chat(const ChatTemplateSource& source,
                                                    const Tokenizer& tokenizer, const ChatRequest& request,
                                                    const jinja::RenderOptions& options);

}  // namespace tessera
