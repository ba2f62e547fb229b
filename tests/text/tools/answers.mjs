// Writes tests/text/data/answers.json: for every tokenizer, one checksum for each block of random strings over what
// the HuggingFace library (npm tokenizers@0.23.2) says of them: ids with and without special tokens, offsets, type
// ids, decoded texts, pairs. Without arguments the missing ones, with --all all of them, with a NAME that one;
// `node answers.mjs NAME INDEX [COUNT]` shows the answers for some strings instead.
import fs from 'node:fs';
import path from 'node:path';
import {fileURLToPath} from 'node:url';
import {Tokenizer} from 'tokenizers';
import {Random, randomString} from './random_strings.mjs';

const data = fileURLToPath(new URL('../data/', import.meta.url));
const shared = fileURLToPath(new URL('../../../../shared/', import.meta.url));
const kStrings = 20000;
const kBlock = 25;

function files() {
  const list = fs.readdirSync(data).filter(f => f.endsWith('.tokenizer.json')).sort()
    .map(f => [f.slice(0, -'.tokenizer.json'.length), path.join(data, f)]);
  for (const area of ['tokenizers', 'models'])
    for (const folder of fs.readdirSync(path.join(shared, area)).sort()) {
      const file = path.join(shared, area, folder, 'tokenizer.json');
      if (fs.existsSync(file)) list.push([`${area}/${folder}`, file]);
    }
  return list;
}

class Checksum {
  constructor() { this.h = 0x811c9dc5; }
  add(value) {
    this.h = Math.imul(this.h ^ (value | 0), 0x9e3779b1);
    this.h ^= this.h >>> 15;
  }
  list(values) { this.add(values.length); for (const v of values) this.add(v); }
  text(text) { this.list(Buffer.from(text)); }
  hex() { return (this.h >>> 0).toString(16).padStart(8, '0'); }
}

const encode = async (tokenizer, text, pair, addSpecialTokens) => {
  try { return await tokenizer.encode(text, pair, {addSpecialTokens}); } catch { return null; }
};

async function answer(tokenizer, strings, i) {
  const text = strings(i);
  const full = await encode(tokenizer, text, null, true);
  const bare = await encode(tokenizer, text, null, false);
  const result = {text};
  if (full === null || bare === null) return {text, error: true};
  Object.assign(result, {ids: full.getIds(), offsets: full.getOffsets(), types: full.getTypeIds(), bare: bare.getIds(),
    skipped: await tokenizer.decode(full.getIds(), true), decoded: await tokenizer.decode(bare.getIds(), false)});
  if (i % 8 === 0) {
    const pair = await encode(tokenizer, text, strings(i + 1), true);
    if (pair === null) return {text, error: true};
    Object.assign(result, {pair: pair.getIds(), pairOffsets: pair.getOffsets(), pairTypes: pair.getTypeIds()});
  }
  return result;
}

function add(sum, a) {
  if (a.error) { sum.add(-1); return; }
  sum.list(a.ids);
  sum.list(a.offsets.flat());
  sum.list(a.types);
  sum.list(a.bare);
  sum.text(a.skipped);
  sum.text(a.decoded);
  if (a.pair) { sum.list(a.pair); sum.list(a.pairOffsets.flat()); sum.list(a.pairTypes); }
}

const target = path.join(data, 'answers.json');
const [only, index, count] = process.argv.slice(2);
let answers = only !== '--all' && fs.existsSync(target) ? JSON.parse(fs.readFileSync(target)) : {};
for (const [name, file] of files()) {
  if (only && only !== '--all' && name !== only) continue;
  if (!only && answers[name]) continue;
  const tokens = JSON.parse(fs.readFileSync(file)).added_tokens.map(t => t.content).slice(0, 40);
  const tokenizer = Tokenizer.fromFile(file);
  const strings = i => randomString(new Random(Math.imul(i, 2654435) + 12345), tokens);
  if (index !== undefined) {
    for (let i = Number(index); i < Number(index) + Number(count ?? 1); ++i)
      console.log(JSON.stringify({i, ...await answer(tokenizer, strings, i)}));
    continue;
  }
  let blocks = '';
  for (let i = 0; i < kStrings; i += kBlock) {
    const sum = new Checksum();
    for (const a of await Promise.all([...Array(kBlock).keys()].map(k => answer(tokenizer, strings, i + k)))) add(sum, a);
    blocks += sum.hex();
  }
  answers[name] = blocks;
  answers = Object.fromEntries(Object.keys(answers).sort().map(key => [key, answers[key]]));
  fs.writeFileSync(target, JSON.stringify(answers).replaceAll('","', '",\n"') + '\n');
  console.error(name);
}
