"""Turns tales and sampled stories into training texts: chats of one to many turns, plain stories, tool calls and plans.

Every function takes a `random.Random`, so a seed gives the same text. A chat is (messages, tools, extra), in the form the chat
template takes; a plain story is a string. Nothing here asks for more than the facts a tale holds.
"""

import functools
import json
import os
import re

from tale_words import NAMES_HE, NAMES_SHE, ODD, TRAITS, WORLDS
from tales import Tale, expand, made_up_word, mend, with_articles

KINDS = sorted({k for w in WORLDS.values() for k in w["kinds"].split()})
NOUNS = set(KINDS) | set(ODD) | set(
    "ball box park toy car cake flower house garden door bear bird birds bike game book chair window rain sun sand beach store shop friend picture "
    "tower rock stick leaf grass boat fish bug bee spider wand castle cave treasure map ring necklace dress crown zoo farm barn pool pond lake "
    "river ocean sky star moon cloud snow ice mountain hill forest jungle fire candle pumpkin apple banana orange berry bread soup cheese candy "
    "cookie pizza milk honey egg nest tree swing slide truck bus train plane ship drum guitar song dance letter paper pencil crayon paint brush "
    "mirror clock lamp bed blanket pillow bath soap towel spoon fork bowl cup plate kitchen basket bag coin key lock rope net hole mud bridge "
    "tunnel butterfly puppy kitty monster stone shell shoes hat coat scarf button".split())
ASK = ["[tell me|write|please tell me|make up|give me|i want|i would like|i'd like|let me hear|invent] a{size} story about {x}",
       "[can you|could you|would you|will you] [please |][tell me|write|tell|make up] a{size} story about {x}?",
       "a{size} story about {x}[, please|]", "[do you know|have you got] a{size} story about {x}?", "i want to hear a{size} story about {x}",
       "tell me about {x}", "[my son wants|my daughter wants|my class wants|the kids want|my sister wants] a{size} story about {x}",
       "story about {x}", "another{size} story about {x}, please", "tell us a{size} tale about {x}"]
ASK_ANY = ["tell me a{size} story", "[can|could|will] you tell me a{size} story?", "a{size} story, please", "please write a{size} story",
           "i can't sleep, tell me a{size} story", "i am bored. tell me a{size} story", "once upon a time", "surprise me with a{size} story",
           "read me a{size} story", "i want a{size} story", "what is a good{size} story?"]
BEGIN = ["[start|begin] a story about {x}", "tell me the [beginning|first part|start] of a story about {x}", "tell me only the start of a story about {x}",
         "[let's write|let us tell] a story together about {x}. you begin"]
NEXT = ["and what happened next?", "what happened next?", "and then?", "what happens next?", "go on", "continue", "please continue", "more, please",
        "then what?", "what happened then?", "and what happened then?", "tell me more", "what did {N} do next?", "keep going", "next part, please",
        "and after that?", "what happened after that?"]
ENDING = ["how does it end?", "how does the story end?", "what happens in the end?", "tell me the ending", "finish the story", "and how did it end?"]
AGAIN = ["tell me more about {N}", "what did {N} do the next day?", "another adventure of {N}, please", "one more story about {N}",
         "i want to hear more about {N}", "what else happened to {N}?"]
JOINED = ["can you add a {x} to the story?", "and then a {x} came along. what happened?", "tell me how {N} met a {x}", "now with a {x}, please",
          "what happened when {N} met a {x}?"]
OTHER = ["now tell me a{size} story about {x}", "another one, about {x}", "a different story about {x}, please", "can you tell one about {x}, too?",
         "and now a{size} story about {x}", "tell me another{size} story about {x}"]
SYSTEM = ["You are Fable, a storyteller for children.", "You are a helpful assistant.", "You tell stories.", "You are a kind storyteller.",
          "You are Fable. You tell stories to children and answer their questions.", "You are a friendly assistant who tells bedtime stories.",
          "Tell stories that a small child can understand.", "You are a helpful assistant that writes short stories for children."]
