// The vocabulary of configuration keys: HuggingFace's name, other spellings of it, the GGUF spelling, and
// whether it can change numbers. A key that some architecture reads is significant: where another
// architecture does not read it, it must be neutral.
#pragma once

#include <span>
#include <string_view>

namespace tessera {

struct ConfigKey {
  std::string_view name;
  std::string_view aliases;  // other HF spellings, separated by blanks
  std::string_view gguf;     // GGUF key without the architecture's prefix; "" when there is none
  std::string_view neutral;  // values (JSON, separated by blanks) that change nothing, besides null, false,
                             // 0, 1, "", [] and {}
};

[[nodiscard]] std::span<const ConfigKey> significant_keys();
// Keys that never change what an inference computes: training, bookkeeping, token ids of other parts.
[[nodiscard]] bool is_inert_key(std::string_view name);
[[nodiscard]] const ConfigKey* find_config_key(std::string_view name);  // by name or alias

}  // namespace tessera
