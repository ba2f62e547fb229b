"""The words of the story grammar: places and who lives there, odd heroes, names, treasures, traits with a sentence that shows them."""

WORLDS = {
    "forest": dict(
        place=["the forest", "the green forest", "the old forest", "the woods"],
        home=["a cozy den under an old oak tree", "a hollow log near a stream", "a snug little house made of bark",
              "a soft nest of leaves", "a small cave at the edge of the forest"],
        spots=["under the ferns", "behind a mossy rock", "next to the stream", "in a pile of leaves", "between two tall trees",
               "under a mushroom", "behind a fallen log", "at the foot of the hill"],
        kinds="fox rabbit bear deer squirrel hedgehog badger owl mouse wolf mole raccoon beaver skunk chipmunk moose fawn",
        food=["berries", "nuts", "honey", "mushroom soup", "blackberry pie"]),
    "farm": dict(
        place=["on|the farm", "on|the old farm", "on|the sunny farm"],
        home=["a big red barn", "a warm stable full of hay", "a small shed behind the farmhouse", "a pen beside the barn"],
        spots=["behind the barn", "under the hay", "next to the well", "in the tall corn", "under the old cart", "by the gate",
               "behind the henhouse", "in the vegetable patch"],
        kinds="cow horse pig sheep goat hen donkey rooster lamb pony turkey goose calf chick foal piglet",
        food=["apples", "carrots", "corn", "oat cakes", "pumpkin soup"]),
    "pond": dict(
        place=["at|the pond", "at|the quiet pond", "by|the little pond"],
        home=["a house of reeds at the edge of the water", "a burrow in the muddy bank", "a tiny hut on a lily pad",
              "a hole beneath a willow tree"],
        spots=["under a lily pad", "behind the reeds", "on the muddy bank", "under the willow tree", "next to the little bridge",
               "between two wet stones", "in the soft mud"],
        kinds="frog duck turtle newt swan toad heron duckling tadpole dragonfly otter",
        food=["water cress", "plums", "seed cakes", "lily soup"]),
    "sea": dict(
        place=["the sea", "the deep blue sea", "the bay"],
        home=["a bright coral garden", "a cave under the waves", "an old sunken ship", "a bed of soft seaweed"],
        spots=["behind the coral", "under a big shell", "in the seaweed", "inside the sunken ship", "next to a round rock",
               "at the bottom of the bay", "beneath the white sand"],
        kinds="fish whale crab dolphin octopus seal starfish mermaid seahorse shark lobster jellyfish",
        food=["seaweed cakes", "sea grapes", "kelp soup", "sweet sea apples"]),
    "jungle": dict(
        place=["in|the jungle", "in|the hot jungle", "on|the grassland"],
        home=["a shady spot beside the river", "a tall tree full of vines", "a quiet clearing in the tall grass",
              "a cool cave behind a waterfall"],
        spots=["behind the waterfall", "in the tall grass", "under the banana tree", "next to the river", "between the vines",
               "behind a big rock", "under a giant leaf"],
        kinds="lion elephant monkey giraffe zebra tiger crocodile parrot hippo rhino camel kangaroo panda koala snake gorilla cheetah",
        food=["bananas", "mangoes", "coconut cake", "sweet figs"]),
    "snow": dict(
        place=["the snowy land", "the icy north", "the land of snow"],
        home=["a round house made of ice", "a warm cave in the snow", "a hut at the edge of the ice"],
        spots=["behind a heap of snow", "under the ice", "next to a frozen pine tree", "in a deep snow bank", "at the edge of the ice",
               "behind the snowy hill"],
        kinds="penguin seal snowman reindeer husky yeti puffin",
        food=["fish soup", "snow cones", "hot cocoa", "ginger cookies"]),
    "garden": dict(
        place=["the garden", "the sunny garden", "the flower garden"],
        home=["a tiny house under a rose bush", "a crack in the garden wall", "an empty flower pot", "a cozy hole beneath the grass"],
        spots=["under a leaf", "behind the flower pot", "next to the garden wall", "under the rose bush", "in the long grass",
               "beside the watering can", "between the tulips"],
        kinds="ant bee snail butterfly caterpillar ladybug beetle spider worm cricket sparrow robin gnome firefly grasshopper hummingbird",
        food=["nectar", "strawberries", "crumbs of cake", "clover tea"]),
    "town": dict(
        place=["the town", "a little town", "a busy town", "a small village"],
        home=["a small yellow house", "a blue house on a hill", "an old house near the park", "a room above the bakery",
              "a cottage at the end of the street"],
        spots=["under the bench", "behind the bakery", "next to the fountain", "under the bed", "in the park", "behind the old clock tower",
               "on top of the wall", "under the stairs"],
        kinds="cat dog kitten puppy hamster girl boy girl boy girl boy baker teacher painter gardener doctor clown robot toy doll train bus car "
              "bicycle teddy pigeon goldfish grandmother grandfather postman firefighter singer juggler shoemaker",
        food=["cookies", "fresh bread", "apple pie", "pancakes", "soup"]),
    "castle": dict(
        place=["a faraway kingdom", "the kingdom", "a land of castles"],
        home=["a castle with seven towers", "a small tower near the castle wall", "a cave above the castle", "a hut in the castle garden"],
        spots=["behind the throne", "in the tall tower", "under the drawbridge", "next to the royal fountain", "in the dark cellar",
               "behind the castle wall", "under a golden chair"],
        kinds="king queen prince princess knight dragon wizard witch unicorn giant fairy ghost troll elf dwarf jester goblin griffin",
        food=["honey cakes", "royal pudding", "roasted chestnuts", "cherry tart"]),
    "sky": dict(
        place=["the sky", "the wide blue sky", "the land above the clouds"],
        home=["a soft white cloud", "a nest on the highest mountain", "a silver tower in the clouds"],
        spots=["behind a cloud", "next to the moon", "on top of the mountain", "at the end of the rainbow", "between two gray clouds",
               "under the evening star"],
        kinds="bird star cloud eagle kite balloon airplane raindrop snowflake rainbow sunbeam stork seagull",
        food=["cloud cakes", "sugar snow", "sweet rain", "star cookies"]),
    "space": dict(
        place=["in|outer space", "on|a tiny planet", "on|the far side of the moon"],
        home=["a round silver ship", "a small house on the moon", "a crater full of blue dust"],
        spots=["behind a crater", "under the silver ship", "next to a falling star", "in the moon dust", "on the dark side of the moon"],
        kinds="alien robot astronaut rocket comet moon planet",
        food=["moon cheese", "star soup", "space cookies"]),
    "shore": dict(
        place=["at|the harbor", "on|an island", "in|a village by the sea"],
        home=["a little hut on the beach", "a wooden ship", "a white house on the cliff"],
        spots=["under the pier", "behind a sand hill", "inside an old boat", "next to the tall rocks", "in a tide pool", "under a fishing net"],
        kinds="pirate sailor fisherman boat captain pelican crab gull tugboat girl boy",
        food=["fish stew", "coconuts", "sea biscuits", "lemon pie"]),
}
# Things that live anywhere; a few never appear as heroes in training and serve to test whether the model copies a new subject.
ODD = ("teapot spoon pencil umbrella lamp clock broom button sock shoe hat pillow chair piano drum violin kettle cup bottle carrot potato pumpkin "
       "tomato banana apple cherry cupcake cookie pancake sandwich muffin cactus sunflower daisy tree acorn leaf pebble rock mountain river "
       "tractor truck ship submarine scooter tram crayon book map mirror candle ladder bell key whistle marble puppet scarf mitten "
       "llama sloth lemur peacock flamingo ostrich buffalo hyena gecko lizard dinosaur mammoth phoenix cuckoo woodpecker bat moth scorpion shrimp "
       "cook tailor farmer miner pilot librarian magician musician nurse carpenter dancer twin baby uncle aunt hero thief shepherd").split()