SMALL_TALK = [
    (["hi", "hello", "hey", "hello there", "good morning", "good evening", "hi fable"],
     ["Hello! [Shall I tell you a story?|Would you like to hear a story?|What should my story be about?]", "Hi! I am Fable. What should my story be about?"]),
    (["who are you?", "what are you?", "what is your name?", "are you a robot?", "tell me about yourself", "introduce yourself"],
     ["I am Fable, a very small language model that tells stories.", "My name is Fable. I tell stories for children.", "I am Fable, a little storyteller. What should my story be about?"]),
    (["what can you do?", "how can you help me?", "what do you know?", "help"],
     ["I can tell you a story about anything you like. Just tell me who it should be about.", "I tell short stories. Ask me for one, for example about a brave fox."]),
    (["thank you", "thanks", "thank you, that was nice", "that was a nice story", "great story!", "i liked it", "lovely"],
     ["You are welcome! [Would you like another one?|I am glad you liked it.]", "I am glad that you liked it. Shall I tell you another one?"]),
    (["bye", "goodbye", "good night", "see you", "i have to sleep now"], ["Good night! Sleep well.", "Goodbye! Come back for another story.", "Good night, and sweet dreams!"]),
    (["how are you?", "how are you today?", "are you well?"], ["I am fine, thank you. Would you like to hear a story?", "Very well, thank you! What should my story be about?"]),
    (["what is the capital of {w}?", "who is the president of {w}?", "write a computer program", "how do i fix my {w}?", "what is the meaning of life?", "explain {w}",
      "solve this equation", "what is the news today?", "translate this into {w}", "what is {d} times {d}?", "what is {d} plus {d}?", "who won the game?", "tell me a joke", "sing a song", "what is your favorite color?", "what should i cook?"],
     ["I am sorry, I only know stories. Would you like to hear one?", "That is too hard for me. I am a very small model, but I can tell you a story.",
      "I do not know that. I can tell you a story instead."]),
    (["say hello", "say something", "test", "testing", "ping"], ["Hello!", "Hello! I am here. Shall I tell you a story?"]),
    (["yes", "yes, please", "ok", "sure"], ["Good! What should my story be about?", "What should my story be about?"]),
]


def typed(rng, text):
    """As people type: with or without capitals and final marks. `text` starts in lower case."""
    draw = rng.random()
    if draw < 0.4:
        return text.rstrip("?.") if rng.random() < 0.6 else text
    if draw < 0.5:
        return text.lower()
    text = re.sub(r"\bi\b", "I", text[0].upper() + text[1:])
    return text if text[-1] in "?!." or rng.random() < 0.3 else text + rng.choice([".", ".", "!"])


def article(phrase):
    return with_articles("a " + phrase)


def shorten(rng, phrase):
    """'a brave fox' from 'a brave little fox', sometimes."""
    words = phrase.split()
    return " ".join([words[0], words[1], words[-1]]) if len(words) == 4 and rng.random() < 0.5 else phrase


def subject(rng, tale):
    """What a user would name to get this tale: always true of its text."""
    v = tale.values
    who = [v["akind"], v["akind"], shorten(rng, v["akind"]), "a " + v["kind"]]
    if tale.name:
        who += ["a %s named %s" % (v["kind"], tale.name), "a %s %s called %s" % (v["adj"], v["kind"], tale.name)]
    phrase = rng.choice(who)
    draw = rng.random()
    if draw < 0.12:
        phrase += " and a " + v["mkind"]
    elif draw < 0.22:
        phrase += " and " + rng.choice(tale.themes())
    elif draw < 0.27:
        phrase += " who lives %s" % v["inplace"]
    elif draw < 0.34:
        phrase = rng.choice(tale.themes())
    return with_articles(phrase)


