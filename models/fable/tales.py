"""A small story grammar: plots written by hand, with slots and alternative phrasings, that yield coherent children's tales.

A tale comes with its facts (who, where, what went wrong, who helped), so that questions about it, plans for it and
continuations of it can be made without guessing. Template language: `[a|b]` picks one alternative (they nest), `{x}` is a
variable, a line starting with `?` may be left out. Sentence capitals and a/an are mended afterwards.
"""

import re

from tale_plots import PLOTS
from tale_words import LIKES, NAMES_HE, NAMES_SHE, ODD, SIZES, TRAITS, TREASURES, WORLDS

CLOSINGS = ["The end.", "And they lived happily ever after.", "And that is the end of the story.", "Good night, little one.", ""]
VOWEL = re.compile(r"\b([Aa]) (?=[aeiouAEIOU]|honest|hour)(?!uni|one\b|use|Uma)")
SENTENCE = re.compile(r"(^|[.!?] |\.\" |\n)([a-z])|([!?]\" )(?=the )(t)")


def expand(template, values, rng):
    """Fills a template: alternatives first (innermost out), then variables until none is left."""
    while True:
        close = template.find("]")
        if close < 0:
            break
        start = template.rindex("[", 0, close)
        template = template[:start] + rng.choice(template[start + 1:close].split("|")) + template[close + 1:]
    for _ in range(4):
        if "{" not in template:
            return template
        template = expand(template.format_map(values), values, rng) if "[" in template else template.format_map(values)
    raise ValueError("unfilled template: " + template)


def with_articles(text):
    """`a` becomes `an` where it has to."""
    return VOWEL.sub(lambda m: m.group(1) + "n ", text)


def mend(text):
    """Sentence capitals and a/an."""
    text = with_articles(re.sub(r"  +", " ", text).strip())
    return SENTENCE.sub(lambda m: (m.group(1) or m.group(3) or "") + (m.group(2) or m.group(4)).upper(), text)


ONSETS = "b d f g h j k l m n p r s t v w z bl br cl cr dr fl fr gl gr pl pr sl sn sp st tr tw th ch".split()
VOWELS = "a a e e i i o o u u ai ee oo ea".split()
CODAS = ["", "", "", "n", "m", "l", "r", "b", "x", "ng", "st", "nd", "rp", "lk"]


def made_up_word(rng, syllables):
    """A word that nobody knows, so that copying it is the only way."""
    return "".join(rng.choice(ONSETS) + rng.choice(VOWELS) + (rng.choice(CODAS[3:]) if syllables == 1 else rng.choice(CODAS)) for _ in range(syllables))


def pick_name(rng, she, odd_share):
    if rng.random() < odd_share:
        return made_up_word(rng, rng.choice([1, 1, 2, 2, 2, 3])).capitalize()
    return rng.choice(NAMES_SHE if she else NAMES_HE)


FEMALE = set("girl princess queen witch mermaid fairy hen cow grandmother doll aunt".split())
MALE = set("boy prince king knight wizard rooster snowman grandfather postman shoemaker fisherman uncle".split())


def pick_character(rng, world, avoid=(), odd=0.22):
    """A kind and whether it is a she: mostly of this world, sometimes an odd thing or a made-up word."""
    for _ in range(100):
        draw = rng.random()
        kind = (made_up_word(rng, rng.choice([1, 1, 2, 2, 2, 3])) if draw < odd * 0.4 else rng.choice(ODD) if draw < odd else rng.choice(WORLDS[world]["kinds"].split()))
        if kind not in avoid:
            break
    she = kind in FEMALE or (kind not in MALE and rng.random() < 0.5)
    return kind, she


PEOPLE = FEMALE - {"hen", "cow", "doll", "mermaid"} | MALE - {"rooster", "snowman"} | set(
    "baker teacher painter gardener doctor clown firefighter singer juggler pirate sailor captain astronaut cook tailor farmer miner pilot librarian magician musician "
    "nurse carpenter dancer twin baby hero thief shepherd jester elf dwarf".split())
COLORS = {"blue", "red", "green", "golden", "white", "fluffy"}
SCENES = ["[A leaf came sailing down|Far away, a bell rang|Somewhere, a dog was barking|A soft breeze was blowing|A feather floated past|A twig snapped somewhere].",
          "[The air smelled of [rain|flowers|smoke|wet grass|honey]|It was so quiet that one could hear a pin drop|For a while, nobody said a word|Time went by].",
          "[{N} took a deep breath|{N} scratched {his} head|{N} looked around once more|{N} hummed a little tune|{N} rubbed {his} eyes|{N} thought for a moment]."]


