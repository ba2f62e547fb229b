// The table of this instruction set.
#include "backend/cpu/kernels/kernels.h"

namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE {

#define TESSERA_STRING_INNER(x) #x
#define TESSERA_STRING(x) TESSERA_STRING_INNER(x)

void fill_kernel_table(KernelTable& table) {
  table.name = TESSERA_STRING(TESSERA_KERNEL_NAMESPACE);
  table.norm = norm;
  table.rope = rope;
  table.activate = activate;
  table.clamp = clamp;
  table.sparsify = sparsify;
  table.sigmoid_gate = sigmoid_gate;
  table.combine = combine;
  table.scale_logits = scale_logits;
  table.scale = scale;
  table.add = add;
  table.add_scaled = add_scaled;
  table.limit_gated = limit_gated;
  table.store_kv = store_kv;
  table.attend = attend;
  add_recurrent_kernels(table);
  add_delta_kernels(table);
  add_blocked_kernels(table);
  add_latent_kernels(table);
  add_float_kernels(table);
  add_int8_dot_kernels(table);
  add_int8_super_kernels(table);
  add_int8_tile_kernels(table);
  add_bf16_kernels(table);
}

}  // namespace tessera::cpu::TESSERA_KERNEL_NAMESPACE