def sized(rng, length):
    return rng.choice({"short": [" short", " short", " very short", " little", " quick", ""], "long": [" long", " long", " longer", ""],
                       "normal": ["", "", "", "", " nice", " new", " good", " bedtime", " funny"]}[length])


def user(rng, choices, **values):
    return {"role": "user", "content": typed(rng, expand(rng.choice(choices), values, rng).strip())}


def says(text):
    return {"role": "assistant", "content": text}


def ask_for(rng, tale, choices=ASK):
    if choices is ASK and rng.random() < 0.07:
        return user(rng, ASK_ANY, size=sized(rng, tale.length))
    return user(rng, choices, x=subject(rng, tale), size=sized(rng, tale.length))


def joined(paragraphs):
    return "\n\n".join(paragraphs)


def length(rng):
    return rng.choices(["short", "normal", "long"], [0.3, 0.5, 0.2])[0]


def split(rng, paragraphs, parts):
    """Splits a story into consecutive parts at paragraph or sentence borders."""
    if len(paragraphs) < parts:
        sentences = re.split(r"(?<=[.!?\"]) (?=[A-Z\"])", " ".join(paragraphs))
        if len(sentences) < parts:
            return None
        cuts = sorted(rng.sample(range(1, len(sentences)), parts - 1))
        return [" ".join(sentences[a:b]) for a, b in zip([0] + cuts, cuts + [len(sentences)])]
    cuts = sorted(rng.sample(range(1, len(paragraphs)), parts - 1))
    return [joined(paragraphs[a:b]) for a, b in zip([0] + cuts, cuts + [len(paragraphs)])]


def follow_up(rng, tale, messages):
    """One more exchange about a tale already told."""
    draw, v = rng.random(), tale.values
    if draw < 0.40:
        messages.append(user(rng, NEXT if rng.random() < 0.75 else AGAIN, N=v["N"]))
        messages.append(says(joined(tale.episode())))
    elif draw < 0.52:
        kind = rng.choice([k for k in KINDS if k not in (v["kind"], v["mkind"])])
        messages.append({"role": "user", "content": with_articles(user(rng, JOINED, N=v["N"], x=kind)["content"])})
        messages.append(says(joined(tale.episode(helper=kind))))
    elif draw < 0.90:
        question, answer = rng.choice(tale.questions())
        messages += [{"role": "user", "content": typed(rng, question)}, says(answer)]
    else:
        messages += small_talk(rng, rng.choice([3, 3, 6, 4]))


def small_talk(rng, which=None):
    asks, answers = SMALL_TALK[which] if which is not None else rng.choice(SMALL_TALK)
    values = dict(w=rng.choice([made_up_word(rng, 2).capitalize(), "France", "Spain", "China", "car", "computer", "German"]), d=rng.randint(2, 99))
    return [{"role": "user", "content": typed(rng, expand(rng.choice(asks), values, rng))}, says(expand(rng.choice(answers), values, rng))]


def with_system(rng, messages, share=0.35):
    return ([{"role": "system", "content": rng.choice(SYSTEM)}] if rng.random() < share else []) + messages


def story_chat(rng, turns):
    tale = Tale(rng, length=length(rng))
    first = joined(tale.episode())
    messages = small_talk(rng, 0) if rng.random() < 0.05 else []
    messages += [ask_for(rng, tale), says(first)]
    for _ in range(turns - 1):
        follow_up(rng, tale, messages)
    return with_system(rng, messages), None, {}


def split_chat(rng):
    tale = Tale(rng, length=rng.choice(["normal", "long"]))
    paragraphs = tale.episode()
    parts = split(rng, paragraphs, rng.choice([2, 2, 3, 3, 4]))
    if parts is None:
        return None
    messages = [ask_for(rng, tale, BEGIN), says(parts[0])]
    for i, part in enumerate(parts[1:]):
        last = i == len(parts) - 2
        messages += [user(rng, ENDING if last and rng.random() < 0.5 else NEXT, N=tale.values["N"]), says(part)]
    for _ in range(rng.choice([0, 0, 1, 2])):
        follow_up(rng, tale, messages)
    return with_system(rng, messages), None, {}


