// The two common dialects. Architectures add rows of their own for what differs (arch/), and those win.
#include "model/dialect.h"

#include <string_view>

namespace tessera {

const Dialect& hf_dialect() {
  static const Dialect dialect = {
      .rows =
          {
              {{"embed"}, {"embed_tokens"}},
              {{"final_norm"}, {"norm"}},
              {{"head"}, {"lm_head"}},
              {{"layers.*.attn.norm"}, {"layers.*.input_layernorm"}},
              {{"layers.*.attn.q"}, {"layers.*.self_attn.q_proj"}},
              {{"layers.*.attn.k"}, {"layers.*.self_attn.k_proj"}},
              {{"layers.*.attn.v"}, {"layers.*.self_attn.v_proj"}},
              {{"layers.*.attn.q", "layers.*.attn.k", "layers.*.attn.v"}, {"layers.*.self_attn.qkv_proj"}},
              {{"layers.*.attn.o"}, {"layers.*.self_attn.o_proj"}},
              {{"layers.*.attn.q_norm"}, {"layers.*.self_attn.q_norm"}},
              {{"layers.*.attn.k_norm"}, {"layers.*.self_attn.k_norm"}},
              {{"layers.*.attn.post_norm"},
               {"layers.*.post_self_attn_layernorm", "layers.*.post_attention_layernorm"}},
              {{"layers.*.ffn.norm"},
               {"layers.*.pre_feedforward_layernorm", "layers.*.pre_ff_layernorm",
                "layers.*.post_attention_layernorm"}},
              {{"layers.*.ffn.post_norm"},
               {"layers.*.post_feedforward_layernorm", "layers.*.post_mlp_layernorm"}},
              {{"layers.*.ffn.gate"},
               {"layers.*.mlp.gate_proj", "layers.*.feed_forward.gate_proj", "layers.*.feed_forward.w1"}},
              {{"layers.*.ffn.up"},
               {"layers.*.mlp.up_proj", "layers.*.feed_forward.up_proj", "layers.*.feed_forward.w3"}},
              {{"layers.*.ffn.gate", "layers.*.ffn.up"}, {"layers.*.mlp.gate_up_proj"}},
              {{"layers.*.ffn.down"},
               {"layers.*.mlp.down_proj", "layers.*.feed_forward.down_proj", "layers.*.feed_forward.w2"}},
              {{"layers.*.moe.router"}, {"layers.*.mlp.gate", "layers.*.block_sparse_moe.gate"}},
              {{"layers.*.moe.selection_bias"}, {"layers.*.mlp.gate.e_score_correction_bias"}},
              // One tensor per expert, or MLX's stack of all.
              {{"layers.*.moe.gate"},
               {"layers.*.mlp.experts.#.gate_proj", "layers.*.mlp.switch_mlp.gate_proj",
                "layers.*.block_sparse_moe.experts.#.w1", "layers.*.block_sparse_moe.switch_mlp.gate_proj",
                "layers.*.feed_forward.experts.#.gate_proj", "layers.*.feed_forward.experts.#.w1",
                "layers.*.feed_forward.switch_mlp.gate_proj"}},
              {{"layers.*.moe.up"},
               {"layers.*.mlp.experts.#.up_proj", "layers.*.mlp.switch_mlp.up_proj",
                "layers.*.block_sparse_moe.experts.#.w3", "layers.*.block_sparse_moe.switch_mlp.up_proj",
                "layers.*.feed_forward.experts.#.up_proj", "layers.*.feed_forward.experts.#.w3",
                "layers.*.feed_forward.switch_mlp.up_proj"}},
              {{"layers.*.moe.gate", "layers.*.moe.up"}, {"layers.*.mlp.experts.gate_up_proj!"}},
              {{"layers.*.moe.down"},
               {"layers.*.mlp.experts.#.down_proj", "layers.*.mlp.switch_mlp.down_proj",
                "layers.*.mlp.experts.down_proj!", "layers.*.block_sparse_moe.experts.#.w2",
                "layers.*.block_sparse_moe.switch_mlp.down_proj", "layers.*.feed_forward.experts.#.down_proj",
                "layers.*.feed_forward.experts.#.w2", "layers.*.feed_forward.switch_mlp.down_proj"}},
              {{"layers.*.shared.gate"},
               {"layers.*.mlp.shared_expert.gate_proj", "layers.*.mlp.shared_experts.gate_proj"}},
              {{"layers.*.shared.up"},
               {"layers.*.mlp.shared_expert.up_proj", "layers.*.mlp.shared_experts.up_proj"}},
              {{"layers.*.shared.down"},
               {"layers.*.mlp.shared_expert.down_proj", "layers.*.mlp.shared_experts.down_proj"}},
              {{"layers.*.shared.token_gate"}, {"layers.*.mlp.shared_expert_gate"}},
          },
      .prefixes = {"model.language_model.", "language_model.model.", "language_model.", "model."},
      // The last ones are scales of activations and of cached keys and values: none of these is quantised here.
      .ignored = {"*rotary_emb.inv_freq", "*.attn.bias", "*.attn.masked_bias", "*position_ids",
                  "*.input_scale", "*.input_zero_point", "*.input_global_scale", "*.activation_scale",
                  "*.k_scale", "*.v_scale", "*.kv_scale"},
  };
  return dialect;
}

const Dialect& mlc_dialect() {
  static const Dialect dialect = [] {
    Dialect mlc = hf_dialect();
    const std::vector<DialectRow> rows = {
        {{"embed"}, {"embd"}},
        {{"layers.*.attn.norm"}, {"h.*.ln"}},
        {{"layers.*.attn.q", "layers.*.attn.k", "layers.*.attn.v"}, {"layers.*.self_attn.c_attn"}},
        {{"layers.*.attn.q", "layers.*.attn.k", "layers.*.attn.v"}, {"h.*.mixer.qkv_proj"}},
        {{"layers.*.attn.o"}, {"h.*.mixer.out_proj"}},
        {{"layers.*.ffn.norm"}, {"h.*.post_attention_layernorm"}},
        {{"layers.*.ffn.gate", "layers.*.ffn.up"}, {"h.*.mlp.gate_up_proj"}},
        {{"layers.*.ffn.down"}, {"h.*.mlp.down_proj"}},
        {{"layers.*.moe.gate", "layers.*.moe.up"}, {"layers.*.mlp.moe_gate_up_proj"}},
        {{"layers.*.moe.down"}, {"layers.*.mlp.moe_down_proj"}},
    };
    mlc.rows.insert(mlc.rows.end(), rows.begin(), rows.end());
    mlc.prefixes.insert(mlc.prefixes.begin(), "transformer.");
    return mlc;
  }();
  return dialect;
}

const Dialect& gguf_dialect() {
  static const Dialect dialect = {
      .rows =
          {
              {{"embed"}, {"token_embd"}},
              {{"final_norm"}, {"output_norm"}},
              {{"head"}, {"output"}},
              {{"embed.norm"}, {"token_embd_norm"}},
              {{"embed.positions"}, {"position_embd"}},
              {{"rope.divisors"}, {"rope_freqs"}},
              {{"rope.short_factors"}, {"rope_factors_short"}},
              {{"rope.long_factors"}, {"rope_factors_long"}},
              {{"layers.*.attn.norm"}, {"blk.*.attn_norm"}},
              {{"layers.*.attn.q"}, {"blk.*.attn_q"}},
              {{"layers.*.attn.k"}, {"blk.*.attn_k"}},
              {{"layers.*.attn.v"}, {"blk.*.attn_v"}},
              {{"layers.*.attn.q", "layers.*.attn.k", "layers.*.attn.v"}, {"blk.*.attn_qkv"}},
              {{"layers.*.attn.o"}, {"blk.*.attn_output", "blk.*.ssm_out", "blk.*.shortconv.out_proj"}},
              {{"layers.*.attn.sinks"}, {"blk.*.attn_sinks.weight"}},
              {{"layers.*.attn.q_a"}, {"blk.*.attn_q_a"}},
              {{"layers.*.attn.q_a_norm"}, {"blk.*.attn_q_a_norm"}},
              {{"layers.*.attn.q_b"}, {"blk.*.attn_q_b"}},
              {{"layers.*.attn.kv_a"}, {"blk.*.attn_kv_a_mqa"}},
              {{"layers.*.attn.kv_a_norm"}, {"blk.*.attn_kv_a_norm"}},
              {{"layers.*.attn.kv_b"}, {"blk.*.attn_kv_b"}},
              {{"layers.*.attn.in"}, {"blk.*.ssm_in", "blk.*.shortconv.in_proj"}},
              {{"layers.*.attn.conv"}, {"blk.*.ssm_conv1d", "blk.*.shortconv.conv"}},
              {{"layers.*.attn.x_proj"}, {"blk.*.ssm_x"}},
              {{"layers.*.attn.dt_proj"}, {"blk.*.ssm_dt"}},
              {{"layers.*.attn.dt_bias"}, {"blk.*.ssm_dt.bias"}},
              {{"layers.*.attn.dt_norm"}, {"blk.*.ssm_dt_norm"}},
              {{"layers.*.attn.b_norm"}, {"blk.*.ssm_b_norm"}},
              {{"layers.*.attn.c_norm"}, {"blk.*.ssm_c_norm"}},
              {{"layers.*.attn.decay"}, {"blk.*.ssm_a"}},  // -exp(A_log), as the library wants it
              {{"layers.*.attn.d"}, {"blk.*.ssm_d"}},
              {{"layers.*.attn.o_norm"}, {"blk.*.ssm_norm"}},
              {{"layers.*.attn.z"}, {"blk.*.attn_gate"}},
              {{"layers.*.attn.a"}, {"blk.*.ssm_alpha"}},
              {{"layers.*.attn.b"}, {"blk.*.ssm_beta"}},
              {{"layers.*.attn.q_norm"}, {"blk.*.attn_q_norm"}},
              {{"layers.*.attn.k_norm"}, {"blk.*.attn_k_norm"}},
              {{"layers.*.attn.post_norm"}, {"blk.*.post_attention_norm"}},
              {{"layers.*.ffn.norm"}, {"blk.*.ffn_norm"}},
              {{"layers.*.ffn.post_norm"}, {"blk.*.post_ffw_norm"}},
              {{"layers.*.ffn.gate"}, {"blk.*.ffn_gate"}},
              {{"layers.*.ffn.up"}, {"blk.*.ffn_up"}},
              {{"layers.*.ffn.down"}, {"blk.*.ffn_down"}},
              {{"layers.*.moe.router"}, {"blk.*.ffn_gate_inp"}},
              {{"layers.*.moe.selection_bias"}, {"blk.*.exp_probs_b.bias", "blk.*.exp_probs_b"}},
              {{"layers.*.moe.gate"}, {"blk.*.ffn_gate_exps"}},
              {{"layers.*.moe.up"}, {"blk.*.ffn_up_exps"}},
              {{"layers.*.moe.gate", "layers.*.moe.up"}, {"blk.*.ffn_gate_up_exps"}},
              {{"layers.*.moe.down"}, {"blk.*.ffn_down_exps"}},
              {{"layers.*.shared.gate"}, {"blk.*.ffn_gate_shexp"}},
              {{"layers.*.shared.up"}, {"blk.*.ffn_up_shexp"}},
              {{"layers.*.shared.down"}, {"blk.*.ffn_down_shexp"}},
              {{"layers.*.shared.token_gate"}, {"blk.*.ffn_gate_inp_shexp"}},
          },
      .prefixes = {},
      .ignored = {},
  };
  return dialect;
}

bool glob_match(std::string_view pattern, std::string_view text) {
  size_t p = 0;
  size_t t = 0;
  size_t star = std::string_view::npos;
  size_t mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace tessera