HELD_OUT = "walrus toaster lighthouse meerkat kayak hamper ballerina toucan backpack snorkel".split()
NAMES_HE = ("Max Tom Tim Ben Sam Leo Finn Oscar Theo Jack Milo Felix Hugo Bruno Otto Rusty Pip Toby Charlie Oliver Henry Gus Archie Barney Bobo "
            "Rocky Buddy Spot Teddy Eddie Frank George Harry Jasper Kai Louis Marco Nico Omar Paul Rafi Simon Victor Walter Zack Arlo Basil Cosmo "
            "Dexter Ernie Fergus Gilbert Ivan Jonas Karl Linus Monty Ned Percy Quentin Ralph Stanley Tobias Wilbur Yuri Ziggy Alfie Boris").split()
NAMES_SHE = ("Lily Mia Anna Sara Lucy Emma Zoe Ella Ruby Rosie Daisy Molly Bella Nina Clara Luna Ivy Olive Poppy Hazel Penny Tilly Willow Coco "
             "Dora Fiona Greta Heidi Iris Julia Kiki Lola Maya Nora Pearl Queenie Rita Stella Tara Uma Vera Wendy Yara Zelda Alice Bonnie Celia "
             "Dotty Edith Flora Gemma Hilda Ida Josie Kate Lena Mabel Nelly Opal Polly Roxy Sophie Trudy Violet Winnie Amber Bibi Cora").split()
TREASURES = ["red ball", "silver key", "blue scarf", "golden ring", "little drum", "wooden flute", "magic stone", "favorite book", "green hat",
             "shiny button", "paper kite", "toy boat", "old map", "music box", "warm blanket", "glass marble", "yellow umbrella", "pink shell",
             "tiny lantern", "silver bell", "purple cape", "round mirror", "lucky coin", "red boots", "feather pen", "straw basket"]