def long_chat(rng, limit):
    """Many stories in one chat, up to about `limit` characters."""
    messages, size = [], 0
    while True:
        tale = Tale(rng, length=length(rng))
        story = joined(tale.episode())
        new = [user(rng, OTHER, x=subject(rng, tale), size=sized(rng, tale.length)) if messages else ask_for(rng, tale), says(story)]
        for _ in range(rng.choice([0, 1, 2, 3])):
            follow_up(rng, tale, new)
        size += sum(len(m["content"]) + 30 for m in new)
        if size > limit and messages:
            break
        messages += new
    return with_system(rng, messages), None, {}


def controlled_chat(rng):
    """System text that changes the answer."""
    which = rng.choice(["short", "lesson", "hero", "listener", "closing"])
    if which == "short":
        system = rng.choice(["Keep your stories short.", "You tell very short stories.", "Answer with short stories only."])
        tale = Tale(rng, length="short")
        story = joined(tale.episode(lesson=False))
    elif which == "lesson":
        system = rng.choice(["End every story with its lesson.", "Always end with a lesson.", "Every story must have a moral at the end."])
        tale = Tale(rng, length=length(rng))
        story = joined(tale.episode(lesson=True, closing=False))
    elif which == "hero":
        name = rng.choice(NAMES_HE + NAMES_SHE) if rng.random() < 0.7 else made_up_word(rng, 2).capitalize()
        system = rng.choice(["The hero of every story is called %s.", "All your heroes are named %s.", "Name the main character %s."]) % name
        tale = Tale(rng, name=name, length=length(rng))
        story = joined(tale.episode())
    elif which == "listener":
        name = rng.choice(NAMES_HE + NAMES_SHE) if rng.random() < 0.7 else made_up_word(rng, 2).capitalize()
        system = rng.choice(["You are talking to a child named %s.", "The listener is called %s.", "The child's name is %s. Greet the child by name."]) % name
        tale = Tale(rng, length=length(rng))
        story = rng.choice(["Here is a story for you, %s.\n\n", "Listen well, %s!\n\n", "Good evening, %s.\n\n"]) % name + joined(tale.episode())
    else:
        words = rng.choice(["The end.", "Sleep well.", "And that was that.", "Good night!", "See you tomorrow."])
        system = rng.choice(["End every story with \"%s\"", "Your last words are always: %s", "Always finish with the words \"%s\""]) % words
        tale = Tale(rng, length=length(rng))
        story = joined(tale.episode(lesson=False, closing=False)) + "\n\n" + words
    if rng.random() < 0.5:
        system = rng.choice(SYSTEM[:5]) + " " + system
    who = rng.choice([tale.values["akind"], "a " + tale.values["kind"]])
    ask = user(rng, ASK, x=with_articles(who), size="") if rng.random() < 0.85 else user(rng, ASK_ANY, size="")
    return [{"role": "system", "content": system}, ask, says(story)], None, {}


def words_chat(rng):
    """A story that must hold given words; the words are taken from it."""
    tale = Tale(rng, length=length(rng))
    story = joined(tale.episode())
    pool = [tale.values[k] for k in ("kind", "adj", "mkind") if re.search(r"\b%s\b" % re.escape(tale.values[k]), story)]
    pool += rng.sample(sorted(set(re.findall(r"\b[a-z]{4,9}\b", story))), 2)
    words = list(dict.fromkeys(rng.sample(pool, min(len(pool), rng.choice([2, 3])))))
    quoted = ["\"%s\"" % w for w in words] if rng.random() < 0.5 else words
    listed = ", ".join(quoted[:-1]) + " and " + quoted[-1]
    ask = user(rng, ["write a story [with|using] the words {x}", "tell me a story that has the words {x} in it", "use {x} in a story",
                     "make a story from these words: {x}"], x=listed)
    return with_system(rng, [ask, says(story)]), None, {}


