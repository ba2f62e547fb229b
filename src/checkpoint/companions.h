// Companions: tensors that only say how another one's codes are to be read (scales, biases, zero points). Each family of
// checkpoints names and lays them out in its own way, declared in the config; here they become planes of the tensor they belong
// to, whose shape is from then on that of the weight. What a config declares and nobody here computes is refused by name.
#pragma once

#include <string>

#include "checkpoint/companion_table.h"

namespace tessera {

// By what config.json declares (quantization, quantization_config). `path` is used in messages. Returns the kind that the
// declaration shows the checkpoint to be of.
[[nodiscard]] Result<CheckpointKind> fold_companions(CompanionTable& table, const Json& config,
                                                     CheckpointKind kind, const std::string& path);

// One function per family. `config` is the declaration.
// companions_mlx.cpp: .weight (U32), .scales, .biases
[[nodiscard]] Status fold_mlx(CompanionTable& table, const Json& config, const std::string& path);
// companions_mlc.cpp: .q_weight (U32), .q_scale; `name` is "q4f16_1" or the like
[[nodiscard]] Status fold_mlc(CompanionTable& table, const std::string& name, const std::string& path);
// companions_float8.cpp: .weight (F8_E4M3), .weight_scale_inv or .weight_scale
[[nodiscard]] Status fold_float8(CompanionTable& table, const Json& config, const std::string& path);
// companions_mxfp4.cpp: _blocks (U8), _scales (U8)
[[nodiscard]] Status fold_mxfp4(CompanionTable& table);
// companions_awq.cpp, companions_gptq.cpp: .qweight, .qzeros, .scales, .g_idx
[[nodiscard]] Status fold_awq(CompanionTable& table, const Json& config, const std::string& path);
[[nodiscard]] Status fold_gptq(CompanionTable& table, const Json& config, const std::string& path);
// companions_compressed.cpp: .weight_packed or .weight, .weight_scale, .weight_zero_point, ...
[[nodiscard]] Status fold_compressed(CompanionTable& table, const Json& config, const std::string& path);

// What more than one of them needs.
// An E4M3 tensor with its scale: one for all, one per expert, per row or per block of `block_rows` x `block_columns` (0: no
// blocks).
[[nodiscard]] Status fold_float8_scale(CompanionTable& table, TensorEntry& entry, TensorEntry& scale,
                                       int64_t block_rows, int64_t block_columns);
// scales [groups, rows] of any floating type of at most four bytes -> [rows, groups]; the plane of a grouped format.
[[nodiscard]] Plane transpose_scales(CompanionTable& table, const TensorEntry& scales);

}  // namespace tessera