SIZES = ["little", "small", "tiny", "young", "big", "old"]
# adjective -> a sentence that shows it
TRAITS = {
    "brave": "{N} [was not afraid of the dark|never ran away from a loud noise|was the first to climb every hill and the last to cry].",
    "shy": "{N} [hid whenever somebody said hello|spoke in a voice as soft as a whisper|liked to watch the others play from far away].",
    "curious": "{N} [asked a hundred questions every day|wanted to know what was behind every door|could not walk past a hole without looking in].",
    "lazy": "{N} [liked to sleep until noon|never wanted to do any work|thought that even yawning was hard work].",
    "kind": "{N} [always had a warm word for everyone|helped anyone who was in trouble|shared everything {he} had].",
    "clever": "{N} [could solve any riddle|always had a good plan|knew how to count to a thousand].",
    "proud": "{N} [thought {he} was better than everyone else|looked at {himself} in the water all day|never liked to say sorry].",
    "lonely": "{N} [had nobody to play with|ate {his} supper alone each night|wished for just one friend].",
    "grumpy": "{N} [frowned from morning till night|said \"hmph\" to everybody {he} met|did not like noise, or rain, or even sunshine].",
    "hungry": "{N} [was always thinking about {food}|had a tummy that rumbled all day long|could eat ten breakfasts].",
    "sleepy": "{N} [yawned all day|could fall asleep standing up|carried a small pillow everywhere].",
    "happy": "{N} [sang a song every morning|smiled at everyone {he} met|laughed so much that others laughed too].",
    "sad": "{N} [sighed when {he} woke up and sighed when {he} went to bed|had not smiled for a long time|often looked at the rain].",
    "silly": "{N} [wore a leaf for a hat|loved to make funny faces|walked backward just for fun].",
    "gentle": "{N} [never hurt anyone, not even a fly|spoke softly to the flowers|took tiny steps so that nobody would wake up].",
    "clumsy": "{N} [tripped over everything|fell down at least three times a day|bumped into trees and said sorry to them].",
    "greedy": "{N} [always wanted the biggest piece|hid {his} {food} so that nobody could have any|said \"mine\" more than any other word].",
    "selfish": "{N} [did not like to share|kept all {his} toys for {himself}|never let anyone else go first].",
    "honest": "{N} [never told a lie|always said what was true, even when it was hard].",
    "patient": "{N} [could wait for a very long time|never hurried and never complained].",
    "noisy": "{N} [banged on pots and pans|shouted even when {he} was happy|could be heard from far away].",
    "quiet": "{N} [liked to listen more than to talk|moved without a sound|loved the silence of the early morning].",
    "wise": "{N} [thought for a long time before speaking|gave good advice to everyone].",
    "forgetful": "{N} [forgot where {he} put things|could not remember what day it was].",
    "careless": "{N} [left {his} things everywhere|never looked where {he} was going].",
    "careful": "{N} [looked twice before each step|always packed an extra snack, just in case].",
    "friendly": "{N} [waved at everyone|knew the name of every neighbor].",
    "fast": "{N} [could run like the wind|was always the first to arrive].",
    "slow": "{N} [took all morning to cross the path|was always the last to arrive, but never minded].",
    "strong": "{N} [could lift a heavy log|carried water for the whole neighborhood].",
    "playful": "{N} [turned everything into a game|loved to play hide and seek].",
    "naughty": "{N} [loved to play tricks|hid other people's shoes and giggled].",
    "cheerful": "{N} [whistled all day long|found something good in every day].",
    "stubborn": "{N} [never changed {his} mind|always wanted to do things {his} own way].",
    "polite": "{N} [always said please and thank you|bowed to everyone {he} met].",
    "magic": "{N} [could make tiny sparks when {he} sneezed|glowed a little in the dark].",
    "blue": "{N} [was as blue as the evening sky|was the only blue {kind} anyone had ever seen].",
    "red": "{N} [was as red as a ripe apple|shone bright red in the sun].",
    "green": "{N} [was as green as fresh grass].",
    "golden": "{N} [shone like the sun|was golden from head to toe].",
    "white": "{N} [was as white as snow].",
    "fluffy": "{N} [was as soft as a cloud].",
    "scared": "{N} [jumped at every sound|was afraid of {his} own shadow].",
    "angry": "{N} [stamped {his} foot when things went wrong|got upset about every little thing].",
    "funny": "{N} [told jokes all day|could make anyone laugh].",
    "poor": "{N} [had only one coat and one cup, but a big heart].",
    "lost": "{N} [did not know the way home|had been walking for a long time].",
    "busy": "{N} [had a long list of things to do|never sat still].",
    "tired": "{N} [had worked all week and wanted to rest].",
    "helpful": "{N} [carried bags for old neighbors|was always ready to lend a hand].",
}
LIKES = ["{He} loved to [watch the clouds|look for pretty stones|listen to the birds|play near {his} home|tell jokes|count the stars|eat {food}].",
         "Every [morning|evening], {he} [sat outside and hummed a song|went for a walk|had some {food}|waved at the sun].",
         "More than anything, {he} liked {food}.", "{His} favorite thing was {his} {treasure}."]