def thinking_chat(rng):
    tale = Tale(rng, length=rng.choice(["short", "normal", "normal"]))
    story = joined(tale.episode())
    messages = [ask_for(rng, tale)]
    answer = dict(says(story), reasoning_content=tale.plan())
    draw = rng.random()
    if draw < 0.7:
        messages.append(answer)
    elif draw < 0.85:
        messages += [says(story), user(rng, NEXT, N=tale.values["N"])]
        text = joined(tale.episode())
        messages.append(dict(says(text), reasoning_content=tale.plan()))
    else:
        question, reply = rng.choice(tale.questions())
        messages += [says(story), {"role": "user", "content": typed(rng, question)}]
        messages.append(dict(says(reply), reasoning_content=tale.fact("The story is about {akind}. The helper is {mintro}.") + " The user asks: " + question))
    return with_system(rng, messages), None, {"enable_thinking": True}


# --- stories sampled from the teacher ---------------------------------------------------------------------------------------------
NAMED = re.compile(r"\b(a|an) ((?:[a-z]+ ){0,2}[a-z]+) (?:named|called) ([A-Z][a-z]+)")
THERE = re.compile(r"\bthere (?:was|lived) (a|an) ((?:[a-z]+ ){0,2}[a-z]+)[.,]")


def story_subjects(story):
    """Phrases that name what a sampled story is really about."""
    head, found = story[:300], []
    match = NAMED.search(head) or THERE.search(head)
    if match and match.group(2).split()[-1] in NOUNS | {"bird", "kitty", "bunny", "child"}:
        phrase = match.group(1) + " " + match.group(2)
        found.append(phrase)
        if len(match.groups()) == 3 and story.count(match.group(3)) > 2:
            found.append(phrase + " named " + match.group(3))
    counts = {}
    for word in re.findall(r"\b[a-z]+\b", story):
        if word in NOUNS:
            counts[word] = counts.get(word, 0) + 1
    top = sorted((w for w in counts if counts[w] >= 3), key=lambda w: (-counts[w], w))[:2]
    for word in top:
        adjective = re.search(r"\b(?:a|an|the) ([a-z]+) %s\b" % word, story)
        found.append(article((adjective.group(1) + " " if adjective and adjective.group(1) in ADJECTIVES else "") + word))
    if len(top) == 2:
        found.append("%s and %s" % (article(top[0]), article(top[1])))
    return found


ADJECTIVES = set(TRAITS) | set("big little small tiny old young new red yellow shiny pretty beautiful colorful wooden special yummy tall long soft warm cold dark "
                               "round heavy huge nice furry wild dirty broken purple pink black brown gray orange".split())


def teacher_chat(rng, story):
    subjects = story_subjects(story)
    paragraphs = story.split("\n\n")
    if not subjects or (len(paragraphs) > 1 and rng.random() < 0.3):
        parts = split(rng, paragraphs, rng.choice([2, 2, 3]))
        if parts:
            messages = [user(rng, BEGIN, x=rng.choice(subjects)) if subjects else user(rng, ["start a story", "begin a new story"]), says(parts[0])]
            for i, part in enumerate(parts[1:]):
                messages += [user(rng, ENDING if i == len(parts) - 2 and rng.random() < 0.5 else NEXT, N="they"), says(part)]
            return with_system(rng, messages), None, {}
    if subjects and rng.random() < 0.93:
        ask = user(rng, ASK, x=rng.choice(subjects), size=rng.choice(["", "", "", " nice", " new"]))
    else:
        ask = user(rng, ASK_ANY, size="")
    return with_system(rng, [ask, says(story)]), None, {}


