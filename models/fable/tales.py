"""A small story grammar: plots written by hand, with slots and alternative phrasings, that yield coherent children's tales.

A tale comes with its facts (who, where, what went wrong, who helped), so that questions about it, plans for it and
continuations of it can be made without guessing. Template language: `[a|b]` picks one alternative (they nest), `{x}` is a
variable, a line starting with `?` may be left out. Sentence capitals and a/an are mended afterwards.
"""

import re

from tale_words import LIKES, NAMES_HE, NAMES_SHE, ODD, SIZES, TRAITS, TREASURES, WORLDS

# name -> slots (tuples bind several variables), themes a user may ask for, the problem in a plan's words, title, questions, paragraphs, lessons
PLOTS = {
    "lost": dict(
        themes=["a lost {treasure}", "losing something", "a {treasure}"], problem="the {treasure} is lost", title="The Lost {Treasure}",
        asks=[("what did {N} lose?", "{N} lost {his} {treasure}."), ("where was the {treasure}?", "The {treasure} was {spot3}.")],
        paras=[["{When}, {N} [looked for|went to get|reached for] {his} {treasure}, but it was [gone|not there].",
                "\"Oh no!\" {he} [cried|said]. \"Where is my {treasure}?\"",
                "?It was [the thing {he} loved most|a gift from {his} grandmother|very special to {him}]."],
               ["{N} looked {spot1}, but it was not there. {He} looked {spot2}, but [all {he} found was [an old leaf|a round stone|a sleepy worm]|there was nothing].",
                "?{N} [sat down and sighed|felt a tear roll down {his} cheek|did not want to give up]."],
               ["Then {mintro} came by. \"Why do you look so [sad|worried], {call}?\" asked {M}. {N} told {M} [all about it|about the {treasure}].",
                "\"[Let us look together|I will help you look|Two can see more than one],\" said {M}.",
                "[They walked slowly back the way {N} had come|They searched high and low]. [Suddenly|At last], {M} called out. The {treasure} was {spot3}!"],
               ["{N} [jumped for joy|laughed and hugged {M}|smiled from ear to ear]. \"Thank you, {mcall}!\" {he} said.",
                "?To say thank you, {N} shared some {food} with {M}.",
                "From that day on, {N} [always kept the {treasure} in a safe place|never lost the {treasure} again]."]],
        lesson=["It is easier to look for something together.", "A good friend helps you when you are sad."]),
    "stuck": dict(
        slots={"trap,tool": [("in a deep hole", "a long rope"), ("in the sticky mud", "a strong branch"), ("under a heavy log", "a long stick"),
                             ("in a thorny bush", "a pair of thick gloves"), ("in an old net", "a sharp shell"), ("at the top of a high rock", "a ladder")]},
        themes=["helping a friend", "someone who is stuck", "being helpful"], problem="a {mkind} is stuck {trap}", title="{N} to the Rescue",
        asks=[("who was stuck?", "{M} was stuck {trap}."), ("what did {N} use to help?", "{N} used {tool}.")],
        paras=[["{When}, {N} was [walking|playing] {spot1} when {he} heard a small voice. \"Help! Help!\" it [called|cried].",
                "{N} [followed the voice|looked all around]. There was {mintro}, stuck {trap}."],
               ["\"Please help me,\" said {M}. \"I have been here [all night|since the sun came up|for a very long time].\"",
                "{N} pulled and pulled, but {M} did not move. {He} [pushed|tugged] with all {his} might, but {M} was still stuck.",
                "?\"Don't worry,\" said {N}. \"I will not leave you.\""],
               ["Then {N} had an idea. {He} [ran home|hurried {spot2}] and came back with {tool}. \"Hold on [tight|very tight]!\" {he} said.",
                "One, two, three! [Pop|Whoosh|Plop]! {M} was free at last."],
               ["\"You saved me!\" said {M}. \"How can I ever thank you?\" \"[You do not have to|Just be my friend],\" said {N} with a smile.",
                "?They went home and ate {food} together.",
                "[From that day on, the two were the best of friends|After that, {M} visited {N} every day]."]],
        lesson=["When somebody calls for help, do not walk away.", "Helping others makes two people happy."]),
    "reach": dict(
        slots={"goal,where": [("a ripe red apple", "at the top of a tall tree"), ("a bright balloon", "high up on a roof"), ("a golden pear", "on the highest branch"),
                              ("a shiny star", "on top of a steep hill"), ("a sweet honeycomb", "high up in a tree"), ("a lovely flower", "at the top of a cliff")]},
        themes=["{goal}", "not giving up", "working together"], problem="{goal} is too high to reach", title="{N} and the High Place",
        asks=[("what did {N} want?", "{N} wanted {goal}."), ("where was it?", "It was {where}.")],
        paras=[["{When}, {N} saw {goal} {where}. \"[I want that|How lovely|Oh, I must have it]!\" {he} said."],
               ["{N} jumped as high as {he} could, but {he} could not reach it. {He} stood on a [box|stone|stump], but it was [still too high|not enough].",
                "?{He} even threw a pebble at it, but the pebble came down and landed on {his} [nose|head|foot]. \"Ouch!\"",
                "{N} [felt like giving up|sat down and frowned|almost began to cry]."],
               ["Just then, {mintro} [came along|walked by|stopped to watch]. \"I cannot reach it either,\" said {M}. \"But what if you stand on my [back|shoulders]?\"",
                "So {N} climbed up [carefully|slowly|very slowly]. {He} stretched and stretched. [At last|Finally], {he} had it!"],
               ["\"We did it!\" they [cheered|shouted|sang]. {N} [gave half to {M}|let {M} hold it first|wanted {M} to have a share too].",
                "?They sat side by side until the sky turned [red|pink|purple].",
                "{N} was glad that {he} had not given up."]],
        lesson=["What is too hard for one can be easy for two.", "Do not give up too soon."]),
    "storm": dict(
        slots={"storm": ["a big storm", "heavy rain", "a cold wind", "thunder and lightning", "a great snowfall"]},
        themes=["a storm", "bad weather", "giving shelter to others"], problem="a storm comes and a {mkind} has no shelter", title="The Night of the Storm",
        asks=[("what was the weather like?", "There was {storm}."), ("who knocked on the door?", "It was {M}.")],
        paras=[["{When}, the sky grew dark and there was {storm}. [The trees bent low|Everything shook|The windows rattled].",
                "{N} ran home as fast as {he} could. Inside {his} home, it was [warm and dry|safe and cozy]."],
               ["Then there was a knock. Knock, knock, knock! {N} opened and saw {mintro}, [wet and shivering|tired and cold].",
                "\"May I come in?\" asked {M}. \"[My home was blown away|The storm took my roof|I have nowhere to go].\"",
                "?{N} [thought about how small the place was|had only one bed]. Then {he} smiled."],
               ["\"Of course,\" said {N}. \"There is always room for one more.\" {He} gave {M} [a dry towel|a warm blanket|the best seat] and some {food}.",
                "All night long they told stories while the storm [howled|roared|blew] outside. [Soon they forgot to be afraid|They even laughed]."],
               ["In the morning, the sun was shining and a rainbow stood over {place}. {N} helped {M} build a new home, [right next door|just nearby].",
                "[And so a bad storm brought a good friend|From then on, they were neighbors and friends]."]],
        lesson=["A small home is big enough for a friend.", "Share what you have when others need it."]),
    "race": dict(
        slots={"prize": ["a golden cup", "a big cake", "a crown of flowers", "a basket of {food}", "a silver medal"]},
        themes=["a race", "winning and losing", "being fair"], problem="there is a race and a {mkind} falls", title="The Great Race",
        asks=[("what was the prize?", "The prize was {prize}."), ("who fell down?", "{M} fell down.")],
        paras=[["{When}, there was a great race {inplace}. The winner would get {prize}. {N} wanted to win [very much|more than anything].",
                "?{He} practiced every day, up the hill and down the hill.",
                "{Mintro} wanted to win, too."],
               ["\"Ready, steady, go!\" [Everyone ran|They all shot forward|Off they went]. {N} was fast, but {M} was [faster|just as fast].",
                "Then, near the end, {M} tripped over a [root|stone|rope] and fell. \"[Ow, my foot|Ouch|Oh, it hurts]!\" cried {M}."],
               ["{N} could see the finish line. {He} could win now! But {he} [stopped|slowed down and turned around].",
                "{N} went back and helped {M} up. \"[Lean on me|Come, we will walk together],\" {he} said. They crossed the line [side by side|together], and they were the very last."],
               ["Everybody [clapped and cheered|was quiet, and then they all cheered]. \"[That was the best race of all|What a good heart you have],\" they said.",
                "Both of them got {prize}, because a kind heart is worth more than fast feet."]],
        lesson=["Being kind is better than being first.", "It is not always important to win."]),
    "friend": dict(
        slots={"diff": ["had very odd spots", "spoke in a funny way", "was much bigger than the others", "was the smallest of all", "came from far away"]},
        themes=["a new friend", "friendship", "making friends"], problem="nobody wants to play with a {mkind}", title="A New Friend for {N}",
        asks=[("why did nobody play with {M}?", "Because {M} {diff}."), ("what did they play?", "They played {game}.")],
        extra={"game": ["hide and seek", "catch", "a counting game", "tag", "a guessing game"]},
        paras=[["{When}, somebody new came to {place}. It was {mintro}. {M} {diff}, and nobody wanted to play with {mhim}.",
                "?\"[Go away|We do not know you],\" the others said."],
               ["{N} saw {M} sitting alone {spot1}. {He} [felt sorry|thought for a while]. {He} knew [how it feels to be alone|that it was not fair].",
                "So {N} [walked over|took a deep breath and walked over]. \"Hello, I am {selfname},\" {he} said. \"Do you want to play with me?\""],
               ["{M} [looked up and smiled|could hardly believe it]. \"Yes, please!\" They played {game} all [day|afternoon]. They [laughed until their sides hurt|had so much fun].",
                "?Then they shared some {food} {spot2}.",
                "When the others heard them laughing, they came closer. \"May we play, too?\" they asked. \"The more the merrier!\" said {M}."],
               ["[By the evening|When the sun went down], everyone was playing together. {N} was [proud and happy|very glad]. {He} had found a friend, and so had everybody else."]],
        lesson=["Being different is nothing bad.", "A kind hello can make a new friend."]),
    "share": dict(
        slots={"treat": ["a huge cake", "a basket full of {food}", "a big jar of honey", "a giant pumpkin", "a bag of sweets", "a tall pile of pancakes"]},
        themes=["sharing", "{treat}", "being greedy"], problem="{N} does not want to share {treat}", title="{N} Learns to Share",
        asks=[("what did {N} find?", "{N} found {treat}."), ("how did {N} feel after eating so much?", "{N} had a tummy ache.")],
        paras=[["{When}, {N} found {treat} {spot1}. \"[All mine|This is only for me|I will not tell anyone]!\" {he} said, and {he} hid it {spot2}."],
               ["Soon {mintro} came by. \"[I am so hungry|I have not eaten all day],\" said {M}. \"Do you have [a bite|something] for me?\"",
                "\"No,\" said {N}. \"I have nothing at all.\" {M} [went away sadly|walked off with an empty tummy]."],
               ["{N} ate and ate and ate. But the more {he} ate, the worse {he} felt. \"Oh, my tummy!\" {he} [cried|groaned]. {He} could not even stand up.",
                "?It was [lonely|very quiet], and nobody was there to help.",
                "{M} heard the noise and came back with a cup of warm tea. \"Drink this,\" said {M}. \"You will feel better.\""],
               ["{N} felt [ashamed|very sorry]. \"I told you a lie,\" {he} said. \"There is a lot left. Please, let us share it.\"",
                "So they sat down together, and everything tasted [twice as good|much better than before]."]],
        lesson=["Things taste better when you share them.", "Sharing makes friends."]),
    "fear": dict(
        slots={"fear,act": [("the dark", "walk through the dark at night"), ("deep water", "cross the deep water"), ("high places", "climb to the very top"),
                            ("thunder", "go out in the thunder"), ("the old cave", "go into the old cave"), ("loud noises", "walk past the loud drums")]},
        themes=["being afraid of {fear}", "being brave", "courage"], problem="{N} is afraid of {fear}", title="{N} Is Not Afraid Anymore",
        asks=[("what was {N} afraid of?", "{N} was afraid of {fear}."), ("who needed help?", "{M} needed help.")],
        paras=[["There was one thing that {N} did not like at all. {He} was afraid of {fear}.",
                "?When the others laughed about it, {he} [looked at the ground|said nothing]."],
               ["{When}, {mintro} did not come home. \"[Who will look for {M}|Who can help {M}]?\" everyone asked. To do that, somebody had to {act}.",
                "{N} [shook from head to toe|felt {his} heart go boom, boom, boom]. But then {he} thought of {M}, all alone. \"I will go,\" {he} said."],
               ["{N} took one small step, and then another. \"I can do it,\" {he} whispered. \"[One more step|Just a little farther].\"",
                "[At last|After a while], {he} found {M} {spot3}. \"You came!\" said {M}. \"Were you not afraid?\" \"Yes, I was,\" said {N}. \"But I came anyway.\""],
               ["They went home [together|hand in hand|side by side], and everyone [cheered|was glad].",
                "[After that night|From then on], {N} was only a little bit afraid of {fear}, and a little bit is not so bad."]],
        lesson=["Being brave means doing it even when you are afraid.", "Courage starts with one small step."]),
    "birthday": dict(
        slots={"gift": ["a {treasure}", "a big cake with candles", "a song that they had made themselves", "a picture of all of them"]},
        themes=["a birthday", "a surprise", "a birthday party"], problem="everyone seems to forget the birthday", title="The Birthday Surprise",
        asks=[("what day was it?", "It was {N}'s birthday."), ("what was the present?", "It was {gift}.")],
        paras=[["{When}, {N} woke up with a big smile. It was {his} birthday! {He} could not wait to see {his} friends."],
               ["But when {he} met {mintro}, {M} only said, \"[Sorry, I am busy|Good morning, I have to go],\" and hurried away. {N} went to see the others, but nobody was home.",
                "\"They all forgot,\" {he} [said quietly|whispered]. {N} [sat down {spot1}|walked around {place}] and felt [very sad|very small]."],
               ["In the evening, {N} went home with [slow steps|a heavy heart]. It was dark inside. {He} opened the door.",
                "\"Surprise!\" [shouted|called] a hundred voices. There were lights, and flags, and {food}, and right in front stood {M} with {gift}."],
               ["\"We did not forget,\" said {M}. \"We were getting everything ready!\"",
                "{N} [laughed and cried at the same time|did not know what to say]. They danced and sang [all night|until the moon was high]. It was the best birthday ever."]],
        lesson=["Good friends do not forget you.", "Sometimes a sad day ends with a surprise."]),
    "learn": dict(
        slots={"skill,fails": [("swim", "{he} went under and swallowed a lot of water"), ("dance", "{he} stepped on {his} own feet"),
                               ("bake bread", "the bread came out as hard as a stone"), ("sing", "{he} sounded like a rusty gate"),
                               ("ride a bicycle", "{he} fell into the bushes"), ("paint", "everything turned brown"), ("fly a kite", "the kite fell down"),
                               ("whistle", "only air came out"), ("juggle", "all the balls fell on {his} head"), ("skate", "{he} slipped and sat down hard")]},
        themes=["learning to {skill}", "practice", "trying again"], problem="{N} wants to learn to {skill} but fails", title="{N} Learns to {Skill}",
        asks=[("what did {N} want to learn?", "{N} wanted to learn to {skill}."), ("who taught {N}?", "{M} taught {N}.")],
        paras=[["More than anything, {N} wanted to learn to {skill}. {When}, {he} tried for the first time, but {fails}.",
                "?Some of the others laughed. \"[You will never learn it|That was funny],\" they said."],
               ["{He} tried again, and again {fails}. \"[I can't do it|It is too hard],\" said {N}, and {he} [kicked a stone|hung {his} head]."],
               ["{Mintro} had seen it all. \"Do you know how many times I failed?\" asked {M}. \"[More than a hundred times|So often that I could not count]. Let me show you how to begin.\"",
                "Every day they practiced together, a little [bit|longer] each time. [First it went badly, then not so badly, and then quite well|Slowly, very slowly, it got better]."],
               ["One day, {N} could {skill}! [Everyone came to watch|{He} could hardly believe it]. \"I did it!\" {he} [shouted|cried]. {M} was [so proud|very proud].",
                "Now {N} teaches the little ones how to {skill}, and {he} never laughs when they fail."]],
        lesson=["Nobody can do everything the first time.", "If you keep trying, you will get better."]),
    "honest": dict(
        slots={"broken": ["a beautiful vase", "a big window", "the old clock", "a blue plate", "the garden gate", "a glass lamp"]},
        themes=["telling the truth", "being honest", "saying sorry"], problem="{N} breaks {broken} and is afraid to tell", title="{N} Tells the Truth",
        asks=[("what did {N} break?", "{N} broke {broken}."), ("did {N} tell the truth?", "Yes, {N} told the truth in the end.")],
        paras=[["{When}, {N} was playing with {his} {treasure}. {He} [ran too fast|threw it too high|was not careful], and crash! {He} broke {broken}.",
                "It belonged to {mintro}."],
               ["{N} looked around. Nobody had seen it. {He} [hid the pieces {spot1}|ran away and hid {spot1}].",
                "When {M} came home and saw it, {M} was [very sad|close to tears]. \"Who did this?\" asked {M}. {N} [said nothing|only looked at {his} feet].",
                "?That night, {N} could not sleep. {His} tummy felt as heavy as a stone."],
               ["In the morning, {N} went to {M}. \"It was me,\" {he} said [in a small voice|and began to cry]. \"I am so sorry.\"",
                "{M} was quiet for a moment. \"Thank you for telling me the truth,\" said {M}. \"[That was brave|I am not angry anymore].\""],
               ["They [glued the pieces back together|fixed it together], and it looked [almost as good as new|even prettier than before].",
                "{N} felt as light as a feather."]],
        lesson=["It is always best to tell the truth.", "Saying sorry makes your heart light."]),
    "door": dict(
        slots={"inside": ["a room full of books", "a garden where it was always spring", "a hall full of music", "a tiny train that could talk",
                          "a lake of silver water", "a tree with lanterns instead of leaves"], "kd": ["little green", "round wooden", "small blue", "tiny golden"]},
        themes=["a secret door", "magic", "a magic key"], problem="a secret door needs a key", title="The Secret Door",
        asks=[("what did {N} find?", "{N} found a {kd} door."), ("what was behind the door?", "Behind the door was {inside}.")],
        paras=[["{When}, {N} found a {kd} door {spot1}. {He} had never seen it before. {He} pushed and pulled, but the door was locked.",
                "?\"Who lives here?\" {he} wondered."],
               ["{N} looked for the key {spot2}, but it was not there. Then {mintro} [appeared|came along] and said, \"[The key opens only for someone who is kind|I have the key, but first I need your help].\"",
                "{M} was [tired and thirsty|cold and hungry]. {N} did not think twice and gave {M} all {his} {food}."],
               ["{M} smiled and held out a small key. It [shone like a star|felt warm|hummed a soft tune]. {N} put it into the lock. Click! The door opened.",
                "Behind it was {inside}. \"[Oh|How wonderful]!\" whispered {N}. \"Is it real?\" \"It is real for those who are kind,\" said {M}."],
               ["They stayed there until the evening. [When {N} came home, the little key was still in {his} pocket|Before {he} left, {N} got the key to keep].",
                "And whenever {he} wanted, {he} could go back, and {he} always brought a friend."]],
        lesson=["Kindness opens every door.", "A good heart is the best key."]),
    "wayhome": dict(
        slots={"sight": ["a yellow butterfly", "a strange light", "a flying leaf", "a merry tune", "a cloud that looked like a cake"]},
        themes=["getting lost", "finding the way home", "an adventure"], problem="{N} is lost and cannot find the way home", title="The Long Way Home",
        asks=[("what did {N} follow?", "{N} followed {sight}."), ("who showed {N} the way home?", "{M} showed {N} the way home.")],
        paras=[["{When}, {N} followed {sight}. {He} followed it over the hill, through the tall grass, and across a stream.",
                "When {he} stopped, {he} did not know where {he} was."],
               ["\"[Hello|Is anybody there]?\" called {N}. Nobody answered. It was getting dark. {He} walked to the left, and {he} walked to the right, but everything looked [the same|strange].",
                "?{N} was cold, and {he} thought of {his} soft bed at home.", "{He} sat down {spot1} and began to cry."],
               ["\"Why are you crying?\" asked a voice. It was {mintro}. \"I want to go home,\" said {N}, \"but I do not know the way.\"",
                "\"[Tell me what your home looks like|Do you see that bright star],\" said {M}. \"[I know this land well|We only have to follow it].\" They set off together in the moonlight."],
               ["After a long walk, {N} saw {his} own front door. \"That's it! I am home!\" {he} [cried|shouted]. {He} asked {M} to come in, and they had {food} by the fire.",
                "Since that day, {N} always [tells somebody where {he} is going|remembers the way back before {he} goes on an adventure]."]],
        lesson=["Always remember the way home.", "It is no shame to ask for help."]),
    "seed": dict(
        slots={"plant": ["a tall sunflower", "a tree full of cherries", "the biggest pumpkin anyone had ever seen", "a rose that smelled of honey", "a plant with silver leaves"]},
        themes=["a seed", "being patient", "growing a plant"], problem="{N} plants a seed and nothing seems to grow", title="The Little Seed",
        asks=[("what did {N} plant?", "{N} planted a seed."), ("what did the seed become?", "The seed became {plant}.")],
        paras=[["{When}, {N} found a [tiny|strange|small brown] seed {spot1}. {He} made a hole in the ground, put the seed in, and gave it some water."],
               ["The next day, {N} looked, but there was nothing. {He} looked the day after that, but there was still nothing. \"[This seed is no good|It does not want to grow],\" {he} [grumbled|said].",
                "{Mintro} [laughed softly|shook {mhis} head]. \"A seed needs water, sun, and time,\" said {M}. \"Most of all, it needs time.\""],
               ["So {N} waited. {He} gave it water every morning and [sang to it every evening|told it a story every night]. [Days and weeks went by|It rained, and the sun came out again].",
                "?Once {he} wanted to dig it up to have a look, but {he} did not.",
                "Then, one morning, a small green tip came out of the ground! It grew and grew, until it became {plant}."],
               ["Everyone {inplace} came to see it. \"How did you do it?\" they asked. {N} smiled at {M}. \"[With water, sun, and time|I waited],\" {he} said."]],
        lesson=["Good things take time.", "Be patient, and you will be rewarded."]),
    "build": dict(
        slots={"thing,thingn": [("a boat", "boat"), ("a tree house", "tree house"), ("a bridge", "bridge"), ("a snow castle", "snow castle"),
                                 ("a flying machine", "flying machine"), ("a big swing", "swing"), ("a sand castle", "sand castle")]},
        themes=["building {thing}", "teamwork", "working together"], problem="{N} builds {thing} alone and it falls apart", title="{N} Builds Something Big",
        asks=[("what did {N} build?", "{N} built {thing}."), ("why did it fall apart the first time?", "Because {N} wanted to do it all alone.")],
        paras=[["{When}, {N} had a great idea. \"I will build {thing}!\" {he} said. \"And I will do it all by myself.\"",
                "?{He} gathered everything {he} needed and carried it [home|{spot1}]."],
               ["{Mintro} asked, \"May I help?\" \"No, thank you,\" said {N}. \"I do not need any help.\"",
                "{He} worked all day. But in the evening, there was a loud crack, and everything [fell apart|came tumbling down]. {N} [sat in the middle of the mess|rubbed {his} eyes]."],
               ["{M} came back and did not laugh. \"[You hold this side and I will hold that side|Your idea is good],\" said {M}. \"[Let's try it together|It only needs more hands].\"",
                "They worked [side by side|all week], and they sang while they worked. This time, nothing fell down."],
               ["When the {thingn} was ready, it was [bigger and better|stronger and nicer] than {N} had ever dreamed. \"I could not have done it without you,\" {he} told {M}.",
                "They had {food} to celebrate, and everyone was invited."]],
        lesson=["Many hands make light work.", "It is good to accept help."]),
    "wish": dict(
        slots={"wish,real": [("to be as big as a mountain", "too big to fit into {his} own home"), ("to have a hundred toys", "so busy with toys that {he} had no time for friends"),
                             ("to be able to fly", "so high up that nobody could hear {him}"), ("to never go to bed", "so tired that {he} could not laugh anymore"),
                             ("to be king of {place}", "all alone on a big hard chair"), ("to eat only cake", "sick of cake after just one day")]},
        themes=["a wish", "a magic wish", "being happy with what you have"], problem="a wish comes true but makes {N} unhappy", title="The Wish",
        asks=[("what did {N} wish for?", "{N} wished {wish}."), ("who granted the wish?", "{M} granted the wish.")],
        paras=[["{When}, {N} helped {mintro} to get out of {trapx}. \"I am a magic {mkind},\" said {M}. \"You may have one wish.\"",
                "{N} did not think for long. {He} wished {wish}. [Puff|Zing|Whoosh]! The wish came true."],
               ["At first, it was wonderful. {N} [laughed with joy|had never been so happy]. But soon {he} was {real}.",
                "?\"[This is not as nice as I thought|Oh dear],\" {he} said.", "{He} missed {his} friends, and {he} missed {his} old life."],
               ["{N} went to look for {M} and found {mhim} {spot2}. \"Please take my wish back,\" {he} said. \"I was happy before, and I did not know it.\"",
                "{M} [smiled|nodded]. \"That is the wisest wish of all,\" said {M}. [Puff|Zing|Whoosh]! Everything was as it had been before."],
               ["{N} ran home and hugged everyone {he} met. {He} had [some {food}|a cup of warm milk], and it tasted better than ever."]],
        extra={"trapx": ["a spider's web", "a deep puddle", "an old jar", "a bush full of thorns"]},
        lesson=["Be happy with what you have.", "Think well before you make a wish."]),
    "sick": dict(
        slots={"cure": ["hot soup", "honey tea", "a warm blanket and a story", "a bunch of yellow flowers", "a funny song"]},
        themes=["a sick friend", "taking care of someone", "caring"], problem="a {mkind} is ill", title="{N} and the Sick Friend",
        asks=[("who was sick?", "{M} was sick."), ("what did {N} bring?", "{N} brought {cure}.")],
        paras=[["{When}, {N} wanted to play with {mintro}, but {M} did not come out. {N} knocked on the door. \"[I am ill|I feel so weak],\" said a tiny voice. \"I have to stay in bed.\""],
               ["{N} wanted to help. But what could {he} do? {He} asked [the old doctor|a wise neighbor|the oldest tree], who said, \"There is nothing better than {cure}.\"",
                "?So {N} went on {his} way. It was a long walk, and the path was steep.",
                "{He} looked {spot1} and {spot2} until {he} had everything {he} needed."],
               ["{N} brought {cure} to {M} and sat next to the bed. {He} stayed there [all night|the whole day]. {He} told {M} [every joke {he} knew|a long story about a dragon].",
                "In the morning, {M} [opened both eyes|sat up] and said, \"I feel much better!\""],
               ["Soon {M} was [running and jumping|laughing] again. \"You are the best doctor in the world,\" said {M}. {N} [turned red|smiled shyly]. \"I am only your friend,\" {he} said."]],
        lesson=["Love and care are the best medicine.", "Be there for your friends when they are ill."]),
    "noise": dict(
        slots={"noise,cause": [("a strange howling", "the wind in an empty bottle"), ("a loud thump", "a shutter that was moving in the wind"),
                               ("a low rumble", "{M}, who was snoring"), ("a squeaky sound", "a tiny mouse playing the violin"),
                               ("a soft scratching", "a baby bird that had fallen out of its nest"), ("a ghostly song", "a frog choir practicing in the moonlight")]},
        themes=["a strange noise", "a scary night", "a mystery"], problem="there is {noise} at night", title="The Strange Noise",
        asks=[("what did {N} hear?", "{N} heard {noise}."), ("what was making the noise?", "It was {cause}.")],
        paras=[["One night, {N} could not sleep. {He} heard {noise}. \"What is that?\" {he} whispered, and pulled the blanket over {his} head."],
               ["The next night, {he} heard it again. \"[It must be a monster|Maybe it is a ghost],\" thought {N}. {He} told {mintro} about it. \"I have heard it, too,\" said {M}, \"and I do not like it at all.\"",
                "?They locked the door and looked under the bed, just in case."],
               ["\"Let us find out what it is,\" said {N} at last. {He} took a lantern and went outside [on tiptoe|step by step]. The noise came from {spotn}. It got louder and louder.",
                "{N} held up {his} light and looked. It was no monster at all. It was only {cause}!"],
               ["{N} laughed so loudly that [the stars seemed to twinkle|the owls stopped to listen]. \"And I was so afraid!\" {he} said.",
                "That night, {he} slept [very well|like a stone]."]],
        extra={"spotn": ["somewhere near the trees", "the other side of the hill", "the old wall", "a dark corner"]},
        lesson=["Many scary things are harmless when you look closely.", "Do not be afraid before you know the truth."]),
    "river": dict(
        slots={"idea": ["laid a long tree trunk across", "tied some logs together to make a raft", "put big stones into the water, one after another", "made a swing out of a vine"]},
        themes=["crossing a river", "a clever idea", "a journey"], problem="a wide river is in the way", title="Across the River",
        asks=[("where did {N} want to go?", "{N} wanted to visit {his} grandmother."), ("how did they cross the river?", "They {idea}.")],
        paras=[["{When}, {N} wanted to visit {his} grandmother, who lived on the other side of the river. {He} packed some {food} and {his} {treasure} and set off.",
                "But when {he} came to the river, the bridge was gone! The rain had washed it away."],
               ["{Mintro} was [sitting|standing] at the river, too. \"I have been waiting here since yesterday,\" said {M}. \"The water is too deep and too fast.\"",
                "?{N} dipped one toe into the water. Brrr! It was as cold as ice."],
               ["{N} thought and thought. Then {his} eyes began to shine. \"I know what to do!\" {he} said. \"But I need your help.\"",
                "Together they {idea}. It was hard work, and they got [very wet|very tired], but at last they were on the other side."],
               ["Grandmother was so happy to see them that she [baked a cake|made pancakes] for both of them. They told her about their adventure, and she [listened with big eyes|laughed and clapped].",
                "Now everyone {inplace} can cross the river, thanks to {N}."]],
        lesson=["There is a way around every problem.", "A clever idea and a helping hand go a long way."]),
    "show": dict(
        slots={"art": ["sing a song", "play the drum", "tell a story", "do a dance", "play the flute", "do a magic trick"]},
        themes=["a show", "a talent show", "stage fright"], problem="{N} must {art} in front of everyone and is nervous", title="{N} on the Stage",
        asks=[("what did {N} have to do?", "{N} had to {art}."), ("how did {M} help?", "{M} sat in the first row and smiled.")],
        paras=[["{When}, everyone {inplace} was getting ready for the big show. {N} was going to {art}. {He} had practiced for weeks.",
                "?\"It will be great,\" said all {his} friends."],
               ["But on the evening of the show, {N} looked at all the faces and [could not move|forgot everything]. {His} knees shook. \"I can't do it,\" {he} whispered.",
                "{Mintro} saw it. \"Just look at me,\" said {M}, \"and think that we are all alone. I will sit in the first row.\""],
               ["{N} took a deep breath and walked onto the stage. {He} looked at {M}, and {M} smiled. Then {N} began to {art}.",
                "First {he} was very quiet, but soon {he} forgot all the people. It was [beautiful|wonderful|the best thing anyone had seen]."],
               ["Everybody [stood up and clapped|shouted \"Hooray\"]. {N} took a bow. \"I was so scared,\" {he} told {M}, \"but your smile helped me.\"",
                "After that, everyone got {food}."]],
        lesson=["A friendly face can give you courage.", "It is all right to be nervous."]),
}
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


