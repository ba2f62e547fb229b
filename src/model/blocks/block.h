// What every kind of block states about itself, each in the file of its name: slots (with shapes), state, and what must hold of its
// numbers. plan/blocks has the other half: the ops it emits.
#pragma once

#include <string>
#include <variant>

#include "base/result.h"
#include "model/blocks/attention.h"
#include "model/blocks/ffn.h"
#include "model/blocks/mla.h"
#include "model/blocks/moe.h"
#include "model/blocks/per_layer_input.h"
#include "model/blocks/recurrent.h"
#include "model/blocks/simple.h"

namespace tessera {

using Block =
    std::variant<AttentionSpec, MlaSpec, DeltaNetSpec, ShortConvSpec, MambaSpec, Mamba2Spec, RwkvTimeSpec,
                 RwkvChannelSpec, FfnSpec, MoeSpec, PerLayerInputSpec, LowRankSpec, IdentitySpec>;

struct ModelSpec;
class SlotList;
class StateList;

void add_slots(SlotList& slots, const std::string& name, const Block& block);
void add_state(StateList& state, const Block& block, int64_t hidden);
[[nodiscard]] Status validate_block(const ModelSpec& spec, const Block& block, const std::string& where);

}  // namespace tessera