# --- tool calls ---------------------------------------------------------------------------------------------------------------------
CITIES = ("Paris London Rome Berlin Madrid Vienna Oslo Tokyo Cairo Lima Dublin Athens Prague Boston Chicago Denver Seattle Toronto Sydney Delhi Seoul "
          "Lisbon Warsaw Zurich Geneva Milan Naples Hamburg Munich Lyon Porto Bergen Kyoto Osaka Mumbai Nairobi Accra Havana Quito Bogota").split()
PLACES = ["kitchen", "bedroom", "garden", "hall", "bathroom", "attic", "cellar", "garage"]
THINGS = ["apple", "book", "chair", "lamp", "pencil", "cup", "ball", "hat", "shoe", "spoon", "kite", "candle"]
# verbs to name the tool, description, argument (names, type, description), how it is asked, result keys, how it is answered
TOOLS = [
    dict(names=["get_weather", "weather", "check_weather", "current_weather"], about="Weather in a city", args=[(["city", "location", "place"], "city")],
         asks=["what is the weather in {0}?", "how is the weather in {0}[ today|]?", "weather in {0}", "is it [cold|warm|raining] in {0}?"],
         result=[("sky", "sky"), ("degrees", "degrees")], answer="It is {r0} in {0}, and it is {r1} degrees."),
    dict(names=["get_time", "local_time", "what_time"], about="Local time in a city", args=[(["city", "place", "zone"], "city")],
         asks=["what time is it in {0}?", "tell me the time in {0}", "time in {0}?"], result=[("time", "time")], answer="In {0}, it is {r0}."),
    dict(names=["add", "add_numbers", "sum"], about="Adds two numbers", args=[(["a", "first", "x"], "number"), (["b", "second", "y"], "number")],
         asks=["what is {0} plus {1}?", "add {0} and {1}", "how much is {0} and {1}?"], result=[("result", "number")], answer="{0} plus {1} is {r0}."),
    dict(names=["multiply", "times", "product"], about="Multiplies two numbers", args=[(["a", "first", "x"], "number"), (["b", "second", "y"], "number")],
         asks=["what is {0} times {1}?", "multiply {0} by {1}"], result=[("result", "number")], answer="{0} times {1} is {r0}."),
    dict(names=["roll_dice", "roll_die", "dice"], about="Rolls a die", args=[(["sides", "faces"], "number")],
         asks=["roll a die with {0} sides", "roll a {0}-sided die"], result=[("value", "number")], answer="The die shows {r0}."),
    dict(names=["set_timer", "start_timer", "timer"], about="Starts a timer", args=[(["minutes", "duration"], "number")],
         asks=["set a timer for {0} minutes", "wake me in {0} minutes", "start a {0} minute timer"], result=[("status", "ok")], answer="The timer is set for {0} minutes."),
    dict(names=["turn_on_light", "light_on", "switch_light"], about="Turns on the light in a room", args=[(["room", "place"], "place")],
         asks=["turn on the light in the {0}", "[can you|please] switch on the {0} light"], result=[("status", "ok")], answer="The light in the {0} is on."),
    dict(names=["get_birthday", "find_birthday", "birthday"], about="Birthday of a person", args=[(["name", "person"], "name")],
         asks=["when is {0}'s birthday?", "what day is the birthday of {0}?"], result=[("date", "date")], answer="The birthday of {0} is on {r0}."),
    dict(names=["count_items", "stock", "how_many"], about="Counts things in the store", args=[(["item", "thing", "name"], "thing")],
         asks=["how many {0}s are there?", "how many {0}s do we have?", "count the {0}s"], result=[("count", "number")], answer="There are {r0} {0}s."),
    dict(names=["get_price", "price_of", "find_price"], about="Price of a thing", args=[(["item", "product", "thing"], "thing")],
         asks=["what does a {0} cost?", "how much is a {0}?", "price of a {0}"], result=[("price", "number")], answer="A {0} costs {r0} coins."),
    dict(names=["send_message", "message", "write_to"], about="Sends a message to a person", args=[(["to", "person", "name"], "name"), (["text", "message"], "words")],
         asks=["send {0} the message \"{1}\"", "tell {0}: {1}", "write to {0}: {1}"], result=[("status", "ok")], answer="I sent your message to {0}."),
    dict(names=["find_book", "search_book", "book_shelf"], about="Finds the shelf of a book", args=[(["title", "book"], "title")],
         asks=["where is the book \"{0}\"?", "find the book \"{0}\"", "on which shelf is \"{0}\"?"], result=[("shelf", "number")], answer="You find \"{0}\" on shelf {r0}."),
    dict(names=["play_song", "play", "start_music"], about="Plays a song", args=[(["song", "title"], "title")],
         asks=["play the song \"{0}\"", "play \"{0}\"", "[please|can you] play \"{0}\""], result=[("status", "ok")], answer="Now playing \"{0}\"."),
    dict(names=["get_distance", "distance", "how_far"], about="Distance between two cities", args=[(["from", "start"], "city"), (["to", "end"], "city")],
         asks=["how far is it from {0} to {1}?", "distance from {0} to {1}"], result=[("km", "number")], answer="From {0} to {1} it is {r0} kilometers."),
    dict(names=["save_story", "store_story", "keep_story"], about="Saves a story under a title", args=[(["title", "name"], "title")],
         asks=["save the story as \"{0}\"", "keep this story under the name \"{0}\""], result=[("status", "ok")], answer="I saved the story as \"{0}\"."),
    dict(names=["lookup_word", "define", "dictionary"], about="Meaning of a word", args=[(["word", "term"], "odd")],
         asks=["what does {0} mean?", "what is a {0}?", "define {0}"], result=[("meaning", "meaning")], answer="{0} means {r0}."),
]


