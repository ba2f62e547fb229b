#!/usr/bin/env python3
"""Makes the model in this folder from nothing but a small public teacher and the story grammar beside this script.

    python3 train.py --teacher path/to/tinystories-656k --out path/to/folder [--smoke]

Stages, all seeded: sample and sieve teacher stories (teacher.py); write chats, tool calls, plans and plain stories (tales.py,
dialogues.py); train a byte-level BPE tokenizer; train a llama model on packed rows; judge it; write a standard HF folder; reload
that folder in transformers (float32, CPU) and write the greedy reference and the tokenizer vectors. Nothing is downloaded and the
data is not kept. Needs torch, transformers, tokenizers, safetensors, jinja2, numpy; one GPU for sensible times.
"""

import argparse
import json
import math
import multiprocessing
import os
import random
import re
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import dialogues  # noqa: E402
import judge  # noqa: E402
import teacher  # noqa: E402

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
ADDED = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"]
END_OF_TEXT, IM_START, IM_END = 0, 1, 2
SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
MARKS = re.compile("|".join(re.escape(t) for t in SPECIAL + ADDED))
START = time.time()


def log(text):
    print(f"[{time.time() - START:6.1f}s] {text}", flush=True)


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--teacher", required=True, help="folder of the teacher checkpoint")
    p.add_argument("--out", required=True, help="folder to write")
    p.add_argument("--hidden", type=int, default=256)
    p.add_argument("--layers", type=int, default=5)
    p.add_argument("--heads", type=int, default=8)
    p.add_argument("--kv-heads", type=int, default=4)
    p.add_argument("--ffn", type=int, default=512)
    p.add_argument("--vocab", type=int, default=2048)
    p.add_argument("--context", type=int, default=2048)
    p.add_argument("--stories", type=int, default=262144, help="stories to sample from the teacher, before the sieve")
    p.add_argument("--teacher-temperature", type=float, default=0.55)
    p.add_argument("--chats", type=int, default=400000, help="chats to write")
    p.add_argument("--tales", type=int, default=100000, help="plain stories to write")
    p.add_argument("--steps", type=int, default=8000)
    p.add_argument("--rows", type=int, default=64, help="rows of `context` tokens a step")
    p.add_argument("--rate", type=float, default=3e-3)
    p.add_argument("--minutes", type=float, default=2.8, help="training takes at most this long: fewer steps if the first ones say so")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--attention", choices=["documents", "causal"], default="documents", help="documents: a token sees its own document only (needs a GPU)")
    p.add_argument("--no-compile", action="store_true")
    p.add_argument("--workers", type=int, default=os.cpu_count())
    p.add_argument("--smoke", action="store_true", help="the whole way in small, to find mistakes early")
    a = p.parse_args()
    if a.smoke:
        a.stories, a.chats, a.tales, a.steps = 128, 600, 100, 12
    return a


