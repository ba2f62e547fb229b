// The random strings of the differential test. tests/text/random_strings.cpp makes the same ones: both read
// strings.json and draw from the same generator (xorshift32) in the same order.
import fs from 'node:fs';

const file = JSON.parse(fs.readFileSync(new URL('../data/strings.json', import.meta.url)));

export class Random {
  constructor(seed) { this.state = seed >>> 0 || 1; }
  next(bound) {
    let x = this.state;
    x ^= x << 13; x >>>= 0;
    x ^= x >>> 17;
    x ^= x << 5; x >>>= 0;
    this.state = x;
    return Math.floor(x / 65536) % bound;
  }
}

// One string: up to 10 segments, each a word of a list, a special token of the tokenizer, or characters of a range.
export function randomString(random, tokens) {
  let text = '';
  const segments = random.next(10) + 1;
  for (let i = 0; i < segments; ++i) {
    const kind = random.next(8);
    if (kind < 3) {
      text += file.words[random.next(file.words.length)];
    } else if (kind === 3 && tokens.length > 0) {
      text += tokens[random.next(tokens.length)];
    } else {
      const ranges = file.ranges[random.next(file.ranges.length)];
      const count = random.next(5) + 1;
      for (let k = 0; k < count; ++k) {
        const [first, last] = ranges[random.next(ranges.length)];
        text += String.fromCodePoint(first + random.next(last - first + 1));
      }
    }
  }
  return text;
}