def draw_value(rng, kind):
    if kind == "city":
        return rng.choice(CITIES) if rng.random() < 0.75 else made_up_word(rng, rng.choice([2, 3])).capitalize()
    if kind == "number":
        return rng.choice([rng.randint(1, 20), rng.randint(1, 100), rng.randint(1, 999)])
    if kind == "name":
        return rng.choice(NAMES_HE + NAMES_SHE) if rng.random() < 0.75 else made_up_word(rng, 2).capitalize()
    if kind == "title":
        return mend("The %s %s" % (rng.choice(sorted(TRAITS)).capitalize(), rng.choice(KINDS + ODD).capitalize()))
    return {"sky": lambda: rng.choice(["sunny", "cloudy", "rainy", "windy", "foggy", "snowy", "clear", "stormy"]), "degrees": lambda: rng.randint(-9, 35),
            "time": lambda: "%02d:%02d" % (rng.randint(0, 23), rng.randint(0, 59)), "ok": lambda: rng.choice(["ok", "done"]), "place": lambda: rng.choice(PLACES),
            "date": lambda: "%s %d" % (rng.choice(["May", "June", "July", "March", "April", "August", "October"]), rng.randint(1, 28)),
            "thing": lambda: rng.choice(THINGS), "odd": lambda: made_up_word(rng, 2),
            "words": lambda: rng.choice(["see you soon", "dinner is ready", "call me later", "happy birthday", "i am on my way", "good luck", "come home"]),
            "meaning": lambda: "a %s %s" % (rng.choice(sorted(TRAITS)), rng.choice(KINDS + ODD))}[kind]()


def make_tool(rng, spec):
    name = rng.choice(spec["names"])
    keys = [rng.choice(choices) for choices, _ in spec["args"]]
    properties = {key: {"type": "integer" if kind == "number" else "string"} for key, (_, kind) in zip(keys, spec["args"])}
    return name, keys, {"type": "function", "function": {"name": name, "description": spec["about"],
                                                          "parameters": {"type": "object", "properties": properties, "required": keys}}}