# --- teacher stories ----------------------------------------------------------------------------------------------------------------
def sample_teacher(a, device):
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(a.teacher + "/tokenizer.json")
    sampler = teacher.Sampler.from_folder(a.teacher, device)
    bos, eos = sampler.config["bos_token_id"], sampler.config["eos_token_id"]
    prompter, rng, out, batch = teacher.Prompter(tokenizer, bos), random.Random(a.seed), [], min(a.stories, 8192)
    for number in range(a.stories // batch):
        prompts = [prompter(teacher.opening(rng)) for _ in range(batch)]
        rows = sampler.run([p for p, _ in prompts], 400, [eos], a.teacher_temperature, 40, 0.95, a.seed * 1000 + number,
                           torch.stack([m for _, m in prompts]).to(device))
        rows = [(ids, mean) for ids, mean, ended in rows if ended]
        texts = tokenizer.decode_batch([ids[1:] for ids, _ in rows], skip_special_tokens=True)
        out += [(teacher.tidy(text), mean) for text, (_, mean) in zip(texts, rows)]
        if number % 8 == 0:
            log(f"teacher: {len(out)} finished stories")
    kept = teacher.sieve(out, 0.7, a.workers, log)
    random.Random(a.seed).shuffle(kept)
    return kept + [text for text, _ in out][:100] if a.smoke else kept


# --- texts --------------------------------------------------------------------------------------------------------------------------
STATE = {}  # what forked workers share: teacher stories, tokenizer file, context


def text_of(kind, seed):
    """One training text. kind: chat, tale, story or story_chat (the last two from the teacher). None if it did not come out."""
    rng = random.Random(f"{kind}/{seed}")
    if kind == "tale":
        return dialogues.plain_tale(rng)
    if kind == "story":
        return STATE["stories"][seed % len(STATE["stories"])]
    made = dialogues.chat(rng, STATE["context"] * 3.7) if kind == "chat" else dialogues.teacher_chat(rng, STATE["stories"][seed % len(STATE["stories"])])
    if made is None:
        return None
    return ("<|endoftext|>" if rng.random() < 0.1 else "") + dialogues.render(*made)


def tokenize(work):
    """(kind, first seed, count) -> ids of all texts, loss flags, lengths."""
    kind, first, count = work
    if "tokenizer" not in STATE:
        from tokenizers import Tokenizer
        STATE["tokenizer"] = Tokenizer.from_file(STATE["tokenizer_file"])
    tokenizer = STATE["tokenizer"]
    head = tokenizer.encode("assistant\n", add_special_tokens=False).ids
    think = tokenizer.token_to_id("<think>")
    ids, flags, lengths = [], [], []
    for seed in range(first, first + count):
        text = text_of(kind, seed)
        if text is None:
            continue
        plain = kind in ("tale", "story")
        row = tokenizer.encode(text, add_special_tokens=plain).ids + ([END_OF_TEXT] if plain else [])
        row = row[:STATE["context"]]
        if plain:
            flag = [0] + [1] * (len(row) - 1)
        else:
            flag, at = [0] * len(row), 0
            while IM_START in row[at:]:
                start = row.index(IM_START, at) + 1
                at = start
                if row[start:start + len(head)] != head:
                    continue
                start += len(head)
                if start < len(row) and row[start] == think:
                    start += 2  # the template writes `<think>\n`, the model never has to
                end = row.index(IM_END, start) + 1 if IM_END in row[start:] else len(row)
                flag[start:end] = [1] * (end - start)
                at = end
        ids += row
        flags += flag
        lengths.append(len(row))
    return np.array(ids, np.int16), np.array(flags, np.uint8), lengths


def train_tokenizer(a, stories):
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(SPLIT), "isolated"),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    count = 300 if a.smoke else 24000
    texts = [t for kind, n in (("chat", count), ("tale", count // 3)) for seed in range(n) if (t := text_of(kind, 10 ** 9 + seed))]
    texts += stories[:count // 4]
    pieces = (piece for text in texts for piece in MARKS.split(text) if piece)
    tokenizer.train_from_iterator(pieces, trainers.BpeTrainer(
        vocab_size=a.vocab - len(ADDED), show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[AddedToken(t, special=True, normalized=False) for t in SPECIAL]))
    if tokenizer.get_vocab_size() < a.vocab - len(ADDED) and not a.smoke:
        raise SystemExit("too little text for the vocabulary")
    tokenizer.add_tokens([AddedToken(t, special=False, normalized=False) for t in ADDED])
    tokenizer.post_processor = processors.TemplateProcessing(single="<|endoftext|>:0 $A:0", pair="<|endoftext|>:0 $A:0 <|endoftext|>:1 $B:1",
                                                             special_tokens=[("<|endoftext|>", END_OF_TEXT)])
    for i, t in enumerate(SPECIAL):
        assert tokenizer.token_to_id(t) == i
    return tokenizer


def pack(lengths, row, seed):
    """Best fit into rows, two dozen of them open at a time: rows of document numbers."""
    order = list(range(len(lengths)))
    random.Random(seed).shuffle(order)
    rows, open_rows = [], []
    for i in order:
        n = lengths[i]
        fit = min((r for r in open_rows if r[0] >= n), default=None, key=lambda r: r[0])
        if fit is None:
            if len(open_rows) >= 24:
                full = min(open_rows, key=lambda r: r[0])
                open_rows.remove(full)
                rows.append(full[1])
            fit = [row, []]
            open_rows.append(fit)
        fit[0] -= n
        fit[1].append(i)
    return rows + [r[1] for r in open_rows]


def make_rows(a, stories):
    """Training rows: tokens, document numbers (0 = padding) and loss weights, each [rows, context]."""
    # the teacher's stories come back a few times, so that they hold a fair share; a seed beyond their number gives other prompts
    jobs = [("chat", a.chats), ("tale", a.tales), ("story", min(4 * len(stories), int(0.1 * a.tales))), ("story_chat", min(3 * len(stories), int(0.03 * a.chats)))]
    work = [(kind, first, min(500, count - first)) for kind, count in jobs for first in range(0, count, 500)]
    with multiprocessing.get_context("fork").Pool(a.workers) as pool:
        parts = list(pool.imap(tokenize, work, chunksize=4))
    for kind, _ in jobs:
        mine = [p for p, w in zip(parts, work) if w[0] == kind]
        lengths = [n for p in mine for n in p[2]]
        log(f"{kind}: {len(lengths)} texts, {sum(lengths) / 1e6:.1f} M tokens, longest {max(lengths, default=0)}, "
            f"over half the context {sum(n > a.context // 2 for n in lengths)}")
    ids, flags = np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
    lengths = [n for p in parts for n in p[2]]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    rows = pack(lengths, a.context, a.seed)
    tokens = np.zeros((len(rows), a.context), np.int16)
    documents, weights = np.zeros_like(tokens), np.zeros((len(rows), a.context), np.uint8)
    for r, members in enumerate(rows):
        at = 0
        for number, i in enumerate(members, 1):
            n = lengths[i]
            tokens[r, at:at + n] = ids[starts[i]:starts[i] + n]
            weights[r, at:at + n] = flags[starts[i]:starts[i] + n]
            documents[r, at:at + n] = number
            at += n
    log(f"{len(rows)} rows of {a.context}, {(documents > 0).mean():.1%} filled, {weights.mean():.1%} of the positions count in the loss")
    return tokens, documents, weights


# --- model --------------------------------------------------------------------------------------------------------------------------
class Norm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(size)), eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads, self.kv, self.dim = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
        self.q_proj = nn.Linear(c["hidden_size"], self.heads * self.dim, bias=False)
        self.k_proj = nn.Linear(c["hidden_size"], self.kv * self.dim, bias=False)
        self.v_proj = nn.Linear(c["hidden_size"], self.kv * self.dim, bias=False)
        self.o_proj = nn.Linear(self.heads * self.dim, c["hidden_size"], bias=False)

    def forward(self, x, rope, mask):
        b, t, _ = x.shape
        q, k, v = (p(x).view(b, t, -1, self.dim).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        cos, sin = rope[0][:t].to(q.dtype), rope[1][:t].to(q.dtype)
        half = self.dim // 2
        q, k = (y * cos + torch.cat([-y[..., half:], y[..., :half]], -1) * sin for y in (q, k))
        if mask is None:
            k, v = (y.repeat_interleave(self.heads // self.kv, 1) for y in (k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            from torch.nn.attention.flex_attention import flex_attention
            y = flex_attention(q, k, v, block_mask=mask, enable_gqa=True)
        return self.o_proj(y.transpose(1, 2).reshape(b, t, -1))


class Mlp(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gate_proj = nn.Linear(c["hidden_size"], c["intermediate_size"], bias=False)
        self.up_proj = nn.Linear(c["hidden_size"], c["intermediate_size"], bias=False)
        self.down_proj = nn.Linear(c["intermediate_size"], c["hidden_size"], bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.self_attn, self.mlp = Attention(c), Mlp(c)
        self.input_layernorm = Norm(c["hidden_size"], c["rms_norm_eps"])
        self.post_attention_layernorm = Norm(c["hidden_size"], c["rms_norm_eps"])

    def forward(self, x, rope, mask):
        x = x + self.self_attn(self.input_layernorm(x), rope, mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed_tokens = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.layers = nn.ModuleList(Layer(c) for _ in range(c["num_hidden_layers"]))
        self.norm = Norm(c["hidden_size"], c["rms_norm_eps"])


class Model(nn.Module):
    """Llama with tied embeddings; module names are the checkpoint's tensor names."""

    def __init__(self, c):
        super().__init__()
        self.model = Body(c)
        angle = torch.arange(c["max_position_embeddings"])[:, None] / c["rope_theta"] ** (torch.arange(0, c["head_dim"], 2) / c["head_dim"])
        self.register_buffer("cos", torch.cat([angle.cos()] * 2, -1), persistent=False)
        self.register_buffer("sin", torch.cat([angle.sin()] * 2, -1), persistent=False)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02 / (math.sqrt(2 * c["num_hidden_layers"]) if name.endswith(("o_proj.weight", "down_proj.weight")) else 1))

    def forward(self, tokens, mask=None):
        x = self.model.embed_tokens(tokens)
        for layer in self.model.layers:
            x = layer(x, (self.cos, self.sin), mask)
        return F.linear(self.model.norm(x), self.model.embed_tokens.weight).float()


def model_config(a):
    return {"architectures": ["LlamaForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": END_OF_TEXT, "eos_token_id": IM_END,
            "head_dim": a.hidden // a.heads, "hidden_act": "silu", "hidden_size": a.hidden, "initializer_range": 0.02, "intermediate_size": a.ffn,
            "max_position_embeddings": a.context, "mlp_bias": False, "model_type": "llama", "num_attention_heads": a.heads, "num_hidden_layers": a.layers,
            "num_key_value_heads": a.kv_heads, "pad_token_id": END_OF_TEXT, "rms_norm_eps": 1e-05, "rope_scaling": None, "rope_theta": 10000.0,
            "tie_word_embeddings": True, "torch_dtype": "bfloat16", "use_cache": True, "vocab_size": a.vocab}


def train(a, config, rows, device):
    torch.manual_seed(a.seed)
    model = Model(config).to(device)
    count = sum(p.numel() for p in model.parameters())
    log(f"{count / 1e6:.2f} M parameters")
    tokens, documents, weights = (torch.from_numpy(r).to(device) for r in rows)
    seen = torch.zeros(a.rows, a.context, dtype=torch.int32, device=device)  # document numbers of the step at hand: one buffer, so nothing recompiles

    def loss_of(x, y, w, mask):
        logits = model(x, mask)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="none")
        return (loss * w.flatten()).sum() / w.sum().clamp(min=1)

    make_mask = None
    if a.attention == "documents":
        from torch.nn.attention.flex_attention import create_block_mask

        def same_document(b, h, q, k):
            return (q >= k) & (seen[b, q] == seen[b, k])

        make_mask = create_block_mask if a.no_compile else torch.compile(create_block_mask, dynamic=False)
    step_loss = loss_of if a.no_compile else torch.compile(loss_of, dynamic=False)
    matrices = [p for p in model.parameters() if p.dim() == 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}], lr=a.rate, betas=(0.9, 0.95),
                                  **({"fused": True} if device == "cuda" else {}))
    order, steps, warmup = torch.Generator().manual_seed(a.seed), a.steps, min(100, a.steps // 4)
    queue, losses, first = [], [], time.time()
    for step in range(10 ** 9):
        if step == 30:
            began = time.time()
            if device == "cuda":
                torch.cuda.synchronize()
        if step == 60:
            if device == "cuda":
                torch.cuda.synchronize()
            each = (time.time() - began) / 30
            steps = min(steps, int(a.minutes * 60 / each))
            log(f"{each * 1e3:.0f} ms a step, {a.rows * a.context / each / 1e6:.2f} M tokens/s; {steps} steps, "
                f"{steps * a.rows / len(tokens):.2f} times through the data")
        if step >= steps:
            break
        if len(queue) < a.rows:
            queue += torch.randperm(len(tokens), generator=order).tolist()
            while len(queue) < a.rows:
                queue += torch.randperm(len(tokens), generator=order).tolist()
        pick = torch.tensor(queue[:a.rows], device=device)
        del queue[:a.rows]
        x = tokens[pick].long()
        seen.copy_(documents[pick])
        y, w = torch.zeros_like(x), torch.zeros(x.shape, device=device)
        y[:, :-1] = x[:, 1:]
        w[:, :-1] = weights[pick][:, 1:] * (seen[:, 1:] == seen[:, :-1])
        progress = max(0.0, (step - warmup) / max(1, steps - warmup))
        rate = a.rate * min(1.0, (step + 1) / warmup) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        mask = make_mask(same_document, a.rows, None, a.context, a.context, device=device) if make_mask else None
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = step_loss(x, y, w, mask)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.detach())
        if step % 200 == 0 or step == steps - 1:
            log(f"step {step}: loss {torch.stack(losses[-50:]).mean().item():.4f}, rate {rate:.2e}")
    if not math.isfinite(losses[-1].item()):
        raise SystemExit("training diverged")
    figures = {"parameters": count, "steps": steps, "tokens_seen": steps * a.rows * a.context,
               "training_loss": round(torch.stack(losses[-50:]).mean().item(), 4), "training_seconds": round(time.time() - first, 1)}
    return model, figures


def export(a, config, model, tokenizer):
    weights = {name: p.detach().to("cpu", torch.bfloat16).contiguous() for name, p in model.named_parameters()}
    save_file(weights, a.out + "/model.safetensors", metadata={"format": "pt"})
    template = dialogues.chat_template()

    def write(name, value):
        with open(os.path.join(a.out, name), "w", encoding="utf-8") as f:
            f.write(value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False) + "\n")

    write("config.json", config)
    write("generation_config.json", {"bos_token_id": END_OF_TEXT, "eos_token_id": [IM_END, END_OF_TEXT], "pad_token_id": END_OF_TEXT, "do_sample": True,
                                     "temperature": judge.SAMPLING["temperature"], "top_k": judge.SAMPLING["top_k"], "top_p": judge.SAMPLING["top_p"]})
    tokenizer.save(a.out + "/tokenizer.json")
    added = {str(tokenizer.token_to_id(t)): {"content": t, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": t in SPECIAL}
             for t in SPECIAL + ADDED}
    write("tokenizer_config.json", {"add_bos_token": True, "add_eos_token": False, "added_tokens_decoder": added, "bos_token": SPECIAL[END_OF_TEXT],
                                    "chat_template": template, "clean_up_tokenization_spaces": False, "eos_token": SPECIAL[IM_END],
                                    "model_max_length": a.context, "pad_token": SPECIAL[END_OF_TEXT], "tokenizer_class": "PreTrainedTokenizerFast"})
    write("chat_template.jinja", template)


def main():
    a = arguments()
    random.seed(a.seed)
    torch.manual_seed(a.seed)
    torch.set_float32_matmul_precision("high")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    os.makedirs(a.out, exist_ok=True)
    os.environ["TOKENIZERS_PARALLELISM"] = "true"
    stories = sample_teacher(a, device)
    for text in stories[:3]:
        log("a teacher story: " + json.dumps(text))
    held_stories = stories[::50]
    stories = [s for i, s in enumerate(stories) if i % 50]
    STATE.update(stories=stories, context=a.context, tokenizer_file=a.out + "/tokenizer.json")
    tokenizer = train_tokenizer(a, stories)
    tokenizer.save(STATE["tokenizer_file"])
    log(f"tokenizer: {tokenizer.get_vocab_size()} tokens")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    rows = make_rows(a, stories)
    config = model_config(a)
    model, figures = train(a, config, rows, device)
    export(a, config, model, tokenizer)
    del rows
    figures.update(teacher_stories_kept=len(stories) + len(held_stories), chats=a.chats, tales=a.tales, seed=a.seed)
    figures.update(judge.figures(a.out, model, tokenizer, held_stories, device, a.smoke, log))
    judge.reference(a.out, log)
    judge.tokenizer_vectors(a.out, log)
    with open(a.out + "/figures.json", "w", encoding="utf-8") as f:
        f.write(json.dumps(figures, indent=2, ensure_ascii=False) + "\n")
    log("figures: " + json.dumps({k: v for k, v in figures.items() if k != "samples"}, indent=1))


if __name__ == "__main__":
    main()
