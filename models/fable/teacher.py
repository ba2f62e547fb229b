"""Sampling from a small llama checkpoint in large batches, and the sieve that keeps its better stories.

The sampler is plain torch over the checkpoint's own tensor names (grouped-query attention, tied or separate head), so it serves
the teacher while data is made and the new model while it is judged. Ragged prompts need no padding: every row is fed token by
token, and a row that still has prompt left takes its next token from there.
"""

import json
import math
import multiprocessing
import re
from collections import Counter

import torch
from safetensors.torch import load_file

from tale_words import NAMES_HE, NAMES_SHE, TREASURES


def rope_base(config):
    return float((config.get("rope_parameters") or {}).get("rope_theta") or config.get("rope_theta") or 10000.0)


class Sampler:
    def __init__(self, weights, config, device):
        self.w = {k: v.to(device, torch.float32) for k, v in weights.items()}
        self.config, self.device = config, device
        table = [k for k in ("model.embed_tokens.weight", "lm_head.weight") if k in self.w]
        self.embedding, self.head = self.w[table[0]], self.w[table[-1]]

    @classmethod
    def from_folder(cls, folder, device):
        with open(folder + "/config.json") as f:
            return cls(load_file(folder + "/model.safetensors"), json.load(f), device)

    def norm(self, x, name):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.config["rms_norm_eps"]) * self.w[name]

    @torch.inference_mode()
    def run(self, prompts, limit, stop, temperature=0.8, top_k=40, top_p=0.95, seed=0, first=None):
        """Continues every prompt (a list of ids) until a stop id or `limit` tokens in all. `first` [rows, vocab], if given, says which
        ids may follow each prompt. temperature 0 is greedy. Returns (all ids without the stop id, mean log probability, ended) a row."""
        c, w, device = self.config, self.w, self.device
        rows, heads, kv = len(prompts), c["num_attention_heads"], c["num_key_value_heads"]
        dim = c.get("head_dim") or c["hidden_size"] // heads
        longest = max(map(len, prompts))
        lengths = torch.tensor([len(p) for p in prompts], device=device)
        tokens = torch.zeros(rows, limit, dtype=torch.long)
        for i, p in enumerate(prompts):
            tokens[i, :len(p)] = torch.tensor(p[:limit])
        tokens = tokens.to(device)
        stop = torch.tensor(stop, device=device)
        angle = torch.arange(limit, device=device)[:, None] / rope_base(c) ** (torch.arange(0, dim, 2, device=device) / dim)
        cos, sin = torch.cat([angle.cos()] * 2, -1), torch.cat([angle.sin()] * 2, -1)
        cache = torch.zeros(2, c["num_hidden_layers"], rows, kv, limit, dim, device=device)
        done = torch.zeros(rows, dtype=torch.bool, device=device)
        score, count = torch.zeros(rows, device=device), torch.zeros(rows, device=device)
        generator = torch.Generator(device=device)
        generator.manual_seed(seed)

        def rotate(x, t):
            return x * cos[t] + torch.cat([-x[..., dim // 2:], x[..., :dim // 2]], -1) * sin[t]

        end = limit
        for t in range(limit - 1):
            x = self.embedding[tokens[:, t]]
            for i in range(c["num_hidden_layers"]):
                p = "model.layers.%d." % i
                h = self.norm(x, p + "input_layernorm.weight")
                q = rotate((h @ w[p + "self_attn.q_proj.weight"].T).view(rows, kv, heads // kv, dim), t)
                cache[0, i, :, :, t] = rotate((h @ w[p + "self_attn.k_proj.weight"].T).view(rows, kv, dim), t)
                cache[1, i, :, :, t] = (h @ w[p + "self_attn.v_proj.weight"].T).view(rows, kv, dim)
                mix = ((q @ cache[0, i, :, :, :t + 1].transpose(-1, -2)) / math.sqrt(dim)).softmax(-1) @ cache[1, i, :, :, :t + 1]
                x = x + mix.reshape(rows, heads * dim) @ w[p + "self_attn.o_proj.weight"].T
                h = self.norm(x, p + "post_attention_layernorm.weight")
                gate = torch.nn.functional.silu(h @ w[p + "mlp.gate_proj.weight"].T)
                x = x + (gate * (h @ w[p + "mlp.up_proj.weight"].T)) @ w[p + "mlp.down_proj.weight"].T
            logits = self.norm(x, "model.norm.weight") @ self.head.T
            logprob = logits.log_softmax(-1)
            if first is not None and t < longest:
                logits = logits.masked_fill(~first & (lengths == t + 1)[:, None], float("-inf"))
            if temperature == 0:
                drawn = logits.argmax(-1)
            else:
                top, index = (logits / temperature).topk(min(top_k, logits.shape[-1]))
                p = top.softmax(-1)
                p = p * (p.cumsum(-1) - p < top_p)
                drawn = index.gather(1, torch.multinomial(p, 1, generator=generator))[:, 0]
            sampling = (lengths <= t + 1) & ~done
            score += torch.where(sampling, logprob.gather(1, drawn[:, None])[:, 0], 0.0)
            count += sampling
            tokens[:, t + 1] = torch.where(lengths <= t + 1, drawn, tokens[:, t + 1])
            done |= sampling & torch.isin(drawn, stop)
            if t % 16 == 15 and t + 1 >= longest and bool(done.all()):
                end = t + 2
                break
        tokens, done = tokens[:, :end].tolist(), done.tolist()
        mean = (score / count.clamp(min=1)).tolist()
        stop, out = set(stop.tolist()), []
        for row, prompt, m, d in zip(tokens, prompts, mean, done):
            n = len(prompt)
            while n < len(row) and row[n] not in stop:
                n += 1
            out.append((row[:n], m, d))
        return out


# --- openings that give the teacher a subject ---------------------------------------------------------------------------------------
ADJECTIVES = ("little big small brave kind shy clever happy sad lonely funny curious silly old young tiny strong fast slow sleepy hungry gentle red blue "
              "green yellow white black pretty magic special friendly smart playful fat soft shiny naughty proud lazy grumpy").split()
SUBJECTS = ("fox rabbit bear deer squirrel owl mouse wolf cow horse pig sheep goat hen duck frog turtle swan fish whale crab dolphin lion elephant monkey "
            "giraffe zebra tiger parrot penguin seal ant bee snail butterfly caterpillar ladybug spider worm bird cat dog kitten puppy hamster robot "
            "king queen prince princess knight dragon wizard fairy star cloud boat car train truck tree flower doll bunny bug chicken lizard").split()
PLACES = ["park", "forest", "garden", "beach", "farm", "zoo", "store", "kitchen", "yard", "lake", "library", "playground", "woods", "river"]
THINGS = sorted({t for t in TREASURES}) + ["big box", "shiny rock", "little bird", "red apple", "big tree", "small door", "blue egg", "tasty cake", "toy car", "old hat"]


def opening(rng):
    """The first words of a story, or nothing."""
    if rng.random() < 0.3:
        return ""
    she = rng.random() < 0.5
    name = rng.choice(NAMES_SHE if she else NAMES_HE)
    child, he = ("girl", "She") if she else ("boy", "He")
    adjective, subject = rng.choice(ADJECTIVES), rng.choice(SUBJECTS)
    return rng.choice([
        f"Once upon a time, there was a {adjective} {subject} named {name}. {name}", f"Once upon a time, there was a {adjective} {subject}. The {subject}",
        f"Once upon a time, in a big {rng.choice(PLACES)}, there lived a {adjective} {subject} named {name}. {name}",
        f"Once upon a time, there was a little {child} named {name}. {he} loved", f"One day, a little {child} named {name} went to the {rng.choice(PLACES)}. {he}",
        f"One day, a little {child} named {name} found a {rng.choice(THINGS)}. {he}", f"Once upon a time, a {adjective} {subject} found a {rng.choice(THINGS)}. The {subject}",
        f"One day, a {adjective} {subject} named {name} went to the {rng.choice(PLACES)}. {name}"]) + " "


class Prompter:
    """Encodes openings the way the teacher met them in training, with the last token left open: sampling may replace it by a longer one."""

    def __init__(self, tokenizer, bos):
        self.tokenizer, self.bos = tokenizer, bos
        self.pieces = [(tokenizer.id_to_token(i) or "").replace("\u2581", " ") for i in range(tokenizer.get_vocab_size())]
        self.allowed = {}

    def __call__(self, text):
        """(ids to start from, which ids may follow)"""
        ids = self.tokenizer.encode(text, add_special_tokens=False).ids if text else []
        if ids and self.pieces[ids[0]] == " ":
            ids = ids[1:]
        if not ids:
            return [self.bos], self.mask("")
        return [self.bos] + ids[:-1], self.mask(self.pieces[ids[-1]])

    def mask(self, start):
        if start not in self.allowed:
            self.allowed[start] = torch.tensor([p.startswith(start) and "<" not in p for p in self.pieces])
        return self.allowed[start]


# --- the sieve ----------------------------------------------------------------------------------------------------------------------
WORD = re.compile(r"[A-Za-z][a-z']*")
NOT_NAMES = set("I Mom Dad Mommy Daddy Mama Papa Grandma Grandpa I'm I'll I've Mr Mrs Ms Miss OK".split())
COMMON = set("the a an and to was he she it they his her their in of with on for that said had not but so very as at be him them up were you is big little "
             "day one could from all went saw when who out wanted play happy what then there this can do have will did like would your my me we i".split())
AGAIN_AND_AGAIN = set("tried ran pulled looked walked pushed again played laughed bigger higher more faster ran cried jumped searched waited over up".split())


def tidy(text):
    """Whitespace as chats use it: paragraphs parted by an empty line. The teacher's vocabulary spells its end marker as text, too."""
    text = text.split("<|")[0]
    text = re.sub(r" +", " ", text.replace("\n", "\n\n"))
    return re.sub(r" ?\n[ \n]*", "\n\n", text).strip()


def fault(text):
    """Why a sampled story is not worth keeping, or None. Cheap signs of a small model losing the thread."""
    if not 280 <= len(text) <= 1500 or "<" in text or text[-1] not in ".!\"?" or not text[0].isupper():
        return "shape"
    if any(p.count('"') % 2 for p in text.split("\n\n")):
        return "quotes"
    words = [w.lower() for w in WORD.findall(text)]
    if any(w.lower() not in ("very", "so", "no", "yes", "ha") for w in re.findall(r"\b([A-Za-z']+) \1\b", text)):
        return "stutter"
    if any(w.lower() not in AGAIN_AND_AGAIN for w in re.findall(r"\b([A-Za-z']+) (?:and|or|the|to|on|in|with|of|named) (?:the )?\1\b", text)):
        return "echo"
    grams = Counter(zip(words, words[1:], words[2:], words[3:]))
    if max(grams.values()) > 2 or len(grams) < 0.93 * (len(words) - 3):
        return "repeats"
    sentences = [s.strip('" ').lower() for s in re.split(r"[.!?]+", text)]
    long_ones = [s for s in sentences if len(s.split()) > 2]
    if len(set(long_ones)) < len(long_ones):
        return "same sentence"
    twice = 0
    for s in sentences:
        counts = Counter(w for w in WORD.findall(s) if len(w) > 2 and w not in COMMON)
        twice += sum(1 for n in counts.values() if n > 1)
    if twice > 1:
        return "word twice in a sentence"
    lower = Counter(w for w in re.findall(r"\b[a-z]{3,}\b", text) if w not in COMMON)
    if lower and lower.most_common(1)[0][1] > max(6, 0.07 * len(words)):
        return "one word everywhere"
    names = Counter(n for n in re.findall(r"(?<=[a-z,] )([A-Z][a-z]+)\b", text) if n not in NOT_NAMES)
    if len(names) > 3 or any(text.count(n) < 2 for n in names):
        return "names"
    if re.search(r"([A-Z][a-z]+) (?:said|asked|replied|told)[^.\"]*, \"\1\b", text) or re.search(r"\b([A-Z][a-z]+) (?:and|saw|met|to|with|asked|told|hugged) \1\b", text):
        return "talks to itself"
    child = re.search(r"(girl|boy) named ([A-Z][a-z]+)", text)
    if child and child.group(2) in (NAMES_HE if child.group(1) == "girl" else NAMES_SHE):
        return "name and child"
    if child and len(names) <= 1 and len(re.findall(r"\b[Hh]e\b" if child.group(1) == "girl" else r"\b[Ss]he\b", text)) > 1:
        return "pronoun"
    hero = re.search(r"named ([A-Z][a-z]+)", text[:200])
    if hero and hero.group(1) not in text[int(len(text) * 0.7):]:
        return "hero forgotten"
    return None


def known_words(texts, least):
    counts = Counter(w for t in texts for w in {w.lower() for w in WORD.findall(t)})
    return {w for w, n in counts.items() if n >= least}


def sieve(samples, keep_share, workers, log):
    """Keeps tidy, faultless, distinct stories, of those the better share by mean log probability. `samples`: (text, mean log probability)."""
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        faults = pool.map(fault, [text for text, _ in samples], chunksize=500)
    known = known_words([text for (text, _), why in zip(samples, faults) if why is None], 3 if len(samples) > 50000 else 1)
    reasons, kept, seen = Counter(), [], set()
    for (text, mean), why in zip(samples, faults):
        if why is None and not all(w.lower() in known for w in WORD.findall(text)):
            why = "rare word"
        if why is None and text[:90] in seen:
            why = "same beginning"
        reasons[why or "kept"] += 1
        if why is None:
            seen.add(text[:90])
            kept.append((mean, text))
    kept.sort(reverse=True)
    kept = kept[:int(len(kept) * keep_share)]
    log("sieve: " + ", ".join(f"{k} {n}" for k, n in reasons.most_common()) + f"; the better {keep_share:.0%} by log probability: {len(kept)}")
    return [text for _, text in kept]