def tool_chat(rng):
    specs = rng.sample(TOOLS, rng.choice([1, 1, 2, 2, 3, 4]))
    made = [make_tool(rng, spec) for spec in specs]
    tools, messages = [tool for _, _, tool in made], []
    if rng.random() < 0.2:
        tale = Tale(rng, length=rng.choice(["short", "normal"]))
        story = joined(tale.episode())
        messages += [ask_for(rng, tale), says(story)]
    for _ in range(rng.choice([1, 1, 1, 2]) if not messages or rng.random() < 0.5 else 0):
        which = rng.randrange(len(specs))
        spec, (name, keys, _) = specs[which], made[which]
        rounds = 2 if rng.random() < 0.08 and len(spec["args"]) == 1 and spec["args"][0][1] in ("city", "name") else 1
        values = [[draw_value(rng, kind) for _, kind in spec["args"]] for _ in range(rounds)]
        if rounds == 2:
            ask = spec["asks"][0].replace("{0}", "%s and %s" % (values[0][0], values[1][0]))
        else:
            ask = format_numbered(rng, rng.choice(spec["asks"]), values[0])
        messages.append({"role": "user", "content": typed(rng, with_articles(ask))})
        calls = [{"type": "function", "function": {"name": name, "arguments": dict(zip(keys, v))}} for v in values]
        messages.append({"role": "assistant", "content": "", "tool_calls": calls})
        answers = []
        for v in values:
            if rng.random() < 0.05:
                messages.append({"role": "tool", "content": json.dumps({"error": rng.choice(["not found", "unknown", "try again later"])})})
                answers.append("I am sorry, that did not work.")
                continue
            results = [draw_value(rng, kind) for _, kind in spec["result"]]
            if spec["names"][0] == "add":
                results = [v[0] + v[1]]
            elif spec["names"][0] == "multiply":
                results = [v[0] * v[1]]
            messages.append({"role": "tool", "content": json.dumps({key: r for (key, _), r in zip(spec["result"], results)})})
            answer = spec["answer"]
            for i, r in enumerate(results):
                answer = answer.replace("{r%d}" % i, str(r))
            answers.append(mend(format_numbered(rng, answer, v)))
        messages.append(says(" ".join(answers)))
    return with_system(rng, messages, 0.3), tools, {}


def format_numbered(rng, template, values):
    template = expand(template.replace("{", "\x01").replace("}", "\x02"), {}, rng).replace("\x01", "{").replace("\x02", "}")
    for i, value in enumerate(values):
        template = template.replace("{%d}" % i, str(value))
    return template


def plain_tale(rng):
    tale = Tale(rng, length=length(rng))
    paragraphs = tale.episode()
    if rng.random() < 0.25:
        paragraphs += tale.episode()
    return joined(paragraphs)


def chat(rng, limit):
    """One chat of the mixture; `limit` in characters bounds the long ones."""
    draw = rng.random()
    if draw < 0.27:
        return story_chat(rng, 1)
    if draw < 0.58:
        return story_chat(rng, rng.choice([2, 2, 2, 3, 3, 4]))
    if draw < 0.70:
        return split_chat(rng)
    if draw < 0.74:
        return long_chat(rng, limit * rng.choice([0.5, 0.8, 1.0]))
    if draw < 0.78:
        return with_system(rng, small_talk(rng) + (small_talk(rng) if rng.random() < 0.3 else [])), None, {}
    if draw < 0.88:
        return tool_chat(rng)
    if draw < 0.94:
        return thinking_chat(rng)
    return controlled_chat(rng) if rng.random() < 0.7 else words_chat(rng)


# --- rendering ----------------------------------------------------------------------------------------------------------------------
def chat_template():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "chat_template.jinja"), encoding="utf-8") as f:
        return f.read()


@functools.lru_cache(maxsize=1)
def compiled_template():
    """The template as transformers compiles it (checked against transformers when the model is made)."""
    import jinja2.sandbox
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda x, **_: json.dumps(x, ensure_ascii=False)
    return environment.from_string(chat_template())


def render(messages, tools=None, extra=None, **more):
    return compiled_template().render(messages=messages, tools=tools, **(extra or {}), **more)