def made_up_word(rng, syllables):
    return "".join(rng.choice("bdfgklmnprstvwz") + rng.choice("aeiou") + rng.choice(["", "", "l", "n", "m", "b", "x"]) for _ in range(syllables))


def pick_name(rng, she, odd_share):
    if rng.random() < odd_share:
        return made_up_word(rng, rng.choice([2, 2, 3])).capitalize()
    return rng.choice(NAMES_SHE if she else NAMES_HE)


FEMALE = set("girl princess queen witch mermaid fairy hen cow grandmother doll aunt".split())
MALE = set("boy prince king knight wizard rooster snowman grandfather postman shoemaker fisherman uncle".split())


def pick_character(rng, world, avoid=(), odd=0.12):
    """A kind and a pronoun set: mostly of this world, sometimes an odd thing, rarely a made-up word."""
    for _ in range(100):
        draw = rng.random()
        kind = (made_up_word(rng, 2) if draw < odd * 0.2 else rng.choice(ODD) if draw < odd else rng.choice(WORLDS[world]["kinds"].split()))
        if kind not in avoid:
            break
    she = kind in FEMALE or (kind not in MALE and rng.random() < 0.5)
    return kind, she


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
        adjective = adjective or rng.choice(list(TRAITS))
        size = rng.choice(SIZES) if rng.random() < 0.25 and kind not in ("girl", "boy") else "little" if kind in ("girl", "boy") and rng.random() < 0.5 else ""
        named = rng.random() < 0.8 if named is None else named
        self.name = name or (pick_name(rng, she, 0.08) if named else None)
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
        adjective = rng.choice(["wise", "old", "kind", "friendly", "big", "small", "gentle", "clever", "gray", "funny", "little", "young", "tall"])
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
