"""Judges the new model by figures, and writes the references that engines are tested against.

Figures: perplexity on texts kept out of training, variety of sampled stories, and whether chats do what was asked (subject, names,
continuations, questions, tool calls, plans). References: greedy ids of transformers in float32 on the CPU, with and without a
cache, and tokenizer vectors of the `tokenizers` library.
"""

import json
import math
import os
import random
import re

import torch
import torch.nn.functional as F

import dialogues
from dialogues import render, typed
from tale_words import HELD_OUT, NAMES_HE, NAMES_SHE, TRAITS
from tales import COLORS, PLOTS, Tale, made_up_word, with_articles
from teacher import Sampler

SAMPLING = dict(temperature=0.7, top_k=40, top_p=0.9)


def share(flags):
    return round(sum(map(bool, flags)) / max(1, len(flags)), 3)


def perplexity(model, tokenizer, texts, device):
    """(per token, bits per byte) of plain stories, end marker included."""
    loss, count, size = 0.0, 0, 0
    for text in texts:
        ids = torch.tensor(tokenizer.encode(text).ids + [0], device=device)[None]
        with torch.no_grad():
            logits = model(ids[:, :-1])
        loss += F.cross_entropy(logits[0], ids[0, 1:], reduction="sum").item()
        count += ids.shape[1] - 1
        size += len(text.encode())
    return round(math.exp(loss / count), 3), round(loss / math.log(2) / max(1, size), 3)