PRONOUNS = {True: dict(he="she", him="her", his="her", himself="herself"), False: dict(he="he", him="him", his="his", himself="himself")}


class Tale:
    """One hero and the episodes told about it. `episode()` returns the paragraphs of the next one; `values` holds the facts of the latest."""

    def __init__(self, rng, kind=None, adjective=None, name=None, named=None, world=None, length="normal"):
        self.rng, self.length, self.used, self.told = rng, length, set(), 0
        self.world = world or (next((w for w in rng.sample(list(WORLDS), len(WORLDS)) if kind in WORLDS[w]["kinds"].split()), None)
                               if kind else None) or rng.choice(list(WORLDS))
        if kind is None:
            kind, she = pick_character(rng, self.world)
        else:
            she = kind in FEMALE or (kind not in MALE and rng.random() < 0.5)
        if name in NAMES_HE or name in NAMES_SHE:
            she = name in NAMES_SHE
        while adjective is None or (kind in PEOPLE and adjective in COLORS):
            adjective = rng.choice(list(TRAITS))
        size = rng.choice(SIZES) if rng.random() < 0.25 and kind not in ("girl", "boy") else "little" if kind in ("girl", "boy") and rng.random() < 0.5 else ""
        named = rng.random() < 0.8 if named is None else named
        self.name = name or (pick_name(rng, she, 0.2) if named else None)
        preposition, _, place = rng.choice(WORLDS[self.world]["place"]).rpartition("|")
        preposition = preposition or "in"
        v = dict(PRONOUNS[she], kind=kind, adj=adjective, place=place, inplace=preposition + " " + place, Inplace=(preposition + " " + place).capitalize(), home=rng.choice(WORLDS[self.world]["home"]),
                 food=rng.choice(WORLDS[self.world]["food"]), treasure=rng.choice(TREASURES))
        v["He"], v["His"] = v["he"].capitalize(), v["his"].capitalize()
        v["Treasure"] = v["treasure"].title()
        order = (adjective, size, kind) if size in ("little", "young") else (size, adjective, kind)
        v["akind"] = "a " + " ".join(x for x in order if x)
        v["N"] = self.name or "the " + kind
        v["call"] = self.name or rng.choice(["little ", "dear "]) + kind
        v["selfname"] = self.name or "a " + kind
        self.values = v

    def helper(self, kind=None):
        rng, v = self.rng, self.values
        if kind is None:
            kind, she = pick_character(rng, self.world, avoid=(v["kind"],), odd=0.04)
        else:
            she = kind in FEMALE or (kind not in MALE and rng.random() < 0.5)
        name = pick_name(rng, she, 0.05) if rng.random() < 0.6 else None
        while name and name == self.name:
            name = pick_name(rng, she, 0.05)
        adjective = rng.choice(["wise", "old", "kind", "friendly", "big", "small", "gentle", "clever", "funny", "little", "young", "tall", "cheerful", "quiet"])
        p = PRONOUNS[she]
        v.update(mkind=kind, M=name or "the " + kind, mcall=name or "dear " + kind, mname=name,
                 mintro="a %s %s%s" % (adjective, kind, " named " + name if name else ""), mhe=p["he"], mhim=p["him"], mhis=p["his"])
        v["Mintro"] = v["mintro"][0].upper() + v["mintro"][1:]

    def opening(self):
        v, rng = self.values, self.rng
        first = expand(rng.choices(["[Once upon a time, there was|Once upon a time, there lived|Once there was|There once was|Long ago, there lived] {akind}",
                                    "[Once upon a time, {inplace}|Long ago, {inplace}|{Inplace}], there [lived|was] {akind}",
                                    "This is the story of {akind}", "Far, far away, there was {akind}"], [0.55, 0.27, 0.1, 0.08])[0], v, rng)
        first += (rng.choice([" named ", " named ", " called "]) + self.name if self.name else "") + "."
        lines = [first, expand("{N} lived in {home}.", v, rng) if "lived" not in first or rng.random() < 0.5 else ""]
        extra = {"short": 0.2, "normal": 0.7, "long": 1.0}[self.length]
        if rng.random() < extra:
            lines.append(expand(TRAITS[v["adj"]] if v["adj"] in TRAITS else rng.choice(LIKES), v, rng))
        if rng.random() < extra * 0.5:
            lines.append(expand(rng.choice(LIKES), v, rng))
        return " ".join(x for x in lines if x)

    def episode(self, helper=None, plot=None, closing=None, lesson=None):
        """Paragraphs of the next episode: with an opening for the first, as a sequel after that."""
        rng, v = self.rng, self.values
        plot = plot or rng.choice([p for p in PLOTS if p not in self.used] or list(PLOTS))
        self.used.add(plot)
        spec, self.plot = PLOTS[plot], plot
        if self.told:
            v["treasure"] = rng.choice(TREASURES)
            v["Treasure"] = v["treasure"].title()
        self.helper(helper)
        v.update(zip(("spot1", "spot2", "spot3"), rng.sample(WORLDS[self.world]["spots"], 3)))
        for keys, choices in list(spec.get("slots", {}).items()) + list(spec.get("extra", {}).items()):
            choice = rng.choice(choices)
            for key, value in zip(keys.split(","), choice if isinstance(choice, tuple) else (choice,)):
                v[key] = expand(value, v, rng)
        v["Skill"] = v.get("skill", "").title()
        when = ("[the next day|the next morning|a few days later|a week later|not long after that|the following day]" if self.told else
                "[one day|one day|one [bright|sunny|cold|windy|quiet|warm] [morning|afternoon|day]|one [spring|summer|autumn|winter] day]")
        v["when"] = expand(when, v, rng)
        v["When"] = v["when"][0].upper() + v["when"][1:]
        optional = {"short": 0.1, "normal": 0.55, "long": 0.95}[self.length]
        paragraphs = [[] if self.told else [self.opening()]]
        for i, lines in enumerate(spec["paras"]):
            chosen = [expand(line.lstrip("?"), v, rng) for line in lines if not line.startswith("?") or rng.random() < optional]
            if i == 0 and (not paragraphs[0] or self.length == "short" or rng.random() < 0.3):
                paragraphs[0] += chosen
            elif self.length == "short" and i % 2 == 0:
                paragraphs[-1] += chosen
            else:
                paragraphs.append(chosen)
        for p in paragraphs[1:]:  # a line of scenery here and there, so that no two tellings are alike
            if rng.random() < optional * 0.3:
                p.insert(0, expand(rng.choice(SCENES), v, rng))
        v["lesson"] = rng.choice(spec["lesson"])
        if lesson if lesson is not None else rng.random() < 0.15:
            paragraphs.append([rng.choice(["The lesson: ", "The moral of the story: ", "And what do we learn? "]) + v["lesson"]])
        closing = rng.choice(CLOSINGS) if (closing if closing is not None else rng.random() < 0.3) else ""
        if closing:
            paragraphs[-1].append(closing)
        self.told += 1
        return [mend(" ".join(p)) for p in paragraphs]

    def fact(self, template):
        return mend(expand(template, self.values, self.rng))

    def themes(self):
        return [expand(t, self.values, self.rng) for t in PLOTS[self.plot]["themes"]]

    def questions(self):
        """(question, answer) pairs that the latest episode settles; questions are in lower case, as people type them."""
        v, rng = self.values, self.rng
        pairs = [(expand(q, v, rng), self.fact(a)) for q, a in PLOTS[self.plot]["asks"]]
        if self.name:
            pairs += [("what was the %s's name?" % v["kind"], self.fact("[The {kind}'s name was {N}.|{His} name was {N}.]")),
                      ("what is the name of the %s?" % v["kind"], self.fact("{His} name is {N}."))]
        if v["mname"]:
            pairs.append(("what was the %s's name?" % v["mkind"], self.fact("The {mkind}'s name was {M}.")))
        pairs.append(("where did %s live?" % v["N"], self.fact("{N} lived in {home}."))) if self.told == 1 else None
        pairs.append(("what is the lesson of the story?", v["lesson"]))
        pairs.append(("what can we learn from this story?", v["lesson"]))
        pairs.append(("give the story a title", self.title()))
        pairs.append(("who is the story about?", self.fact("It is about {akind}" + (" named {N}." if self.name else "."))))
        return pairs

    def title(self):
        title = expand(PLOTS[self.plot]["title"], dict(self.values, N=self.name or "the " + self.values["kind"].capitalize()), self.rng)
        return "\"" + title[0].upper() + title[1:] + "\""

    def plan(self):
        return self.fact("Hero: {akind}" + (" named {N}" if self.name else "") + ". Place: {place}. Problem: {problem}. Helper: {mintro}. Lesson: {lesson}"
                         .replace("{problem}", PLOTS[self.plot]["problem"]))