def loss_by_position(model, tokenizer, chats, device, context):
    """Mean loss of long chats (all tokens) in four stretches of the context."""
    sums, counts = [0.0] * 4, [0] * 4
    for chat in chats:
        ids = torch.tensor(tokenizer.encode(render(*chat), add_special_tokens=False).ids[:context], device=device)[None]
        with torch.no_grad():
            loss = F.cross_entropy(model(ids[:, :-1])[0], ids[0, 1:], reduction="none").tolist()
        for i, x in enumerate(loss):
            sums[i * 4 // context] += x
            counts[i * 4 // context] += 1
    return [round(s / n, 3) if n else None for s, n in zip(sums, counts)]


class Talker:
    def __init__(self, folder, tokenizer, device):
        self.sampler, self.tokenizer = Sampler.from_folder(folder, device), tokenizer
        self.stop = [tokenizer.token_to_id("<|im_end|>"), tokenizer.token_to_id("<|endoftext|>")]
        self.context = self.sampler.config["max_position_embeddings"]

    def complete(self, prompts, new=420, seed=7, **sampling):
        """Continuations of id lists: (text, ended). Added tokens stay visible."""
        limit = min(self.context, max(map(len, prompts)) + new)
        rows = self.sampler.run(prompts, limit, self.stop, seed=seed, **(sampling or SAMPLING))
        return [(self.tokenizer.decode(ids[len(p):], skip_special_tokens=False), ended) for (ids, _, ended), p in zip(rows, prompts)]

    def answer(self, chats, **options):
        return self.complete([self.tokenizer.encode(render(*c, add_generation_prompt=True), add_special_tokens=False).ids for c in chats], **options)


def question(rng, phrase):
    return [dialogues.user(rng, dialogues.ASK, x=with_articles(phrase), size="")], None, {}


def mentions(text, word):
    return re.search(r"\b%s\b" % re.escape(word), text, re.IGNORECASE) is not None


def distinct_grams(texts):
    grams = [tuple(w[i:i + 4]) for t in texts for w in [re.findall(r"[a-z']+", t.lower())] for i in range(len(w) - 3)]
    return round(len(set(grams)) / max(1, len(grams)), 3)


def figures(folder, model, tokenizer, held_stories, device, smoke, log):
    scale, rng, out, greedy = (0.03 if smoke else 1.0), random.Random("judge"), {}, dict(temperature=0)
    number = lambda n: max(2, int(n * scale))  # noqa: E731
    model = model.float()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(p.to(torch.bfloat16).float())  # judged as shipped
    talker = Talker(folder, tokenizer, device)
    held_tales = [dialogues.plain_tale(random.Random("held/%d" % i)) for i in range(number(400))]
    out["perplexity_tales"], out["bits_per_byte_tales"] = perplexity(model, tokenizer, held_tales, device)
    out["perplexity_teacher_stories"], out["bits_per_byte_teacher_stories"] = perplexity(model, tokenizer, held_stories[:number(400)], device)
    out["loss_by_quarter_of_context"] = loss_by_position(model, tokenizer, [dialogues.long_chat(random.Random("held/%d" % i), 7400) for i in range(number(100))],
                                                         device, talker.context)
    log(f"perplexity: {out}")

    raw = talker.complete([[0]] * number(300))
    texts = [t for t, _ in raw]
    out["raw_stories_ended"] = share([e for _, e in raw])
    out["raw_distinct_4_grams"] = distinct_grams(texts)
    out["raw_distinct_4_grams_within_a_story"] = round(sum(distinct_grams([t]) for t in texts) / len(texts), 3)
    out["tales_distinct_4_grams"] = distinct_grams(held_tales[:len(texts)])
    out["raw_words_on_average"] = round(sum(len(t.split()) for t in texts) / len(texts), 1)

    pairs = [(rng.choice(sorted(set(TRAITS) - COLORS)), rng.choice(dialogues.KINDS)) for _ in range(number(300))]
    answers = talker.answer([question(rng, "a %s %s" % p) for p in pairs])
    out["chat_subject"] = share([mentions(t, k) for (_, k), (t, _) in zip(pairs, answers)])
    out["chat_subject_and_adjective"] = share([mentions(t, k) and mentions(t, a) for (a, k), (t, _) in zip(pairs, answers)])
    out["chat_ended"] = share([e for _, e in answers])
    out["chat_distinct_4_grams"] = distinct_grams([t for t, _ in answers])
    odd = [rng.choice(HELD_OUT) for _ in range(number(100))]
    out["chat_subject_never_trained"] = share([mentions(t, k) for k, (t, _) in zip(odd, talker.answer([question(rng, "a " + k) for k in odd]))])
    named = [(rng.choice(dialogues.KINDS), rng.choice(NAMES_HE + NAMES_SHE) if rng.random() < 0.7 else made_up_word(rng, 2).capitalize()) for _ in range(number(100))]
    answers = talker.answer([question(rng, "a %s named %s" % n) for n in named])
    out["chat_subject_and_name"] = share([mentions(t, k) and mentions(t, n) for (k, n), (t, _) in zip(named, answers)])

    following, expected, asked = [], [], []
    for i in range(number(200)):
        r = random.Random("follow/%d" % i)
        tale = Tale(r, named=True)
        told = [question(r, "a " + tale.values["kind"])[0][0], dialogues.says(dialogues.joined(tale.episode()))]
        following.append((tale, (told + [{"role": "user", "content": typed(r, r.choice(["and what happened next?", "go on", "what happened then?"]))}], None, {})))
        q, reply = r.choice(tale.questions())
        expected.append(PLOTS[tale.plot]["lesson"] if reply in PLOTS[tale.plot]["lesson"] else [reply])
        asked.append((told + [{"role": "user", "content": typed(r, q)}], None, {}))
    answers = talker.answer([c for _, c in following])
    out["next_keeps_hero"] = share([mentions(t, tale.name) for (tale, _), (t, _) in zip(following, answers)])
    answers = talker.answer(asked, new=60, **greedy)
    out["questions_right"] = share([t.strip() in e for e, (t, _) in zip(expected, answers)])

    calls, wanted, results, replies = [], [], [], []
    for i in range(number(300)):
        messages, tools, _ = dialogues.tool_chat(random.Random("tools/%d" % i))
        at = next((j for j, m in enumerate(messages) if m.get("tool_calls")), None)
        if at is None:
            continue
        calls.append((messages[:at], tools, {}))
        wanted.append([c["function"] for c in messages[at]["tool_calls"]])
        end = next(j for j in range(at + 1, len(messages)) if messages[j]["role"] == "assistant")
        results.append((messages[:end], tools, {}))
        replies.append(messages[end]["content"])

    def parsed(text):
        try:
            return [json.loads(x) for x in re.findall(r"<tool_call>\n(.*?)\n</tool_call>", text, re.DOTALL)]
        except ValueError:
            return None

    answers = talker.answer(calls, new=200, **greedy)
    out["tool_calls_valid"] = share([parsed(t) for t, _ in answers])
    out["tool_calls_right"] = share([parsed(t) == w for w, (t, _) in zip(wanted, answers)])
    out["tool_answers_right"] = share([t == r for r, (t, _) in zip(replies, talker.answer(results, new=120, **greedy))])
    thinking = [(question(rng, "a %s %s" % p)[0], None, {"enable_thinking": True}) for p in pairs[:number(100)]]
    answers = talker.answer(thinking, new=500)
    out["plans_closed"] = share([t.count("</think>\n\n") == 1 and "<think>" not in t for t, _ in answers])
    out["plans_followed"] = share([t.startswith("Hero: ") and ((n := re.search(r"named ([A-Z][a-z]+)\. Place", t)) is None or t.count(n.group(1)) > 2) for t, _ in answers])

    shown = [question(rng, "a brave fox"), ([{"role": "user", "content": "Tell me a story about a shy toaster named Zog."}], None, {}),
             ([{"role": "system", "content": "End every story with its lesson."}, {"role": "user", "content": "a short story about sharing, please"}], None, {})]
    samples = []
    for chat in shown:
        text = talker.answer([chat])[0][0]
        more = chat[0] + [dialogues.says(text), {"role": "user", "content": "and what happened next?"}]
        samples.append({"messages": more + [dialogues.says(talker.answer([(more, None, {})])[0][0])]})
    tool = dialogues.make_tool(random.Random(3), dialogues.TOOLS[0])[2]
    for text, tools in (("hi", None), ("who are you?", None), ("what is 12 times 7?", None), ("tell me about a walrus", None), ("What is the weather in Paris?", [tool])):
        chat = [{"role": "user", "content": text}]
        samples.append({"messages": chat + [dialogues.says(talker.answer([(chat, tools, {})])[0][0])]})
    out["samples"] = samples + [{"raw": t} for t in texts[:6]] + [{"thinking": t} for t, _ in answers[:2]]
    for s in out["samples"]:
        log(json.dumps(s, ensure_ascii=False))
    return out


# --- references ---------------------------------------------------------------------------------------------------------------------
def reference_candidates():
    yield "raw", [{"text": t} for t in ("Once upon a time, there was a brave fox named Max. One day,", "Once upon a time, in the forest, there lived a shy owl",
                                        "One day, the little rabbit looked for her red ball, but", "Once upon a time")]
    system = {"role": "system", "content": "You are Fable, a storyteller for children."}
    yield "chat", [{"messages": [system, {"role": "user", "content": t}]} for t in
                   ("Tell me a story about a brave fox.", "Tell me a story about a curious robot named Pip.", "tell me a bedtime story about a lazy bear",
                    "Can you tell me a story about a lost key?")]
    firsts = [("Tell me a story about a clever mouse.", "Once upon a time, there was a clever mouse named Mia. Mia lived in a hollow log near a stream. One day, Mia looked "
               "for her red ball, but it was gone. An owl named Otto helped her, and they found it under the ferns.", "And what happened next?"),
              ("Begin a story about a proud lion.", "Once upon a time, on the grassland, there was a proud lion named Leo. Leo thought he was better than everyone else.",
               "and what happened next?"),
              ("tell me a story about a kind whale", "There once was a kind whale called Nora. Nora lived in a bright coral garden.", "go on")]
    yield "two_turns", [{"messages": [{"role": "user", "content": q}, {"role": "assistant", "content": s}, {"role": "user", "content": n}]} for q, s, n in firsts]


def greedy(model, ids, steps, cached):
    """(greedy ids, smallest gap between the two best logits)"""
    ids, gap, past, new = list(ids), float("inf"), None, []
    with torch.inference_mode():
        for _ in range(steps):
            feed = torch.tensor([ids if past is None else ids[-1:]])
            out = model(input_ids=feed, past_key_values=past, use_cache=cached)
            past = out.past_key_values if cached else None
            top = out.logits[0, -1].float().topk(2)
            gap = min(gap, (top.values[0] - top.values[1]).item())
            ids.append(top.indices[0].item())
            new.append(ids[-1])
    return new, gap


def reference(folder, log, steps=64):
    """golden.json: for each kind of prompt the first candidate whose greedy text goes on for `steps` tokens with a clear choice at each."""
    import transformers
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    sampler, eos = Sampler.from_folder(folder, "cpu"), {0, 2}
    assert tokenizer.chat_template == dialogues.chat_template(), "transformers sees another chat template"
    for i in range(200):  # the training texts were rendered as transformers renders them
        chat = dialogues.chat(random.Random("template/%d" % i), 3000)
        if chat:
            for more in ({}, {"add_generation_prompt": True}):
                assert tokenizer.apply_chat_template(chat[0], tools=chat[1], tokenize=False, **chat[2], **more) == render(*chat, **more), chat
    cases = []
    for name, candidates in reference_candidates():
        tried = []
        for c in candidates:
            if "text" in c:
                case = {"name": name, "text": c["text"], "add_special_tokens": True}
                ids = tokenizer(c["text"]).input_ids
            else:
                rendered = tokenizer.apply_chat_template(c["messages"], tokenize=False, add_generation_prompt=True)
                case = {"name": name, "messages": c["messages"], "rendered": rendered, "add_special_tokens": False}
                ids = tokenizer(rendered, add_special_tokens=False).input_ids
            new, gap = greedy(model, ids, steps, cached=False)
            again, _ = greedy(model, ids, steps, cached=True)
            assert new == again, "with and without a cache differ"
            ended = next((i for i, t in enumerate(new) if t in eos), None)
            case.update(prompt_ids=ids, greedy_ids=new, greedy_text=tokenizer.decode(new, skip_special_tokens=False), smallest_gap=round(gap, 5),
                        end_emitted_at=ended, ignore_end=ended is not None)
            tried.append(case)
        best = max(tried, key=lambda c: (c["end_emitted_at"] is None, c["smallest_gap"] >= 0.02, c["smallest_gap"] if c["smallest_gap"] < 0.02 else 0))
        if best["end_emitted_at"] is None:
            own = sampler.run([best["prompt_ids"]], len(best["prompt_ids"]) + steps, [-1], temperature=0)[0][0]
            assert own[len(best["prompt_ids"]):] == best["greedy_ids"], "the script's own sampler disagrees with transformers"
        with torch.inference_mode():
            last = model(input_ids=torch.tensor([best["prompt_ids"]])).logits[0, -1].float()
        top = last.topk(5)
        best["last_prompt_logits"] = {"top_ids": top.indices.tolist(), "top": [round(x, 5) for x in top.values.tolist()], "sum": round(last.double().sum().item(), 4),
                                      "norm": round(last.double().norm().item(), 4)}
        cases.append(best)
        log(f"reference {name}: gap {best['smallest_gap']}, end {best['end_emitted_at']}: {best['greedy_text']!r}")
    value = {"about": "Greedy continuation of each prompt: weights as stored (bf16) computed in float32 on a CPU, with and without a cache alike; the last token of "
                      "greedy_ids is the last one chosen. smallest_gap: the least difference between the two best logits over these steps.",
             "reference": f"transformers {transformers.__version__}, torch {torch.__version__.split('+')[0]}", "cases": cases}
    with open(os.path.join(folder, "golden.json"), "w", encoding="utf-8") as f:
        f.write(json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def vector_texts():
    texts = ["", " ", "  ", "   ", "    ", "\t", "\t\t", "\n", "\n\n", "\n\n\n", "\t\n", " \n", "\n ", "\r\n", "\r\n\r\n", " \r\n x", "a\u00a0b", "\u3000", "\u200b", "\ufeff", "\x00", "\x7f",
             "Hello", " Hello", "  Hello", "   Hello", "Hello ", "Hello  ", "Hello world", " Hello world", "Hello, world!", "hello WORLD", "HELLO", "hElLo",
             "Once upon a time, there was a brave fox named Max.", "Once upon a time", " Once upon a time", "the fox", "The fox said, \"Hello!\"", "\"Help! Help!\" it cried.",
             "don't I'LL they'Re we've I'm it's O'Neil rock'n'roll", "can't won't y'all's", "'s 't 're", "''", "' s", "tomorrow", "antidisestablishmentarianism",
             "0", "7", "33", "333", "3333", "1234567890", "3.14159", "1,000,000", "-5", "+49 30 123456", "12:45", "2024-05-17", "v1.2.3", "x2y3", "½ ¼ ²", "٣٤٥", "१२३",
             "!", "!!", "!!!!!!", "?!", "...", "…", "—", "a-b", "a_b", "a/b", "(x)", "[1, 2]", "{\"a\": 1}", "<tag>", "</tag>", "<", "<|", "<|im", "a<b>c", "&amp;", "#1", "@x", "$5", "100%",
             "def f(x):\n    return x**2  # c", "for (int i = 0; i < n; ++i) {\n\tsum += a[i];\n}", "#include <vector>\n\nint main() { return 0; }\n", "SELECT * FROM t WHERE a != 'b';",
             "{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}", "http://example.com/a?b=c&d=e#f", "name@example.org", "C:\\dir\\file.txt", "~/x/../y", "a  b   c    d", "x\n\n\n   y",
             "tabs\t\tand   spaces  \n\n\n newlines \r\n end", "\n \n\n \n\n\n \t \t\t \t\n  \n   \n    \n  ", "    indented\n        more", "trailing   ", "line one\nline two\nline three",
             "naïve café — ﬁne ½ Ａ", "Äpfel", "Straße", "Ça va? Où?", "niño", "Zażółć gęślą jaźń", "Cửa Việt", "İstanbul ı", "é", "e\u0301", "a\u0308\u0323", "ǅ ǆ Ǆ", "ẞ", "нещо на Български", "Привет, мир!",
             "Γειά σου Κόσμε", "שלום עולם", "مرحبا بالعالم", "नमस्ते दुनिया", "สวัสดีชาวโลก", "កាន់តែពិសេសអាចខលចេញ", "日本語のテキスト", "你好，世界", "안녕하세요 세계", "ㄱㄴㄷ", "𝒳𝓎 𝔸", "Ⅷ ① ㊙", "ﷺ",
             "🦊", "🚀 to the 🌙", "👩‍👩‍👧‍👦", "🇫🇷🇩🇪", "😶‍🌫️", "👍🏽", "a🦊b", "\U000e0001", "\U0010ffff", "•·", "“quoted” ‘text’", "†‡§¶", "€£¥", "∑∫√∞≠≤", "←↑→↓", "\ufffd",
             "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>", "<think>\n\n</think>\n\n",
             "<|im_start|>user\nHi<|im_end|>\n", "<|im_start|>user\nTell me a story.<|im_end|>\n<|im_start|>assistant\n", "<|im_start|>system\nYou are Fable.<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n",
             "a<|im_end|>b", "a <|im_end|> b", "<|im_end|><|im_end|>", "<|im_start|>assistant\n<think>\nplan\n</think>\n\nOnce", "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": 2}}\n</tool_call>",
             "x<tool_response>\n{\"t\": 21}\n</tool_response>y", "<|im_start", "im_start|>", "<| im_end |>", "<|IM_END|>", "<tool_call", "<think >", "<|begin_of_text|>", "<s>", "</s>", "[INST]", "<unk>", "<pad>",
             "a" * 60, "ab" * 40, " " * 40, "\n" * 20, "!" * 33, "The End. " * 6]
    return list(dict.fromkeys(texts))


def tokenizer_vectors(folder, log):
    """tokenizer_vectors.json: ids without and with special tokens, and both decodings of the former."""
    import tokenizers
    import transformers
    tokenizer = tokenizers.Tokenizer.from_file(folder + "/tokenizer.json")
    other = transformers.AutoTokenizer.from_pretrained(folder)
    cases = []
    for text in vector_texts():
        ids, special = tokenizer.encode(text, add_special_tokens=False).ids, tokenizer.encode(text).ids
        assert other(text).input_ids == special and other(text, add_special_tokens=False).input_ids == ids, f"transformers tokenizes {text!r} differently"
        cases.append({"text": text, "ids": ids, "ids_special": special, "decoded": tokenizer.decode(ids, skip_special_tokens=False),
                      "decoded_skip": tokenizer.decode(ids, skip_special_tokens=True)})
    value = {"source": "fable", "oracle": "tokenizers " + tokenizers.__version__, "vocab": tokenizer.get_vocab_size(), "cases": cases}
    with open(os.path.join(folder, "tokenizer_vectors.json"), "w", encoding="utf-8") as f:
        f.write(json.dumps(value, indent=1, ensure_ascii=True) + "\n")
    log(f"tokenizer vectors: {len(cases)}")
